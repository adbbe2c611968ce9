"""`run_command` of an agent, and its long form: begin in the background, read what was printed, stop.

A command runs in the sandbox, in the agent's workspace, and nowhere else: where the sandbox fails it does not run. Must
not know how a level of the sandbox works.
"""

import json
import os
import secrets
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import AfterValidator, Field

from massgen_mcp.backends.base import RUN_COMMAND, JsonObject, ToolSpec
from massgen_mcp.sandbox import (
    SCRATCH,
    Ended,
    Network,
    NetworkFailed,
    Policy,
    SandboxedProcess,
    SandboxFailed,
    build_shell_command,
    spawn,
)
from massgen_mcp.sandbox.levels import CONTAINERS
from massgen_mcp.sandbox.process import MISSED_TERMINAL, Output, how_ended, take, until_it_waits
from massgen_mcp.tools.base import (
    Arguments,
    CheckedTool,
    Tool,
    ToolRefused,
    ToolResult,
    WellFormedText,
    tool_spec,
    well_formed,
)
from massgen_mcp.tools.command_policy import CommandRules, policy_now
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.directory import Workspace

MAX_IN_BACKGROUND = 8
MAX_SHOWN = 200
SHOWN_HEAD, SHOWN_TAIL = 4_000, 6_000
"""Characters of a longer output that a model reads; all of it lies in a file."""
NO_TERMINAL = (
    "There is no terminal, and nothing on standard input. Give the program what it asks for by its options, a file or "
    "a pipe; with `background` a command may wait."
)
MARKS = 2
"""Around a result."""
KEPT_BYTES = 4 * 1024 * 1024
"""Of the beginning of an output, for that file."""


def _without_nul(command: str) -> str:
    if "\0" in command:
        raise ValueError("holds a NUL character")
    return command


class RunCommand(Arguments):
    command: Annotated[WellFormedText, Field(min_length=1, max_length=100_000), AfterValidator(_without_nul)]
    timeout_seconds: float = Field(gt=0, le=86_400, default_factory=float)
    """Left out, which is 0: the usual time."""
    background: bool = False
    name: Annotated[str, Field(max_length=40, pattern=r"^[\w.-]*$")] = ""
    """Of a command in the background; left out: one is made."""


class ReadCommand(Arguments):
    name: str = ""
    """Left out: all of them are listed."""
    wait_seconds: Annotated[float, Field(ge=0, le=300)] = 0


class StopCommand(Arguments):
    name: str


@dataclass(slots=True)
class Background:
    """A command that goes on beside the agent's work."""

    name: str
    command: str
    output: Output = field(default_factory=partial(Output, KEPT_BYTES))
    ended: Ended | None = None
    too_much: bool = False
    stop: anyio.Event = field(default_factory=anyio.Event)
    news: anyio.Event = field(default_factory=anyio.Event)

    def tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()


class CommandHost:
    """Where the commands in the background of one run live, and the networks of its agents: they end with the block
    that it is opened in.
    """

    def __init__(self, tasks: TaskGroup, networks: set[Network]) -> None:
        self.tasks = tasks
        self.networks = networks

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncGenerator["CommandHost"]:
        networks: set[Network] = set()
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    yield cls(tasks, networks)
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                for network in networks:
                    await network.close()


