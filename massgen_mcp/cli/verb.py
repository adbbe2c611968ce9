"""A verb: its name, its line in the help, its arguments, and `run`. Imports next to nothing, so that help and mistakes
are quick; a verb imports what it needs when it runs.
"""

from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from massgen_mcp.cli.command_line import ArgumentGroups, CommandArgument, Parser
from massgen_mcp.cli.exits import CODES_OF_VERBS, ExitCodes

T = TypeVar("T")
NEWEST = ("latest", "last")
"""Words for the newest run of this directory, in place of an id."""


class Verb:
    """A verb of the command line; `massgen_mcp.cli.commands` has them, and their names. One with rules of its own is an
    instance of a subclass.
    """

    groups: ClassVar[ArgumentGroups] = {}
    """In place of `arguments`, where the help has headings."""
    description: ClassVar[str] = ""
    """Of the verb's own help, where it says more than `help`."""
    manual: ClassVar[str | None] = None
    """What stands below the options in the verb's own help."""
    parser: ClassVar[type[Parser]] = Parser
    package: ClassVar[str] = "massgen_mcp.cli.massgen_mcp.verbs"
    codes: ExitCodes = CODES_OF_VERBS
    is_private: bool = True
    """Files that it writes are for this user alone, whatever the umask."""

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        work: str = "",
        changes_run: bool = False,
        arguments: Sequence[CommandArgument] = (),
    ) -> None:
        """`summary`: its line in the help. `work`: MODULE:FUNCTION, in `package`, of an `async def` that takes the
        options and returns the exit code; imported only to run it, and without one `run` of the module of its name.
        `changes_run`: it changes the run that is named, and asks about one that is not, where someone can be asked.
        """
        self.name, self.help, self.arguments = name, summary, arguments
        self.work = work or f"{name}:run"
        self.changes_run = changes_run

    def make_parser(self) -> Parser:
        return self.parser(
            self.groups or {"": self.arguments},
            exit_code=self.codes.usage,
            prog=f"massgen {self.name}",
            description=self.description or self.help,
            epilog=self.manual,
        )

    def parse(self, words: Sequence[str]) -> Any:  # noqa: ANN401 - each verb has options of its own
        """Return the options. Raises `UsageError`, and exits for --help."""
        parser = self.make_parser()
        options = parser.parse(words)
        options.verb = self.name
        if fault := self.find_contradiction(options):
            parser.error(fault)
        if self.changes_run and options.run_id in (None, *NEWEST):
            from massgen_mcp.cli.asking import on_terminal  # no help needs it

            if not on_terminal():
                parser.error(f"{self.name} needs a run's ID; `massgen runs` lists them", means_verb=True)
        return options

    def find_contradiction(self, options: Any) -> str | None:  # noqa: ANN401, ARG002 - as above
        """Say which options do not go together, and change what they mean for each other."""
        return None

    def run(self, options: Any) -> int:  # noqa: ANN401 - as above
        """Do it, and return the exit code. Raises `MassgenError`."""
        module, _, function = self.work.partition(":")
        return run_async(getattr(import_module(f"{self.package}.{module}"), function), options)


def run_async(work: Callable[[T], Awaitable[int]], options: T) -> int:
    """Run it in an event loop, once everything is imported."""
    import anyio

    from massgen_mcp.cli.process import loaded

    loaded()
    return anyio.run(work, options)
