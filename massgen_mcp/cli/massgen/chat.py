"""The interactive mode: question after question to one team, which knows what was said before. Each turn is a run.

A person at a terminal gets a line editor and the live view, a pipe gets plain lines.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Literal

from massgen_mcp.cli.asking import on_terminal, person_at_terminal
from massgen_mcp.cli.exits import EXIT_OK, exit_of_foreground
from massgen_mcp.cli.live.telling import Telling, open_terminal, print_styled
from massgen_mcp.cli.massgen.applying import apply_at_end, can_ask, find_consent
from massgen_mcp.cli.massgen.display import OwnTerminal
from massgen_mcp.cli.massgen.earlier_runs import describe_interrupted, interrupted_here, open_session, run_to_continue
from massgen_mcp.cli.massgen.one_run import execute_shown, tell_end, write_answer
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.massgen.questions import PipeReader, Reader, mentioned_paths
from massgen_mcp.cli.massgen.reporting import way_back
from massgen_mcp.cli.massgen.team import agreed_to_checks, find_team, given_of, look_before, output_file
from massgen_mcp.cli.output import print_line, print_lines, print_text
from massgen_mcp.cli.process import raise_on_interrupt
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.examples import example_name
from massgen_mcp.config.models.config import AgentSettings, Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest
from massgen_mcp.request.build import build_request
from massgen_mcp.request.team import Team, describe_start
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.doctor.command_sandbox import sandbox_note
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.foreground import continue_here, run_here, temporary_project
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.runs.patches.earlier_changes import WINNER
from massgen_mcp.runs.sessions.project import CHAT_HISTORY, PROJECT_FILES, own_place
from massgen_mcp.runs.sessions.session_records import SessionRecords, SessionTurn
from massgen_mcp.views.banner import banner, mode_of, team_box
from massgen_mcp.views.coordination_record import draw_history
from massgen_mcp.views.ending import RemainingFiles, outcome_line
from massgen_mcp.views.plain_text import counted, plain, preview
from massgen_mcp.views.styled import Line, Span

ChatAction = Literal["help", "status", "config", "reset", "resume", "change", "quit", "history"]


@dataclass(frozen=True, slots=True)
class ChatCommand:
    names: tuple[str, ...]
    action: ChatAction
    meaning: str
    argument: bool = False
    """Whether one word may follow the name."""


COMMANDS = (
    ChatCommand(("/help", "/h"), "help", "show the commands"),
    ChatCommand(("/status",), "status", "show the agents, mode, conversation and config"),
    ChatCommand(("/config",), "config", "edit the config in your editor, then use it"),
    ChatCommand(("/clear", "/reset"), "reset", "forget the conversation and start a new one"),
    ChatCommand(("/resume",), "resume", "continue an interrupted run: the newest here, or /resume ID", argument=True),
    ChatCommand(
        ("/change",),
        "change",
        "start the next turn from the winner's changes; /change AGENT uses that agent's",
        argument=True,
    ),
    ChatCommand(("/quit", "/exit", "/q"), "quit", "leave"),
)
KEYS = (
    ("r", "show the history of the current turn, or of the last one"),
    ("Ctrl+C", "cancel the turn; to leave, press it twice or at the prompt"),
    ("Alt+Enter", "start a new line in the question"),
    ("@path", "let agents read a file or directory"),
)
MEANINGS = {name: command.meaning for command in COMMANDS for name in command.names}


BARE = ("help", "quit", "exit")
"""Commands also without their stroke: as questions they would only cost money."""


def order_of(text: str) -> tuple[ChatAction, str] | None:
    """What a line asks for, and the word after it; None if it is a question.

    Raises `MassgenError` invalid_action for an unknown command.
    """
    if text == "r":
        return "history", ""
    if text.lower() in BARE:
        text = f"/{text}"
    name, _, argument = text.partition(" ")
    for command in COMMANDS:
        if name.lower() in command.names and (not argument or (command.argument and len(argument.split()) == 1)):
            return command.action, argument.strip()
    if not re.fullmatch(r"/[A-Za-z_?-]*", text):
        return None
    begun = (name for name in MEANINGS if len(text) > 1 and name.startswith(text.lower()))
    near = next(begun, None) or nearest(text, MEANINGS)
    hint = f"did you mean {near}?" if near else "/help lists them"
    raise MassgenError("invalid_action", f"unknown command {text}; {hint}")


if TYPE_CHECKING:
    from massgen_mcp.cli.live.terminal import Terminal

PIPE_WIDTH = 100


async def chat(options: Options) -> int:
    """Talk until the person leaves. The exit code is 0 for a person, that of the last turn for a pipe.

    Raises `MassgenError` for whatever keeps the conversation from beginning.
    """
    if (output := output_file(options)) is not None:
        output.check()
    team = await find_team(options, cwd=Path.cwd(), environ=os.environ)
    notes = await look_before(options, team)
    terminal = open_terminal(wanted=person_at_terminal(os.environ) and not options.plain)
    with temporary_project() if options.no_logs else nullcontext(Path.cwd()) as project:
        session = open_session(project, options.session_id) if options.session_id else None
        return await _Conversation(options, team, terminal, project, session).hold(notes)


@dataclass
class _Conversation:
    options: Options
    team: Team
    terminal: "Terminal | None"
    project: Path
    session: SessionRecords | None
    """None until the first question: a conversation without one leaves nothing behind."""
    last: tuple[RunState, RunFiles] | None = None
    exit_code: int = EXIT_OK
    """The exit code of the last turn."""
    agreed: bool = False
    """The checks were tried, and the person wants to go on."""
    own_terminal: OwnTerminal = field(default_factory=OwnTerminal)

    async def hold(self, notes: Sequence[str]) -> int:
        """`notes`: what a person should know of the team before the first question."""
        await self._greet(notes)
        await self._tell_interrupted()
        reader = self._reader()
        while not self.own_terminal.left and (text := await reader.read()) is not None:
            try:
                if not await self._answer(text.strip()):
                    break
            except MassgenError as error:
                self._show([(Span(plain(part), "bad"),) for part in str(error).splitlines()])
        self._show([(Span("Left the conversation.", "dim"),)])
        return EXIT_OK if self.terminal is not None else self.exit_code

    def _reader(self) -> Reader:
        if self.terminal is None:
            return PipeReader()
        from massgen_mcp.cli.massgen.line_editor import TerminalReader  # a terminal library, for terminals only

        history = None if self.options.no_logs else own_place(Path.cwd(), CHAT_HISTORY)
        return TerminalReader(self.terminal, MEANINGS, history, self._without_keys)

    def _without_keys(self, text: str) -> str:
        return redactor_for(os.environ, [agent.backend for agent in self.team.config.agents]).text(text)

    async def _answer(self, text: str) -> bool:
        """Heed one input; False if it was to leave."""
        order = order_of(text)
        if order is None and text:
            await self._take_turn(text)
        if order is not None:
            await self._do(*order)
        return order is None or order[0] != "quit"

    # -- a turn -------------------------------------------------------------------------------------------------------

    async def _take_turn(self, question: str) -> None:
        cwd, team = Path.cwd(), self.team
        paths = mentioned_paths(question, team.config, cwd) if self.terminal is not None else ()
        given = given_of(self.options, question, cwd=cwd, environ=os.environ)
        in_session = replace(
            given,
            team=team,
            context_paths=paths,
            session_id=self.session.session_id if self.session else None,
            begins_session=self.session is None,
            project=self.project,
        )
        request = await build_request(in_session)
        if not await self._checks_agreed(request.team):
            self._show([(Span("Nothing was started."),)])
            return
        with run_here(request) as run:
            self.session = run.session
            self.options = replace(self.options, changes_of=None)
            self._show([(Span(note, "dim"),) for note in (run.note, run.begins_with) if note])
            if self.terminal is not None:
                self._show([(Span(way_back(run), "dim"),)])
            await self._execute(run, request.config)

    async def _checks_agreed(self, team: Team) -> bool:
        """Asked until the person agrees, and anew where the team changes."""
        if not self.agreed and can_ask(self.options, os.environ):
            self.agreed = await agreed_to_checks(team, lambda text: self._show([(Span(plain(text), "dim"),)]))
            return self.agreed
        return True

    async def _resume(self, beginning: str) -> None:
        """Go on with an interrupted run. A killed turn counts from then on, and a conversation that has not begun yet
        goes on with its session.
        """
        if self.options.no_logs:
            raise MassgenError("invalid_action", "--no-logs keeps nothing to resume; start massgen without it")
        view = await run_to_continue(beginning, Path.cwd())
        with continue_here(view.row, environ=os.environ) as run:
            if self.session is None and run.session is not None and run.directory.path.is_relative_to(self.project):
                self.session = run.session
                self._show([self._going_on(run.session)])
            await self._execute(run, view.directory.read_request().config)

    async def _execute(self, run: ForegroundRun, config: Config) -> None:
        ended = await execute_shown(run, self.options, self.own_terminal, await run.usual_time())
        self.last = (ended, run.directory)
        self._show_result(ended)
        fault = write_answer(ended, self.options)
        await tell_end(run.run_id, ended, self.options)
        consent = find_consent(self.options, config, os.environ)
        may_apply = consent != "asked" or not self.own_terminal.left
        applied = await apply_at_end(run, ended, self.options, consent) if may_apply else []
        self.exit_code = exit_of_foreground(ended, refused=any(outcome.failed for outcome in applied))
        print_lines(outcome.text for outcome in applied)
        raise_on_interrupt()
        if fault is not None:
            raise fault

    def _show_result(self, run: RunState) -> None:
        answer = run.best_answer
        if self.terminal is not None:
            Telling(self.terminal, print_line).ending(run, RemainingFiles())
            self.terminal.print([()])
        else:
            self._show([outcome_line(run)])
            print_text(f"\n{answer}\n" if answer is not None else "")

    # -- commands -----------------------------------------------------------------------------------------------------

    async def _do(self, action: ChatAction, argument: str) -> None:
        match action:
            case "help":
                self._show(_help())
            case "status":
                self._show(self._status())
            case "history":
                self._show_history()
            case "reset":
                self._reset()
            case "config":
                await self._edit_config()
            case "resume":
                await self._resume(argument)
            case "change":
                self.options = replace(self.options, changes_of=argument or WINNER)
                self._show([(Span(f"The next turn starts from {plain(argument or 'the winner')}'s changes.", "good"),)])
            case "quit":
                pass

    def _status(self) -> list[Line]:
        turns = self.session.turns if self.session else ()
        rows = [
            ("Mode", mode_of(self.team.config)),
            *zip(["Agents", *([""] * 9)], (_member(agent) for agent in self.team.config.agents), strict=False),
            ("Config", str(self.team.path or self.team.source)),
            ("Session", self.session.session_id if self.session else "starts with your first question"),
            ("Conversation", counted(len(turns), "turn")),
            *((f"  {turn.number}", _turn_line(turn, self._width - 13)) for turn in turns),
        ]
        return [(Span(f"{name:<13}", "dim"), Span(plain(value))) for name, value in rows]

    def _show_history(self) -> None:
        if self.last is None:
            self._show([(Span("The agents haven't started yet.", "dim"),)])
            return
        snapshot, run = self.last
        table = draw_history(snapshot, run.event_log.read(text=False), width=self._width)
        self._show([(Span(row),) for row in table.splitlines()])

    def _reset(self) -> None:
        """The next question begins a session of its own; this one stays, and can be resumed."""
        left = self.session
        self.session = None
        self.last = None
        kept = f" {left.session_id} is kept." if left is not None and not self.options.no_logs else ""
        self._show([(Span(f"Conversation cleared.{kept}", "good"),)])

    async def _edit_config(self) -> None:
        """Open the config in the person's editor and take over what has become of it, if it is right."""
        if self.terminal is None:
            raise MassgenError("invalid_action", "/config needs a terminal")
        path = editable(self.team, Path.cwd())
        edit(path, os.environ)
        options = replace(self.options, config=str(path))
        try:
            team = await find_team(options, cwd=Path.cwd(), environ=os.environ)
            notes = await look_before(options, team)
        except MassgenError as error:
            self._show([(Span("The config has errors, so the team stays the same:", "bad"),)])
            raise error from None
        self.options, self.team, self.agreed = options, team, False
        self._show([(Span(f"Config: {path}", "good"),), *team_box(team.config, self.terminal.width)])
        self._show(await self._start(notes))

    # -- showing ------------------------------------------------------------------------------------------------------

    async def _greet(self, notes: Sequence[str]) -> None:
        config = self.team.config
        if self.terminal is None:
            print_line(f"massgen · {mode_of(config)}: {', '.join(map(_member, config.agents))}")
        else:
            self.terminal.print([*banner(config, width=self.terminal.width), ()])
        self._show(await self._start(notes))
        if self.session is not None:
            self._show([self._going_on(self.session)])

    async def _tell_interrupted(self) -> None:
        if on_terminal() and not self.options.no_logs and (runs := await interrupted_here(Path.cwd())):
            self._show([(Span(plain(describe_interrupted(runs, "/resume")), "busy"),)])

    @staticmethod
    def _going_on(session: SessionRecords) -> Line:
        return (Span(f"Continuing {session.session_id}: {counted(len(session.turns), 'turn')} so far.", "good"),)

    async def _start(self, notes: Sequence[str]) -> list[Line]:
        start = describe_start(self.team.config, self.team.source, os.environ, Path.cwd())
        lines = [f"Team: {start}", *(f"Note: {note}" for note in notes)]
        lines += filter(None, [await sandbox_note(self.team.config, os.environ)])
        return [(Span(plain(line), "dim"),) for line in lines]

    @property
    def _width(self) -> int:
        return self.terminal.width if self.terminal else PIPE_WIDTH

    def _show(self, lines: Sequence[Line]) -> None:
        print_styled(lines, self.terminal)