class AgentCommands:
    """The commands of one agent."""

    def __init__(
        self, workspace: Workspace, place: Path, scratch: Path, rules: CommandRules, host: CommandHost
    ) -> None:
        """`place`: where the workspace lies on this machine."""
        self._workspace = workspace
        self._place = place
        self._scratch = scratch
        self._rules = rules
        self._host = host
        self._background: dict[str, Background] = {}
        self._network: Network | None = None
        """What the commands of this round have together."""
        self._opening = anyio.Lock()

    def tools(self) -> tuple[Tool, ...]:
        return (
            CommandTool(_run_spec(self._rules), RunCommand, self._act, side_effects=True),
            CheckedTool(_READ, ReadCommand, self.read),
            CheckedTool(_STOP, StopCommand, self.stop),
        )

    async def _act(self, wanted: RunCommand) -> ToolResult:
        try:
            await self.check(wanted)
            return await (
                self.begin(wanted) if wanted.background else self._run(wanted.command, wanted.timeout_seconds)
            )
        except SandboxFailed as failed:
            raise ToolRefused(f"The sandbox could not be started, so the command did not run: {failed}") from failed

    async def end_all(self) -> None:
        """End what runs in the background, and the network of this round, and wait for that."""
        for one in self._background.values():
            one.stop.set()
        for one in self._background.values():
            while one.ended is None:
                await one.news.wait()
        network, self._network = self._network, None
        if network is not None:
            self._host.networks.discard(network)
            await network.close()

    async def _shared_network(self, *, background: bool) -> tuple[Network | None, str]:
        """The network of this round, and what the agent should know of it. It is opened for the first command that
        another one could reach, or that may connect to a host: until then nothing tells it from networks apart.
        """
        rules = self._rules
        if rules.level != "bubblewrap" or not (background or rules.network or self._network):
            return None, "[Your other commands cannot reach its ports in this sandbox.]"
        async with self._opening:
            if self._network is None:
                try:
                    self._network = await Network.open(rules.network)
                except (NetworkFailed, OSError) as failed:
                    if rules.network:
                        raise SandboxFailed(f"bubblewrap: {failed}") from failed
                    return None, f"[Your other commands cannot reach its ports: {failed}]"
                self._host.networks.add(self._network)
            return self._network, "[Your other commands reach its ports at localhost.]"

    async def check(self, wanted: RunCommand) -> None:
        """Raises `ToolRefused` for what the config's rule is against."""
        if self._rules.allowed or self._rules.blocked:
            await anyio.to_thread.run_sync(self._rules.check, wanted.command)

    async def run_script(self, script: str, mark: str) -> ToolResult:
        """Run Python, and return the JSON text that it prints between two `mark`s; without them, all that it prints."""
        await self._policy(0)  # makes the scratch directory
        name = await anyio.to_thread.run_sync(_saved_output, self._scratch, script)
        try:
            return await self._run(f"exec python3 {SCRATCH}/{name}", 0, mark)
        finally:
            await anyio.to_thread.run_sync(_removed, self._scratch, name)

    async def _run(self, command: str, wanted_seconds: float, mark: str = "") -> ToolResult:
        seconds = min(wanted_seconds or self._rules.usual_seconds, self._rules.most_seconds)
        policy, notes = await self._policy(seconds)
        output = Output(KEPT_BYTES)
        network, _ = await self._shared_network(background=False)
        async with spawn(build_shell_command(command), policy, self._rules.level, network=network) as process:
            waits, too_much = await self._take(process, output)
            ended = await process.wait()
        parts = output.text().split(mark) if mark else []
        if len(parts) > MARKS and not ended.code and (printed := _text_in(parts[-MARKS])) is not None:
            return ToolResult(await anyio.to_thread.run_sync(self._shortened, printed), foreign=True)
        text = await anyio.to_thread.run_sync(self._shortened, output.text())
        if waits:
            notes.append(f"[It waited for somebody. {NO_TERMINAL}]")
        elif ended.code and MISSED_TERMINAL.search(text):
            notes.append(f"[{NO_TERMINAL}]")
        finished = _finished(ended, text, notes, limit=seconds, too_much=too_much)
        return replace(finished, is_error=True) if mark else finished

    async def _take(self, process: SandboxedProcess, output: Output) -> tuple[bool, bool]:
        """Whether it was ended because it waits for somebody, and because it printed too much."""
        waits = too_much = False

        async def end_if_it_waits() -> None:
            nonlocal waits
            await until_it_waits(process, output)
            waits = True
            await process.stop()

        async with anyio.create_task_group() as tasks:
            if self._rules.level not in CONTAINERS:
                tasks.start_soon(end_if_it_waits)
            too_much = await take(process, output)
            tasks.cancel_scope.cancel()
        return waits, too_much

    async def begin(self, wanted: RunCommand) -> ToolResult:
        if sum(one.ended is None for one in self._background.values()) >= MAX_IN_BACKGROUND:
            raise ToolRefused(f"{MAX_IN_BACKGROUND} commands run in the background; stop one first")
        seconds = min(wanted.timeout_seconds or self._rules.most_seconds, self._rules.most_seconds)
        policy, notes = await self._policy(seconds)
        network, reach = await self._shared_network(background=True)
        one = Background(wanted.name or self._free_name(), wanted.command)
        if (known := self._background.get(one.name)) is not None and known.ended is None:
            raise ToolRefused(f"{one.name} is running; stop it first, or take another name")
        self._background[one.name] = one
        self._host.tasks.start_soon(self._keep, one, policy, network)
        started = (
            f"runs in the background as {one.name} until your turn ends; read_command tells what it prints, "
            "stop_command ends it"
        )
        return ToolResult("\n".join([started, reach, *notes]))

    async def read(self, wanted: ReadCommand) -> ToolResult:
        if not wanted.name:
            return ToolResult(
                "\n".join(map(_describe_state, self._background.values())) or "nothing runs in the background"
            )
        one = self._command_named(wanted.name)
        with anyio.move_on_after(wanted.wait_seconds):
            while one.ended is None and not one.output.total:
                await one.news.wait()
        return await anyio.to_thread.run_sync(self._output_so_far, one)

    async def stop(self, wanted: StopCommand) -> ToolResult:
        one = self._command_named(wanted.name)
        one.stop.set()
        while one.ended is None:
            await one.news.wait()
        return await anyio.to_thread.run_sync(self._output_so_far, one)

    def _output_so_far(self, one: Background) -> ToolResult:
        text = self._shortened(one.output.text())
        one.output.forget()
        if one.ended is None:
            return ToolResult(f"{one.name} is running\n{text}".rstrip(), foreign=bool(text))
        return _finished(one.ended, text, (), limit=self._rules.most_seconds, too_much=one.too_much)

    def _shortened(self, text: str) -> str:
        """The beginning and the end of a long output, all of which is kept where the agent's commands can read it."""
        if len(text) <= SHOWN_HEAD + SHOWN_TAIL:
            return text
        left_out = f"{len(text) - SHOWN_HEAD - SHOWN_TAIL:,} characters are left out here"
        try:
            name = _saved_output(self._scratch, text)
        except OSError:  # the scratch directory is full, or the agent has made something else of it
            where = "; print less to see them"
        else:
            where = f"; read them by lines, as with: sed -n '200,400p' {SCRATCH}/{name}"
        return f"{text[:SHOWN_HEAD]}\n[{left_out}{where}]\n{text[-SHOWN_TAIL:]}"

    def _free_name(self) -> str:
        return next(name for at in count(1) if (name := f"c{at}") not in self._background)

    def _command_named(self, name: str) -> Background:
        if one := self._background.get(name):
            return one
        known = ", ".join(self._background) or "none"
        raise ToolRefused(f"there is no command {name[:20]!a} in the background; there is: {known}")

    async def _keep(self, one: Background, policy: Policy, network: Network | None) -> None:
        """The life of a command in the background."""
        ended = Ended("stopped")
        try:
            async with spawn(build_shell_command(one.command), policy, self._rules.level, network=network) as process:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_stop_when, one.stop, process)
                    one.too_much = await take(process, one.output, one.tell)
                    tasks.cancel_scope.cancel()
                ended = await process.wait()
        except SandboxFailed as failed:
            ended = Ended("failed", message=str(failed))
        finally:
            one.ended = ended
            one.tell()

    async def _policy(self, seconds: float) -> tuple[Policy, list[str]]:
        return await anyio.to_thread.run_sync(
            policy_now, self._workspace, self._place, self._scratch, self._rules, seconds
        )


