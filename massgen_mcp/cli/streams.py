"""Standard streams that whoever started us has closed (`<&-`, `>&-`): there is nothing to read, and nothing is written.
Imports nothing of ours.
"""

import os
import sys


def open_closed_streams() -> None:
    """Also keeps any file of ours from taking the place of one of them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            if nothing != number:
                os.close(nothing)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
