"""How firm the decision of a run is, in words: the sentences that every interface shows. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal

from massgen_mcp.events.parts import TextKind
from massgen_mcp.name_lists import join_names
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.work_done import PartlyRead, Weakness, WorkDone
from massgen_mcp.views.names import MAX_NAMED, name_agent, name_answer
from massgen_mcp.views.outcome import WEAKNESSES, describe_dissent, describe_outcome
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.votes_text import nobody_voted

FAILURES: Mapping[str, str] = {
    "nobody_left": "without a vote because no agent was left",
    "unproven": "without passing the required checks",
}
"""A completed run that is no success (see `WorkDone.failure`), in few words."""


def shortly(weak: Sequence[str]) -> str:
    """The two gravest weaknesses in a few words; empty without one."""
    known = {str(weakness): text for weakness, text in WEAKNESSES.items()}
    return ", ".join(known.get(one, one) for one in weak[:2])


def cautions(run: RunState) -> list[str]:
    """List what a reader must know before the answer, as sentences: why the decision is weak, why its changes are not
    applied unasked, which directories were not copied, then the dissent, if `describe_outcome` doesn't name it.
    """
    return [*why_weak(run), *list_limits(run.work_done), *list_objections(run)]


def list_limits(work: WorkDone) -> list[str]:
    """List what was left undone beyond the decision, as sentences."""
    limits = [f"{refused}." for refused in work.not_copied]
    if work.unproven:
        limits.insert(0, f"The required checks don't pass: {work.unproven}.")
    if work.undecided:
        limits.insert(0, f"massgen applied nothing: {work.undecided}.")
    return limits


def describe_vendors(run: RunState) -> str:
    """Say how many vendors' models took part, where several agents ask one vendor; empty otherwise."""
    asked = [agent.info.backend for agent in run.agents.values() if agent.dropped is None]
    vendors = [*dict.fromkeys(asked)]
    if len(asked) == len(vendors) or "scripted" in vendors:
        return ""
    return f"The team's {len(asked)} agents use models from {counted(len(vendors), 'vendor')}: {', '.join(vendors)}."


def why_weak(run: RunState, *, checks: bool = True) -> list[str]:
    """As sentences; without `checks` nothing that `check_notes` says."""
    work = run.work_done
    return [_describe(run, work, one) for one in work.weak if checks or one not in ("checks_failed", "checks_void")]


def _describe(run: RunState, work: WorkDone, weakness: Weakness) -> str:
    match weakness:
        case "nobody_left" | "unreviewed":
            return nobody_voted(run) or ""
        case "checks_failed":
            checks = counted(len(work.failing), "check").replace("0 checks", "checks")
            return f"The final files fail {checks}."
        case "refuted":
            return (
                "The answer fails a test that an agent from another vendor wrote and a third agent confirmed without "
                "seeing the answer."
            )
        case "one_survivor":
            return f"Of {len(run.agents)} agents, only {run.author} remained."
        case "shown_in_part":
            return describe_partly_read(run, work.partly_read)
        case "cut_short" | "left_out":
            return _describe_missing(run, work, weakness)
        case "no_majority" | "tests_disagree":
            few = f"Only {work.agree} of {work.voted} votes are for this answer, which isn't a majority."
            disputed = (
                "The team voted for this answer, but another answer passes more of the tests that the agents wrote."
            )
            return {"no_majority": few, "tests_disagree": disputed}[weakness]
        case "tied":
            return _describe_tie(run, work)
        case "checks_void":
            nothing = work.checked == "nothing_checked"
            return "No check ran on the final files." if nothing else "Some checks couldn't run."


def _describe_missing(run: RunState, work: WorkDone, weakness: Literal["cut_short", "left_out"]) -> str:
    if weakness == "cut_short":
        return f"The run was decided early, with {work.voted} of {counted(len(run.agents), 'vote')}."
    names = join_names(name_agent(run, agent) for agent in run.left_out)
    return f"The run was decided without {names}: no first answer arrived in time."


def _describe_tie(run: RunState, work: WorkDone) -> str:
    if run.winner is not None and run.winner.judge is not None:
        stages = [stage for stage in run.coordination.stages if stage.because == "still_tied"]
        judges = dict.fromkeys(name_agent(run, one.agents[0]) + "'s fallback" * one.by_fallback for one in stages)
        named = join_names(judges or [name_agent(run, run.winner.judge)])
        return f"The votes were tied, so {named} compared the answers pairwise, in both orders."
    names = join_names(name_answer(run, label) for label in work.tied)
    return f"The votes are tied between {names}, and massgen found no way to decide."


_TEXTS: Mapping[TextKind, str] = {
    "question": "the question",
    "history": "the earlier turns",
    "answers": "the answers",
    "changes": "the changes",
    "evidence": "the evidence",
    "notes": "its notes",
}


def describe_partly_read(run: RunState, readers: Sequence[PartlyRead]) -> str:
    """Say which agents read a part of what, and whose votes rest on it, in one sentence."""
    named = [f"{name_agent(run, one.agent)} read {_list_shares(one)}" for one in readers[:MAX_NAMED]]
    if len(readers) > MAX_NAMED:
        named.append(f"so did {len(readers) - MAX_NAMED} more")
    if voters := [name_agent(run, one.agent) for one in readers if one.voted]:
        named.append(f"these agents voted without seeing everything: {', '.join(voters)}")
    return f"Some of the material was too long for the models, so massgen shortened it: {'; '.join(named)}."


def _list_shares(reader: PartlyRead) -> str:
    return ", ".join(f"{_share_text(one.shown, one.of)} of {_TEXTS[one.text]}" for one in reader.texts)


def _share_text(shown: int, of: int) -> str:
    percent = 100 * shown // of
    return f"{percent}%".replace("0%", "less than 1%", percent == 0)


def list_objections(run: RunState) -> list[str]:
    """List as sentences who disagrees, if `describe_outcome` doesn't name them, and what a test says against the answer
    that was not proven.
    """
    told: list[str] = []
    if not describe_outcome(run):
        told += [f"{clause}." for clause in describe_dissent(run)]
    if run.winner is not None and run.winner.challenge == "unproven":
        told.append(
            "The answer fails a test that an agent from another vendor wrote, but no other agent confirmed the test."
        )
    return told
