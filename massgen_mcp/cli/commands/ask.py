"""Verbs that ask a team. `massgen QUESTION` is `massgen ask`, and so is `massgen` alone, a conversation."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from massgen_mcp.cli.command_line import Parser
from massgen_mcp.cli.exits import EXIT_CONFIG, EXIT_EXECUTION, EXIT_INTERRUPTED
from massgen_mcp.cli.massgen.options import AskKind, Options, make_parser, parse
from massgen_mcp.cli.verb import Verb

if TYPE_CHECKING:
    from massgen_mcp.cli.massgen.evaluate_options import EvalOptions
    from massgen_mcp.errors import MassgenError


def exit_code_of_question(error: "MassgenError") -> int:
    from massgen_mcp.errors import FAULTS_OF_THE_MACHINE

    return EXIT_EXECUTION if error.code in FAULTS_OF_THE_MACHINE else EXIT_CONFIG


class _Asking(Verb):
    package = "massgen_mcp.cli.massgen"
    options: ClassVar[str]
    """The module, in `package`, that has the parser and `parse`."""
    interrupted = EXIT_INTERRUPTED
    is_private = False

    def make_parser(self) -> Parser:
        return self._load_options().make_parser()

    def parse(self, words: Sequence[str]) -> Any:  # noqa: ANN401 - as of `Verb`
        return self._load_options().parse(words)

    def _load_options(self) -> Any:  # noqa: ANN401 - a module
        return import_module(f"{self.package}.{self.options}")

    def exit_code(self, error: "MassgenError") -> int:
        return exit_code_of_question(error)


class AskVerb(_Asking):
    name = "ask"
    help = "ask a team; without a question, start a conversation"
    kind: ClassVar[AskKind] = "ask"

    def make_parser(self) -> Parser:
        return make_parser(self.kind)

    def parse(self, words: Sequence[str]) -> Options:
        return parse(words, self.kind)

    def run(self, options: Options) -> int:
        from massgen_mcp.cli.massgen.main import ask

        return ask(options)


class StartVerb(AskVerb):
    name = "start"
    help = "ask in the background and print the run's id"
    kind = "start"


class BatchVerb(AskVerb):
    name = "batch"
    help = "ask every question in a file"
    kind = "batch"


class InitVerb(AskVerb):
    name = "init"
    help = "create a config by answering a few questions"
    kind = "init"


class ReviewVerb(_Asking):
    name = "review"
    help = "let several models review a change"
    options = "reviewing.options"
    work = "reviewing.review:review"

    def exit_code(self, error: "MassgenError") -> int:  # noqa: ARG002 - any error leaves the review unclear
        return EXIT_EXECUTION


class EvalVerb(_Asking):
    name = "eval"
    help = "measure teams against a single model on tasks with known answers"
    options = "evaluate_options"

    def run(self, options: "EvalOptions") -> int:
        from massgen_mcp.cli.massgen.evaluate import evaluate
        from massgen_mcp.cli.massgen.main import run_many

        return run_many(evaluate, options)
