"""How the claims of an answer stand that was written from all answers, as the caller reads it. Pure."""

from massgen_mcp.config.findings import Findings, SourcedFinding
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.written_tests import finished, key
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.events.parts import Claim

CLAIMS = "Its claims, and the answers of the team that they stand in:"


def with_claims(answer: AnswerSubmitted, state: Coordination, policy: OrchestratorConfig) -> str:
    """The answer with a line for each claim below it; of findings, with three fields more in each."""
    claims = answer.claims or ()
    if not claims:
        return answer.content
    standing = [_standing(claim, state) for claim in claims]
    if policy.answer_format == "text":
        lines = (f"- {claim.text} ({how})" for claim, how in zip(claims, standing, strict=True))
        return "\n".join([answer.content.rstrip(), "", CLAIMS, *lines])
    document = Findings.model_validate_json(answer.content)
    found = tuple(
        SourcedFinding(**one.model_dump(), answers=claim.answers, contradicted_by=claim.contradicted_by, standing=how)
        for one, claim, how in zip(document.findings, claims, standing, strict=True)
    )
    return document.model_copy(update={"findings": found}).model_dump_json(indent=1, serialize_as_any=True)


def _standing(claim: Claim, state: Coordination) -> str:
    count, of = len(claim.answers), next(len(one.subjects) for one in state.stages if one.kind == "synthesise")
    named = f"in {count} of {of}: {', '.join(claim.answers)}" if count > 1 else f"in {claim.answers[0]} alone"
    parts = [named if count else "in none of them"]
    parts += [f"contradicted by {', '.join(claim.contradicted_by)}"] if claim.contradicted_by else []
    if claim.test is not None:
        outcome = state.test_outcomes.get(key(state.base or "", claim.test))
        if outcome is None or not finished(outcome) or outcome.result == "not_run":
            parts.append("not tried")
        else:
            parts.append("shown by a script" if outcome.result == "passed" else "a script did not show it")
    return "; ".join(parts)
