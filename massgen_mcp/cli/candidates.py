"""What may stand at each place of a command line, for a shell that completes it.

Must not fail, print or change anything: a shell that gets nothing completes file names.
"""

import argparse
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import argcomplete
from argcomplete.completers import BaseCompleter, FilesCompleter

from massgen_mcp.cli.commands import NAMES, load_verb
from massgen_mcp.config.examples import list_examples
from massgen_mcp.config.loader import EXAMPLE_PREFIX
from massgen_mcp.config.providers.catalog import PROVIDERS, provider_names

WORD_BREAKS = "_ARGCOMPLETE_COMP_WORDBREAKS"
"""Where bash ends a word. It names @ there, but replaces the @ of @examples/NAME together with the rest."""


def answer_shell(program: str) -> None:
    """Give the shell that asks its candidates, and end the process."""
    os.environ[WORD_BREAKS] = os.environ.get(WORD_BREAKS, "").replace("@", "")
    words = os.environ.get("COMP_LINE", "").split(" ")
    parser: argparse.ArgumentParser = load_verb("ask").make_parser()
    if len(words) > 2 and words[1] in NAMES:  # the verb is complete: another word begins
        parser = argparse.ArgumentParser(prog=program)
        verbs = parser.add_subparsers()
        verbs.add_parser(words[1], parents=[load_verb(words[1]).make_parser()], add_help=False)
    argcomplete.autocomplete(parser, default_completer=Candidates(), always_complete_options=False)


class Candidates(BaseCompleter):
    """Chosen by the name of the option or argument."""

    def __call__(self, *, prefix: str, action: argparse.Action, **_: object) -> Iterable[str]:
        match action.dest:
            case "question":
                return NAMES
            case "topic":
                return ["all", *NAMES]
            case "config" | "path":
                return [*_quietly(_examples), *FilesCompleter(("yaml", "yml", "json"))(prefix)]
            case "name":
                return [name.removeprefix(EXAMPLE_PREFIX) for name in _quietly(_examples)]
            case "model" | "models":
                head, comma, last = prefix.rpartition(",")
                return [f"{head}{comma}{name}" for name in _model_candidates() if name.startswith(last)]
            case "backend":
                return provider_names()
            case "run_id" | "run_ids" | "run":
                return _quietly(_run_ids)
            case "session_id" | "session":
                return _quietly(_sessions)
            case "output_file" | "output" | "to" | "html" | "results" | "output_files" | "file" | "tasks":
                return FilesCompleter()(prefix)
            case _:
                return []


def _quietly(found: Callable[[], Iterable[str]]) -> list[str]:
    with suppress(Exception):
        return list(found())
    return []


def _examples() -> Iterable[str]:
    return (f"{EXAMPLE_PREFIX}{example.name}" for example in list_examples())


def _model_candidates() -> Iterable[str]:
    strong = [f"{row.type}/{row.strong_model}" for row in PROVIDERS if row.strong_model]
    return [*strong, *(f"{row.type}/" for row in PROVIDERS)]


def _run_ids() -> Iterable[str]:
    from massgen_mcp.home import find_home
    from massgen_mcp.runs.store.opening import open_engine  # no other candidate needs it

    store = open_engine(find_home(os.environ), os.environ).store
    return [row.run_id for row in store.index.list_recent(limit=100)]


def _sessions() -> Iterable[str]:
    from massgen_mcp.runs.sessions.project import SESSIONS

    return sorted((path.name for path in SESSIONS.iterdir()), reverse=True)
