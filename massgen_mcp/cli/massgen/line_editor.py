"""The line editor of a person at a terminal, with what it completes and remembers."""

import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path

import anyio
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from massgen_mcp.cli.live.terminal import Terminal
from massgen_mcp.cli.massgen.questions import PROMPT

HINT = "/ for commands, @ for files"


class TerminalReader:
    """A line editor: history, completion, several lines with Alt+Enter or by pasting.

    Ctrl+C clears what is typed, and leaves when there is nothing; Ctrl+D leaves.
    """

    def __init__(
        self, terminal: Terminal, commands: Mapping[str, str], history: Path | None, keyless: Callable[[str], str]
    ) -> None:
        self._terminal = terminal
        completer = _Completer(commands)
        self._session: PromptSession[str] = PromptSession(
            completer=completer,
            complete_while_typing=True,
            history=_history(history, keyless),
            key_bindings=_keys(completer),
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            reserve_space_for_menu=6,
            style=terminal.style,
            color_depth=terminal.depth,
            output=terminal.output,
        )
        self._session.app.renderer.cpr_not_supported_callback = None

    async def read(self) -> str | None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._leave_on, signals)
                try:
                    return await self._session.prompt_async(
                        FormattedText([("class:m-good", PROMPT)]),
                        placeholder=self._placeholder,
                        handle_sigint=False,
                        set_exception_handler=False,
                    )
                except (EOFError, KeyboardInterrupt):
                    return None
                finally:
                    tasks.cancel_scope.cancel()

    def _placeholder(self) -> FormattedText:
        """Nothing of it stays in the scrollback."""
        return FormattedText() if self._session.app.is_done else FormattedText([("class:m-dim", HINT)])

    async def _leave_on(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for _ in signals:
            if self._session.app.is_running:
                self._session.app.exit(exception=EOFError())


def _history(path: Path | None, keyless: Callable[[str], str]) -> History:
    """What was typed before, in a file of this user's alone."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return _KeptHistory(path, keyless)


class _KeptHistory(FileHistory):
    """`keyless` takes keys out of what goes to the file."""

    def __init__(self, path: Path, keyless: Callable[[str], str]) -> None:
        super().__init__(path)
        self._keyless = keyless

    def store_string(self, string: str) -> None:
        super().store_string(self._keyless(string))


def _keys(completer: Completer) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("tab")
    def complete(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
            return
        found = list(completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:  # at once, for those who type ahead of the menu
            buffer.apply_completion(found[0])
        else:
            buffer.start_completion()

    @keys.add("c-c")
    def clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt())

    _ = send, new_line, complete, clear_or_leave
    return keys


class _Completer(Completer):
    """Commands at the beginning of a line, paths after an @."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._commands = commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and not any(character.isspace() for character in before):
            return self._matching(before)
        mentioned = re.search(r"(?:^|\s)@(\S*)$", before)
        if mentioned:
            return self._paths.get_completions(Document(mentioned[1]), complete_event)
        return ()

    def _matching(self, before: str) -> Iterator[Completion]:
        for name, meaning in self._commands.items():
            if name.startswith(before):
                yield Completion(name, start_position=-len(before), display_meta=meaning)
