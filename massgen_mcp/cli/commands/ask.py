"""Verbs that ask a team. `massgen QUESTION` is `massgen ask`, and so is `massgen` alone, a conversation."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from massgen_mcp.cli.command_line import Parser
from massgen_mcp.cli.exits import CODES_OF_QUESTION, CODES_OF_REVIEW
from massgen_mcp.cli.massgen.options import Options, make_parser, parse
from massgen_mcp.cli.verb import Verb

if TYPE_CHECKING:
    from massgen_mcp.cli.massgen.evaluate_options import EvalOptions


class _Asking(Verb):
    package = "massgen_mcp.cli.massgen"
    options: ClassVar[str]
    """The module, in `package`, that has the parser and `parse`."""
    codes = CODES_OF_QUESTION
    is_private = False

    def make_parser(self) -> Parser:
        return self._load_options().make_parser()

    def parse(self, words: Sequence[str]) -> Any:  # noqa: ANN401 - as of `Verb`
        return self._load_options().parse(words)

    def _load_options(self) -> Any:  # noqa: ANN401 - a module
        return import_module(f"{self.package}.{self.options}")


class AskVerb(_Asking):
    help = "ask a team; without a question, start a conversation"

    def make_parser(self) -> Parser:
        return make_parser(self.name)

    def parse(self, words: Sequence[str]) -> Options:
        return parse(words, self.name)

    def run(self, options: Options) -> int:
        from massgen_mcp.cli.massgen.main import ask

        return ask(options)


class StartVerb(AskVerb):
    help = "ask in the background and print the run's id"


class BatchVerb(AskVerb):
    help = "ask every question in a file"


class InitVerb(AskVerb):
    help = "create a config by answering a few questions"


class ReviewVerb(_Asking):
    help = "let several models review a change"
    options = "reviewing.options"
    work = "reviewing.review:review"
    codes = CODES_OF_REVIEW


class EvalVerb(_Asking):
    help = "measure teams against a single model on tasks with known answers"
    options = "evaluate_options"

    def run(self, options: "EvalOptions") -> int:
        from massgen_mcp.cli.massgen.evaluate import evaluate
        from massgen_mcp.cli.massgen.main import run_many

        return run_many(evaluate, options)