def _member(agent: AgentSettings) -> str:
    return f"{agent.id} ({agent.backend.model})"


def _turn_line(turn: SessionTurn, width: int) -> str:
    state = f" [{turn.state}]"
    return preview(turn.question, max(10, min(80, width - len(state)))) + state


def _help() -> list[Line]:
    commands = [(", ".join(command.names), command.meaning) for command in COMMANDS]
    return [(Span(f"{names:<18}", "strong"), Span(meaning)) for names, meaning in (*commands, *KEYS)]


# ---------------------------------------------------------------------------------------------------------------------
# A file in the person's own editor.


def editable(team: Team, cwd: Path) -> Path:
    """The config to open. A packaged one is copied into the project first, so that an update does not undo the edit.

    Raises `MassgenError` invalid_action if the team came from no file, store_unavailable if it cannot be copied.
    """
    if team.path is None:
        raise MassgenError("invalid_action", f"this team has no config file to open ({team.source})")
    name = example_name(team.path)
    if name is None:
        return team.path
    copy = own_place(cwd, PROJECT_FILES / f"{name.replace('/', '-')}.yaml")
    try:
        if not copy.exists():
            copy.parent.mkdir(mode=0o700, exist_ok=True)
            copy.write_bytes(team.path.read_bytes())
    except OSError as error:
        raise MassgenError("store_unavailable", f"cannot copy {name} to {copy}: {error.strerror}") from error
    return copy


def edit(path: Path, environ: Mapping[str, str]) -> None:
    """Open the file and wait until the person is done. Raises `MassgenError` invalid_action if there is no editor."""
    command = _editor(environ)
    if command is None:
        raise MassgenError(
            "invalid_action",
            f"no editor found; set the environment variable EDITOR, or edit {path} yourself and type /config",
        )
    try:
        subprocess.run([*command, str(path)], check=False)  # noqa: S603 - the person's own command
    except OSError as error:
        raise MassgenError("invalid_action", f"cannot start {command[0]}: {error.strerror}; set EDITOR") from error


def _editor(environ: Mapping[str, str]) -> list[str] | None:
    """VISUAL, EDITOR, else what the operating system offers."""
    for name in ("VISUAL", "EDITOR"):
        if chosen := environ.get(name, "").strip():
            return shlex.split(chosen)
    defaults = {"darwin": ["open -W -t"], "win32": ["notepad"]}.get(
        sys.platform, ["sensible-editor", "editor", "nano", "vim", "vi"]
    )
    return next((shlex.split(name) for name in defaults if which(shlex.split(name)[0])), None)