class CommandTool(CheckedTool[RunCommand]):
    """`run_command`."""

    def shown(self, arguments: JsonObject) -> str:
        return str(arguments.get("command", ""))[:MAX_SHOWN]


def _run_spec(rules: CommandRules) -> ToolSpec:
    description = (
        f"Run a command of bash, or of sh where there is no bash, in a sandbox, in your workspace. {rules.described()} "
        "Each one is a new shell that begins there, without a terminal and with nothing on standard input. "
        "With `background` it goes on beside your work."
    )
    return tool_spec(RUN_COMMAND, description, RunCommand)


_READ = tool_spec(
    "read_command",
    "What a command in the background printed since you last read it; without a name, which there are.",
    ReadCommand,
)
_STOP = tool_spec("stop_command", "End a command in the background.", StopCommand)


def _saved_output(directory: Path, text: str) -> str:
    """The name of a new file that holds it. Commands write to the directory, so no link in it is followed."""
    name = f"output-{secrets.token_hex(4)}.txt"
    with openat.closing(os.open(directory, openat.DIRECTORY_FLAGS)) as place:
        opened = os.open(name, openat.NEW_FILE_FLAGS, 0o644, dir_fd=place)
        with os.fdopen(opened, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    return name


def _removed(directory: Path, name: str) -> None:
    with suppress(OSError), openat.closing(os.open(directory, openat.DIRECTORY_FLAGS)) as place:
        os.unlink(name, dir_fd=place)


def _text_in(document: str) -> str | None:
    with suppress(ValueError):
        text: object = json.loads(document)
        return well_formed(text) if isinstance(text, str) else None
    return None


async def _stop_when(wanted: anyio.Event, process: SandboxedProcess) -> None:
    await wanted.wait()
    await process.stop()


def _describe_state(one: Background) -> str:
    return f"{one.name}: {'is running' if one.ended is None else 'has ended'}: {one.command[:MAX_SHOWN]}"


def _finished(ended: Ended, text: str, notes: Iterable[str], *, limit: float, too_much: bool) -> ToolResult:
    bad = too_much or ended.reason != "exited"
    whole = "\n".join([f"[{how_ended(ended, limit, too_much=too_much)}, {ended.seconds:.1f} s]", *notes, text])
    return ToolResult(whole.rstrip("\n"), is_error=bad, foreign=bool(text))
