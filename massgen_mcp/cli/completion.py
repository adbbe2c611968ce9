"""Completion of command lines in bash, zsh and fish. Costs nothing until a shell asks."""

import argparse
import os
import sys
from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")
ASKED = "_ARGCOMPLETE"
"""Set by the shell's part of argcomplete when it wants candidates instead of a run."""
WORD_BREAKS = "_ARGCOMPLETE_COMP_WORDBREAKS"
"""Where bash ends a word. It names @ there, but replaces the @ of @examples/NAME together with the rest."""


class PrintCompletion(argparse.Action):
    """`--completion SHELL`: print what the shell has to evaluate, and exit."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002 - argparse's signature
        values: str | Sequence[object] | None,
        option_string: str | None = None,  # noqa: ARG002 - argparse's signature
    ) -> None:
        from argcomplete.shell_integration import shellcode

        sys.stdout.write(shellcode([parser.prog], shell=str(values)))
        parser.exit(0)


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """If a shell asks for candidates, give them and end the process; otherwise do nothing."""
    if ASKED not in os.environ:
        return
    import argcomplete

    from massgen_mcp.cli.candidates import Candidates

    os.environ[WORD_BREAKS] = os.environ.get(WORD_BREAKS, "").replace("@", "")
    argcomplete.autocomplete(parser, default_completer=Candidates(), always_complete_options=False)
