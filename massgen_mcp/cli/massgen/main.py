"""`massgen`: ask a team from the command line. Chooses what is to be done, and in which order."""

import gc
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from massgen_mcp.cli.exits import EXIT_CONFIG, EXIT_EXECUTION, EXIT_INTERRUPTED, EXIT_OK
from massgen_mcp.cli.process import leave_on_interrupt, loaded, open_closed_streams

T = TypeVar("T")
TYPE_CHECKING = False

if TYPE_CHECKING:
    from massgen_mcp.cli.massgen.options import Options
    from massgen_mcp.errors import MassgenError


def main(arguments: Sequence[str] | None = None) -> None:
    leave_on_interrupt(EXIT_INTERRUPTED)  # before anything else is imported
    open_closed_streams()
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if words[:1] == ["review"]:
        _review(words[1:])
    if words[:1] == ["eval"]:
        _evaluate(words[1:])
    from massgen_mcp.cli.massgen.options import parse

    options = parse(words)
    sys.exit(_guarded(lambda: _do(options), code_of=_code_of, debug=options.debug))


def _guarded(work: Callable[[], int], *, code_of: Callable[["MassgenError"], int], debug: bool) -> int:
    """Once the command line is parsed: `--help`, and one that is wrong, need none of it."""
    gc.disable()  # until all is loaded
    from massgen_mcp.cli.boundary import guarded

    return guarded(work, code_of=code_of, interrupted=EXIT_INTERRUPTED, debug=debug)


def _code_of(error: "MassgenError") -> int:
    from massgen_mcp.errors import FAULTS_OF_THE_MACHINE

    return EXIT_EXECUTION if error.code in FAULTS_OF_THE_MACHINE else EXIT_CONFIG


def _review(words: Sequence[str]) -> None:
    """Exits. Whatever keeps it from reviewing leaves it unclear."""
    from massgen_mcp.cli.massgen.reviewing.options import parse

    options = parse(words)

    def work() -> int:
        from massgen_mcp.cli.massgen.reviewing.review import review

        return _run(review, options)

    sys.exit(_guarded(work, code_of=lambda _: EXIT_EXECUTION, debug=options.team.debug))


def _evaluate(words: Sequence[str]) -> None:
    """Exits."""
    from massgen_mcp.cli.massgen.evaluate_options import parse

    options = parse(words)

    def work() -> int:
        from massgen_mcp.cli.massgen.evaluate import evaluate

        return _run_many(evaluate, options)

    sys.exit(_guarded(work, code_of=_code_of, debug=options.debug))


def _do(options: "Options") -> int:
    """The one thing that this command line asks for, after choosing or making the config that it needs."""
    from dataclasses import replace
    from pathlib import Path

    if options.validate is not None:
        from massgen_mcp.cli.massgen.validating import validate

        return validate(options.validate, environ=os.environ)
    if options.list_sessions:
        from massgen_mcp.cli.massgen.earlier_runs import show_sessions

        return show_sessions(Path.cwd())
    if options.resume is not None:
        from massgen_mcp.cli.massgen.one_run import resume_run

        return _run(resume_run, options)
    _tell_of_left_runs(options)
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

        return _run_many(ask_batch, options)
    if options.question is not None:
        return _ask(options)
    if options.automation:
        from massgen_mcp.errors import MassgenError

        raise MassgenError("invalid_arguments", "--automation needs a QUESTION")
    from massgen_mcp.cli.massgen.chat import chat

    return _run(chat, options)


def _ask(options: "Options") -> int:
    """One question; where there is no team for it, a person at a terminal is helped to one."""
    from massgen_mcp.cli.asking import on_terminal
    from massgen_mcp.cli.massgen.one_run import run_once
    from massgen_mcp.errors import MassgenError

    try:
        return _run(run_once, options)
    except MassgenError as error:
        if error.code != "no_default_team" or options.automation or not on_terminal():
            raise
    from dataclasses import replace
    from pathlib import Path

    from massgen_mcp.cli.massgen.setup import set_up

    return _run(run_once, replace(options, config=str(set_up(cwd=Path.cwd(), environ=os.environ))))


def _tell_of_left_runs(options: "Options") -> None:
    """Before anything is asked of a person who comes back."""
    from massgen_mcp.cli.asking import on_terminal

    if options.automation or options.quiet or options.no_logs or not on_terminal():
        return
    from pathlib import Path

    import anyio

    from massgen_mcp.cli.massgen.earlier_runs import left_here
    from massgen_mcp.cli.output import print_error

    for line in anyio.run(left_here, Path.cwd()):
        print_error(line)


def _first_run(options: "Options") -> bool:
    """Whether somebody begins a conversation at the terminal who has no config yet. A question alone is just asked."""
    if options.question is not None or options.automation or options.config or options.models or options.backend:
        return False
    from pathlib import Path

    from massgen_mcp.cli.asking import on_terminal
    from massgen_mcp.config.loader import config_places, is_team

    return on_terminal() and not any(is_team(place) for place in config_places(Path.cwd(), os.environ))


def _run(work: Callable[[T], Awaitable[int]], options: T) -> int:
    import anyio

    loaded()
    return anyio.run(work, options)


def _run_many(work: Callable[[T], Awaitable[int]], options: T) -> int:
    """Where Ctrl-C ends the asking, and no run."""
    from massgen_mcp.cli.output import print_error

    try:
        return _run(work, options)
    except KeyboardInterrupt:
        print_error("Stopped. Runs that were begun go on in the background; the same command goes on from here.")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    main()
