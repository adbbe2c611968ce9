"""`start_run`: the run's id and its team; after a wait that saw the end, the first page of the result, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from massgen_mcp.config.loader import missing_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.money.estimate import Estimate
from massgen_mcp.request.reach import Reach
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import Json, ResultPart, ToolReply, json_bytes, lines
from massgen_mcp.server.results.result import Result, first_page
from massgen_mcp.server.results.words import choose_waiting, next_step, note_on_team, reason_of, team_of, team_text
from massgen_mcp.views.checks import CheckState, TriedCheck
from massgen_mcp.views.plain_text import preview

if TYPE_CHECKING:  # most replies are about runs that have long begun
    from massgen_mcp.request.team import Team

SOURCE_CHARACTERS = 500
REACH_CHARACTERS = 1_000
IGNORED_CHARACTERS = 1_000
NOTE_CHARACTERS = 1_000
CHECK_CHARACTERS, CURE_CHARACTERS = 100, 300


class Begun(ResultPart):
    """What is told of a start, however it goes on."""

    reused: bool | None = None
    """Whether an earlier run of the same key is meant. Absent in a plan."""
    source: str
    """Where the team came from."""
    ignored: str | None = None
    """What of the config was ignored, and why."""
    reach: str | None = None
    """Which hosts are asked, with which key variables, and which paths are read and written. Absent after the end."""
    estimate: str | None = None
    """What the run may cost and how many calls it takes. Absent after the end."""

    def body(self) -> str:
        reused = {None: None, True: "reused: an earlier run with this key", False: "new run"}[self.reused]
        return lines(
            f"source: {self.source}",
            self.ignored,
            reused,
            *(f"{name}: {value}" for name, value in (("reach", self.reach), ("estimate", self.estimate)) if value),
        )


class BaseCheck(ResultPart):
    command: str
    """The check."""
    state: CheckState
    """On the unchanged files: `passed`; `failed` for the code; `void` for the environment, so that it says nothing of
    the code; `unfinished` in time; `untried`.
    """
    how: str | None = None
    """How it ended, in words."""
    cure: str | None = None
    """What helps where it is void, or where the sandbox may have made it fail."""

    def text(self) -> str:
        how = f" ({self.how})" if self.how is not None else ""
        return f"check {self.state}: {self.command}{how}{f'. Fix: {self.cure}' if self.cure is not None else ''}"


class Waiting(ResultPart):
    """A run that is planned, or goes on."""

    run_id: str | None = None
    """What every other tool takes. Absent in a plan."""
    status: RunStatus | Literal["planned"]
    """`planned` with `dry_run`, else where the run stands."""
    team: dict[str, str]
    """Each agent's id, and its model as provider/model."""
    checks: list[BaseCheck] | None = None
    """How the checks stand on the unchanged files: in a plan as they are now, else as they were when they ran last. The
    run tries them before it asks a model.
    """
    missing_keys: list[str] | None = None
    """In a plan: variables of keys that are not set."""
    reason: str | None = None
    """Why it does not go on, or waits in the queue."""
    note: str | None = None
    """What else is worth knowing, such as the sandbox of commands."""
    next_step: str
    """What to call next."""

    def structured(self) -> Json:
        return self.model_dump(mode="json", exclude_none=True)

    def body(self) -> str:
        """All but what to do next."""
        return lines(
            f"{self.run_id}: {self.status}" if self.run_id is not None else self.status,
            f"team: {team_text(self.team)}",
            *(check.text() for check in self.checks or ()),
            f"missing: {', '.join(self.missing_keys)}" if self.missing_keys else None,
            self.reason,
            self.note,
        )


class Started(ToolReply):
    shown: Waiting | Result
    begun: Begun
    session_note: str = ""
    """What the caller should know about the run's session."""

    def structured(self) -> Json:
        shown = self.shown.structured()
        following = f"{self.session_note}{shown.pop('next_step')}"
        return {**shown, **self.begun.model_dump(exclude_none=True), "next_step": following}

    def text(self) -> str:
        return lines(self.shown.body(), self.begun.body(), f"{self.session_note}{self.shown.next_step}")

    @classmethod
    def schema_sources(cls) -> tuple[type[BaseModel], ...]:
        return (Begun, Waiting, Result)


@dataclass(frozen=True, slots=True)
class StartFacts:
    """Facts about a run that are known before it starts."""

    team: "Team"
    reach: Reach
    expected: Estimate
    aside: str = ""
    """A note to the caller about the team."""
    checks: Sequence[TriedCheck] = ()


def planned(facts: StartFacts, environ: Mapping[str, str], where_keys_go: str) -> Started:
    config, checks = facts.team.config, facts.checks
    missing = missing_keys(config, environ)
    shown = Waiting(
        status="planned",
        team=team_of(config),
        checks=_checks(checks),
        missing_keys=missing,
        note=_notes(config, facts.aside),
        next_step=f"Set {', '.join(missing)}. {where_keys_go}" if missing else _after_plan(checks),
    )
    return Started(shown=shown, begun=_begun(facts))


def started(view: RunView, facts: StartFacts, *, reused: bool, note: str, woken: bool = False) -> Started:
    """`note`: what the caller should know about the run's session; `woken`: whether the end of the run wakes the
    caller.
    """
    begun = _begun(facts, reused=reused)
    if view.ended and view.damage is None:
        begun = begun.model_copy(update={"reach": None, "estimate": None, "reused": reused or None})
        spare = json_bytes([begun.model_dump(), note])
        return Started(shown=first_page(view, spare=spare), begun=begun, session_note=note)
    shown = Waiting(
        run_id=view.row.run_id,
        status=view.state,
        team=team_of(facts.team.config),
        checks=_checks(facts.checks),
        reason=reason_of(view),
        note=_notes(facts.team.config, facts.aside),
        next_step=next_step(view, choose_waiting(woken=woken)),
    )
    return Started(shown=shown, begun=begun, session_note=note)


def _checks(tried: Sequence[TriedCheck]) -> list[BaseCheck] | None:
    return [
        BaseCheck(
            command=preview(one.command, CHECK_CHARACTERS),
            state=one.state,
            how=preview(one.how, CHECK_CHARACTERS) or None,
            cure=preview(one.cure, CURE_CHARACTERS) or None,
        )
        for one in tried
    ] or None


def _after_plan(checks: Sequence[TriedCheck]) -> str:
    if any(one.state == "void" for one in checks):
        return "Fix the checks marked void (they prove nothing), then call start_run without dry_run."
    return "Call start_run without dry_run."


def _notes(config: Config, aside: str) -> str | None:
    return preview(" ".join(filter(None, (note_on_team(config), aside))), NOTE_CHARACTERS) or None


def _begun(facts: StartFacts, *, reused: bool | None = None) -> Begun:
    team = facts.team
    return Begun(
        reused=reused,
        source=preview(team.source, SOURCE_CHARACTERS),
        ignored=preview(team.note, IGNORED_CHARACTERS) if team.note else None,
        reach=preview(str(facts.reach), REACH_CHARACTERS),
        estimate=str(facts.expected),
    )
