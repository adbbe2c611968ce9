"""The command line of a question: choose what is to be done, and in which order."""

import argparse
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio

from massgen_mcp.cli.asking import on_terminal
from massgen_mcp.cli.exits import EXIT_INTERRUPTED, EXIT_OK
from massgen_mcp.cli.massgen.earlier_runs import left_here
from massgen_mcp.cli.massgen.one_run import run_once
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.massgen.setup import begin, choose_config, set_up
from massgen_mcp.cli.massgen.team import agreed_to_place
from massgen_mcp.cli.output import print_error
from massgen_mcp.cli.verb import run_async
from massgen_mcp.config.loader import config_places, is_team
from massgen_mcp.errors import MassgenError

T = TypeVar("T", Options, argparse.Namespace)


def ask(options: Options) -> int:
    """Do the one thing that this command line asks for, after choosing or making the config that it needs."""
    _tell_of_left_runs(options)
    if not agreed_to_place(options, Path.cwd(), os.environ):
        return EXIT_INTERRUPTED
    if options.select:
        options = replace(options, config=choose_config(cwd=Path.cwd(), environ=os.environ))
    if options.init or _is_first_run(options):
        config = (set_up if options.init else begin)(cwd=Path.cwd(), environ=os.environ)
        if options.init and options.question is None:
            return EXIT_OK
        options = replace(options, config=config and str(config))
    if options.batch:
        from massgen_mcp.cli.massgen.batching import ask_batch  # one question needs none of it

        return run_many(ask_batch, options)
    if options.question is not None:
        return _ask_team(options)
    if options.automation:
        raise MassgenError("invalid_arguments", "--automation needs a QUESTION")
    from massgen_mcp.cli.massgen.chat import chat  # one question needs none of it

    return run_async(chat, options)


def _ask_team(options: Options) -> int:
    """One question; where there is no team for it, a person at a terminal is helped to one."""
    try:
        return run_async(run_once, options)
    except MassgenError as error:
        if error.code != "no_default_team" or options.automation or not on_terminal():
            raise
    return run_async(run_once, replace(options, config=str(set_up(cwd=Path.cwd(), environ=os.environ))))


def _tell_of_left_runs(options: Options) -> None:
    """Before anything is asked of a person who comes back."""
    if not (options.automation or options.quiet or options.no_logs) and on_terminal():
        print_error("\n".join(anyio.run(left_here, Path.cwd())))


def _is_first_run(options: Options) -> bool:
    """Check whether a person without a config begins a conversation at the terminal. A question alone is just asked."""
    if options.question is not None or options.automation or options.config or options.models or options.backend:
        return False
    return on_terminal() and not any(is_team(place) for place in config_places(Path.cwd(), os.environ))


def run_many(work: Callable[[T], Awaitable[int]], options: T) -> int:
    """Run a verb that asks many questions; Ctrl-C ends the asking, and no run."""
    try:
        return run_async(work, options)
    except KeyboardInterrupt:
        print_error("Stopped. Runs that have started continue in the background. To run the rest, repeat the command.")
        return EXIT_INTERRUPTED
