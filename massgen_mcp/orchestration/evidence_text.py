"""What checks say of the answers on a ballot, in words for a model. Pure."""

from collections.abc import Iterator

from massgen_mcp.coordination.ballot import Ballot
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import CheckOutcome

BALLOT_CHARACTERS = 12_000
"""So much of the output of failed checks stands on one ballot, shared out alike."""
LEAST_CHARACTERS = 200
FLAKY = "flaky, passed once and failed once on the same files, so it counts for nobody"
NO_CHANGE = "This answer changes no files, so nothing was checked."


def evidence_of(ballot: Ballot, state: Coordination) -> dict[str, str]:
    """By the name of the answer on the ballot; those without checks are absent."""
    found = {entry.name: state.evidence[entry.label] for entry in ballot.entries if entry.label in state.evidence}
    failed = sum(bool(outcome.excerpt) for one in found.values() for outcome in (*one.outcomes, *one.own))
    limit = max(LEAST_CHARACTERS, BALLOT_CHARACTERS // max(1, failed))
    return {name: "\n".join(_evidence_lines(checked, limit)) for name, checked in found.items()}


def _evidence_lines(checked: FilesChecked, limit: int) -> Iterator[str]:
    if checked.problem:
        yield f"The files could not be checked: {checked.problem}"
    elif not checked.outcomes:
        yield NO_CHANGE
    for outcome in checked.outcomes:
        yield from _outcome(outcome, limit, _before(outcome) if outcome.command in checked.fails_before else "")
    if checked.restored:
        names = ", ".join(checked.restored)
        yield f"Protected files that the answer changed were checked as they were before: {names}"
        yield "With the answer's own versions of them:"
        for outcome in checked.own:
            yield from _outcome(outcome, limit, "")


def _before(outcome: CheckOutcome) -> str:
    passes = outcome.result == "passed"
    return " It does not pass on the unchanged files." if passes else " It does not pass on the unchanged files either."


def _outcome(outcome: CheckOutcome, limit: int, before: str) -> Iterator[str]:
    result = FLAKY if outcome.flaky else f"{outcome.result} twice" if outcome.runs > 1 else outcome.result
    yield f"{result.replace('_', ' ')}: {outcome.command} ({outcome.how}, {outcome.seconds:.1f} s).{before}"
    if outcome.excerpt:
        excerpt = outcome.excerpt
        shown = excerpt if len(excerpt) <= limit else f"…{excerpt[1 - limit :]}"
        yield "\n".join(f"  {line}" for line in shown.splitlines())
