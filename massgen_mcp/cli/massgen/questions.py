"""Where the question of a command line comes from: an argument, or standard input."""

import sys

from massgen_mcp.errors import MassgenError
from massgen_mcp.request.question import MAX_QUESTION_CHARACTERS

STANDARD_INPUT = "-"


def whole_question(given: str) -> str:
    """Raises `MassgenError` invalid_arguments for what is no text."""
    if given != STANDARD_INPUT:
        return given
    data = sys.stdin.buffer.read(4 * MAX_QUESTION_CHARACTERS + 1)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and len(data) > 4 * MAX_QUESTION_CHARACTERS:
            return data.decode(errors="ignore")  # far too long in any case, and refused for that
        raise MassgenError(
            "invalid_arguments", "the question on standard input is not valid UTF-8; convert it with `iconv -t UTF-8`"
        ) from None
