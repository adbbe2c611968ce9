"""`massgen`: ask a team from the command line. Chooses what is to be done, and in which order."""

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from massgen_mcp.cli import program
from massgen_mcp.cli.exits import EXIT_INTERRUPTED, EXIT_OK
from massgen_mcp.cli.verb import run_async

T = TypeVar("T")
TYPE_CHECKING = False

if TYPE_CHECKING:
    from massgen_mcp.cli.massgen.options import Options


def main(arguments: Sequence[str] | None = None) -> None:
    program.main("massgen", arguments)


def ask(options: "Options") -> int:
    """The one thing that this command line asks for, after choosing or making the config that it needs."""
    from dataclasses import replace
    from pathlib import Path

    _tell_of_left_runs(options)
    from massgen_mcp.cli.massgen.team import agreed_to_place

    if not agreed_to_place(options, Path.cwd(), os.environ):
        return EXIT_INTERRUPTED
    if options.select:
        from massgen_mcp.cli.massgen.setup import choose_config

        options = replace(options, config=choose_config(cwd=Path.cwd(), environ=os.environ))
    if options.init or _first_run(options):
        from massgen_mcp.cli.massgen.setup import begin, set_up

        config = (set_up if options.init else begin)(cwd=Path.cwd(), environ=os.environ)
        if options.init and options.question is None:
            return EXIT_OK
        options = replace(options, config=config and str(config))
    if options.batch:
        from massgen_mcp.cli.massgen.batching import ask_batch

        return run_many(ask_batch, options)
    if options.question is not None:
        return _ask(options)
    if options.automation:
        from massgen_mcp.errors import MassgenError

        raise MassgenError("invalid_arguments", "--automation needs a QUESTION")
    from massgen_mcp.cli.massgen.chat import chat

    return run_async(chat, options)


def _ask(options: "Options") -> int:
    """One question; where there is no team for it, a person at a terminal is helped to one."""
    from massgen_mcp.cli.asking import on_terminal
    from massgen_mcp.cli.massgen.one_run import run_once
    from massgen_mcp.errors import MassgenError

    try:
        return run_async(run_once, options)
    except MassgenError as error:
        if error.code != "no_default_team" or options.automation or not on_terminal():
            raise
    from dataclasses import replace
    from pathlib import Path

    from massgen_mcp.cli.massgen.setup import set_up

    return run_async(run_once, replace(options, config=str(set_up(cwd=Path.cwd(), environ=os.environ))))


def _tell_of_left_runs(options: "Options") -> None:
    """Before anything is asked of a person who comes back."""
    from massgen_mcp.cli.asking import on_terminal

    if options.automation or options.quiet or options.no_logs or not on_terminal():
        return
    from pathlib import Path

    import anyio

    from massgen_mcp.cli.massgen.earlier_runs import left_here
    from massgen_mcp.cli.output import print_error

    print_error("\n".join(anyio.run(left_here, Path.cwd())))


def _first_run(options: "Options") -> bool:
    """Whether somebody begins a conversation at the terminal who has no config yet. A question alone is just asked."""
    if options.question is not None or options.automation or options.config or options.models or options.backend:
        return False
    from pathlib import Path

    from massgen_mcp.cli.asking import on_terminal
    from massgen_mcp.config.loader import config_places, is_team

    return on_terminal() and not any(is_team(place) for place in config_places(Path.cwd(), os.environ))


def run_many(work: Callable[[T], Awaitable[int]], options: T) -> int:
    """Run a verb that asks many questions; Ctrl-C ends the asking, and no run."""
    from massgen_mcp.cli.output import print_error

    try:
        return run_async(work, options)
    except KeyboardInterrupt:
        print_error("Stopped. Runs that have started continue in the background. To run the rest, repeat the command.")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    main()
