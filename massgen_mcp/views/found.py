"""What a team of reviewers found: each alone, and what one of them put together from all. Pure."""

from dataclasses import dataclass

from massgen_mcp.config.findings import Finding, Findings
from massgen_mcp.coordination.written_tests import shown_by_script
from massgen_mcp.run_state.state import RunState


@dataclass(frozen=True, slots=True)
class TeamFinding:
    """A finding, and who found it."""

    finding: Finding
    found_by: tuple[str, ...]
    """Ids of agents."""
    script: str | None = None
    """What is to show it, on the files as they are."""
    printed: str | None = None
    """What the script has to print for that."""
    shown: bool = False
    """Whether the script did, twice."""


def found_together(run: RunState) -> list[TeamFinding]:
    """Empty where nobody has put together what all found."""
    answer = run.coordination.synthesis
    if answer is None or not answer.claims:
        return []
    state, found = run.coordination, list[TeamFinding]()
    for finding, claim in zip(Findings.model_validate_json(answer.content).findings, answer.claims, strict=True):
        authors = tuple(map(state.author, claim.answers)) or (answer.agent,)
        agents = tuple(run.agents[name].info.id for name in authors)
        if claim.test is None:
            found.append(TeamFinding(finding, agents))
        else:
            shown = shown_by_script(claim.test, state.base, state.test_outcomes) is True
            found.append(TeamFinding(finding, agents, claim.test.script, claim.test.expected, shown))
    return found


def found_alone(run: RunState) -> dict[str, tuple[Finding, ...]]:
    """By id of an agent: what its last own answer says."""
    return {
        agent.info.id: Findings.model_validate_json(answer.content).findings
        for agent in run.agents.values()
        for answer in agent.answers
        if answer.claims is None
    }
