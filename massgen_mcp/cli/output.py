"""What our commands print, whatever a model put into it. A reader that has gone (`| head`) ends and fails nothing; that
nothing can be written (`> answer.md` on a full disk) is an error.
"""

import os
import sys
from typing import TextIO

from massgen_mcp.errors import storage_error
from massgen_mcp.views.plain_text import plain


def print_line(line: str = "") -> bool:
    """One line on standard output. False: nobody reads it any more. Raises `MassgenError` if it cannot be written."""
    return _write_whole(sys.stdout, f"{plain(line)}\n")


def print_text(text: str) -> None:
    """A text of several lines on standard output; tabs stay, other control characters go. Raises as `print_line`."""
    lines = ("\t".join(plain(part) for part in line.split("\t")) for line in text.splitlines())
    _write_whole(sys.stdout, "".join(f"{line}\n" for line in lines))


def print_error(line: str) -> None:
    """A message, which may have several lines, on standard error."""
    _write_whole(sys.stderr, "".join(f"{plain(part)}\n" for part in line.splitlines()))


def send_to_terminal(sequences: str) -> None:
    """Our own escape sequences, with texts in them that are plain already."""
    _write_whole(sys.stdout, sequences)


def _write_whole(stream: TextIO, text: str) -> bool:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            raise storage_error("standard output cannot be written", error) from error
        return False
    except UnicodeEncodeError:  # a terminal of another encoding
        stream.write(text.encode(stream.encoding, "replace").decode(stream.encoding))
        stream.flush()
    return True
