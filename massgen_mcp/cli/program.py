"""The program: `massgen VERB`, and `massgen QUESTION`. `massgen-mcp VERB` is the same, and `massgen-mcp` alone serves.

A first word that is a verb is one. A mistake never becomes a question that is paid for: what looks like a mistyped verb
is refused with the way to ask it all the same, which is `--` before it.
"""

import gc
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from massgen_mcp.cli.commands import NAMES, load_verb
from massgen_mcp.cli.exits import EXIT_CONFIG, EXIT_INTERRUPTED, EXIT_STOPPED, EXIT_USAGE, UsageError
from massgen_mcp.cli.old_spellings import VERBS, modernize
from massgen_mcp.cli.process import leave_on_interrupt, open_closed_streams

if TYPE_CHECKING:
    from massgen_mcp.cli.verb import Verb

ProgramName = Literal["massgen", "massgen-mcp"]
_BEFORE_VERBS = ("--store", "--log-format")
"""Options of `massgen-mcp` that may stand before a verb."""
_ID = re.compile(r"run-[a-z2-7]*|(?=[a-z2-7]*[2-7])[a-z2-7]{4,26}|latest|last")
ASKED = "_ARGCOMPLETE"
"""Set by the shell's part of argcomplete when it wants candidates instead of a run."""
PROSE_WORDS = 2
"""Plain words after a verb that read like a sentence."""


def main(program: ProgramName, arguments: Sequence[str] | None = None) -> None:
    """Exits."""
    leave_on_interrupt(EXIT_INTERRUPTED if program == "massgen" else EXIT_STOPPED)  # before anything else is imported
    open_closed_streams()
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if ASKED in os.environ:
        from massgen_mcp.cli.candidates import answer_shell

        answer_shell(program)
    try:
        verb, options = read(program, words)
    except UsageError as error:
        sys.stderr.write(f"ERROR invalid_arguments: {error}\n")
        sys.exit(error.exit_code)
    leave_on_interrupt(verb.codes.interrupted)
    if verb.is_private:
        os.umask(0o077)
    gc.disable()  # until all is loaded
    from massgen_mcp.cli.boundary import guarded
    from massgen_mcp.home import STORE_VARIABLE

    if store := getattr(options, "store", None):
        os.environ[STORE_VARIABLE] = store
    debug = bool(getattr(options, "debug", False))
    codes = verb.codes
    sys.exit(guarded(lambda: verb.run(options), code_of=codes.of_error, interrupted=codes.interrupted, debug=debug))


def read(program: ProgramName, words: Sequence[str]) -> tuple["Verb", Any]:
    """Return the verb and its options. Raises `UsageError`; exits for --help and --version."""
    name, rest = choose_verb(program, words)
    verb_name, rest = modernize(name, rest)
    verb = load_verb(verb_name)
    try:
        return verb, verb.parse(rest)
    except UsageError as error:
        if name == "serve":
            _refuse_order(words)
        if name == "ask" and verb_name != "ask":
            error.exit_code = EXIT_CONFIG  # an old option of a question
        if name != "ask" and is_prose(words[1:]) and not error.means_verb:
            return _ask_whether_question(words, error)
        raise


def choose_verb(program: ProgramName, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of the verb, and the words that are for it. Raises `UsageError`."""
    first, *rest = words or [""]
    if first in ("-h", "--help"):
        return "help", []
    if program == "massgen-mcp":
        leading = _count_leading_options(words)
        if leading and words[leading:] and words[leading] in NAMES:
            return words[leading], [*words[leading + 1 :], *words[:leading]]
        if first in ("--version", "--completion") or first.startswith("--completion="):
            return "ask", [*words]
    if first in NAMES or first in VERBS:
        return first, rest
    if program == "massgen":
        return "ask", [*words]
    if first and not first.startswith("-"):
        _refuse_words(words)
    return "serve", [*words]


def _count_leading_options(words: Sequence[str]) -> int:
    count = 0
    while count < len(words) and words[count].partition("=")[0] in _BEFORE_VERBS:
        count += 1 if "=" in words[count] else 2
    return count


def _refuse_order(words: Sequence[str]) -> None:
    """Refuse options of a verb before it, where the server does not know them."""
    verb = next((word for word in words if word in NAMES), None)
    if verb is None:
        return
    place = words.index(verb)
    if place and words[place - 1].startswith("--") and "=" not in words[place - 1]:
        before = " ".join([*words[:place]])
        raise UsageError(f"put {words[0]} after the verb: massgen {verb} {before}", EXIT_USAGE)


def _refuse_words(words: Sequence[str]) -> None:
    """Refuse what is no verb, where a question has to be asked in another way."""
    from massgen_mcp.cli.massgen.options import find_misspelling

    plain = shlex.quote(" ".join(word for word in words if not word.startswith("-"))[:80])
    if hint := find_misspelling(words[0], words[1:]):
        raise UsageError(f"{words[0][:80]} {hint}", EXIT_USAGE)
    hint = f"to ask a team: massgen {plain}; to ask it in the background: massgen start {plain}"
    raise UsageError(f"unknown verb {words[0][:80]!r}; {hint}", EXIT_USAGE)


def is_prose(words: Sequence[str]) -> bool:
    """Check whether plain words follow a verb: no option, no id, no path that exists."""
    if not words or any(word.startswith("-") for word in words):
        return False
    return not (_ID.fullmatch(words[0]) or os.path.lexists(words[0]))


def _ask_whether_question(words: Sequence[str], error: UsageError) -> tuple["Verb", Any]:
    """Ask a person at a terminal whether a sentence that begins with a verb is meant; elsewhere refuse it."""
    from massgen_mcp.cli.asking import confirm, on_terminal

    sentence = " ".join(words)
    if len(words) > PROSE_WORDS and on_terminal() and confirm(f"Ask a team: {sentence!r}", default=False):
        verb = load_verb("ask")
        return verb, verb.parse(["--", sentence])
    question = f"to ask this as a question: massgen -- {shlex.quote(sentence)}"
    raise UsageError(f"{error}\n{question}", error.exit_code)
