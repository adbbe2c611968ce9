"""What a team of reviewers found: each alone, and what one of them put together from all. Pure."""

from typing import NamedTuple

from massgen_mcp.config.findings import Finding, Findings
from massgen_mcp.coordination.written_tests import shown_by_script
from massgen_mcp.run_state.state import RunState


class TeamFinding(NamedTuple):
    """A finding, and the agents who have it. `script` is to print `printed` on the files as they are, where the finding
    is true; `shown`: it did, twice.
    """

    finding: Finding
    agents: tuple[str, ...]
    script: str | None = None
    printed: str | None = None
    shown: bool = False


def found_together(run: RunState) -> list[TeamFinding]:
    """Empty where nobody has put together what all found."""
    answer = run.coordination.synthesis
    if answer is None or not answer.claims:
        return []
    state, found = run.coordination, list[TeamFinding]()
    for finding, claim in zip(Findings.model_validate_json(answer.content).findings, answer.claims, strict=True):
        agents = tuple(map(state.author, claim.answers)) or (answer.agent,)
        if claim.test is None:
            found.append(TeamFinding(finding, agents))
        else:
            shown = shown_by_script(claim.test, state.base, state.test_outcomes) is True
            found.append(TeamFinding(finding, agents, claim.test.script, claim.test.expected, shown))
    return found


def found_alone(run: RunState) -> dict[str, tuple[Finding, ...]]:
    """By agent: what its last own answer says."""
    return {
        name: Findings.model_validate_json(answer.content).findings
        for name, agent in run.agents.items()
        for answer in agent.answers
        if answer.claims is None
    }
