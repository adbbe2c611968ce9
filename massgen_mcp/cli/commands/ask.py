"""Verbs that ask a team. `massgen QUESTION` is `massgen ask`, and so is `massgen` alone, a conversation."""

from collections.abc import Sequence

from massgen_mcp.cli.command_line import Parser
from massgen_mcp.cli.exits import CODES_OF_QUESTION
from massgen_mcp.cli.massgen.options import Options, make_parser, parse
from massgen_mcp.cli.verb import Verb


class AskVerb(Verb):
    codes = CODES_OF_QUESTION
    is_private = False

    def make_parser(self) -> Parser:
        return make_parser(self.name)

    def parse(self, words: Sequence[str]) -> Options:
        return parse(words, self.name)

    def run(self, options: Options) -> int:
        from massgen_mcp.cli.massgen.command import ask

        return ask(options)


VERBS: Sequence[Verb] = (
    AskVerb("ask", "ask a team; without a question, start a conversation"),
    AskVerb("start", "ask in the background and print the run's ID"),
    AskVerb("batch", "ask every question in a file"),
    AskVerb("init", "create a config by answering a few questions"),
)
