"""Whether a text shows anything. What shows nothing is no answer, however long it is. Pure."""

import unicodedata

_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc\ufffd\U0001d159")
"""Of these Unicode says that they are letters or symbols, but they are fillers, blanks, or stand for what was lost."""


def is_visible(text: str) -> bool:
    """Whether at least one letter, number, punctuation mark or symbol stands in it: white space, control and format
    characters, and marks that have nothing to combine with, show nothing.
    """
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _BLANK_LETTERS for char in text)
