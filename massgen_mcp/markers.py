"""Markers around text that others wrote, so that no text can pass for something else.

A marker holds a nonce: a random code that is drawn when the text exists, so its author cannot have known it, and that
occurs in none of the texts it marks. The text itself is never altered.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_NONCE_BYTES = 8
_MATERIAL = re.compile(r'<(\w+)(?: name="([^"\n]*)")?( yours)? ([0-9a-f]{16})>\n(.*?)\n</\1 \4>', re.DOTALL)


_WHOLE_IN_MARKERS = re.compile(
    r'\A\s*<(\w+)(?: name="[^"\n]*")?(?: yours)? ([0-9a-f]{16})>\s*(.*?)(?:\s*</\1 \2>)?\s*\Z', re.DOTALL
)


class Material(NamedTuple):
    """What stands between a pair of markers. `name` is "" where the opening one has none; `yours`: it says so."""

    kind: str
    name: str
    nonce: str
    text: str
    yours: bool = False


def _random() -> str:
    return secrets.token_hex(_NONCE_BYTES)


def draw_nonce(texts: Iterable[str], *, draw: Callable[[], str] = _random) -> str:
    """A nonce that occurs in none of these texts, in no case of letters."""
    folded = [text.casefold() for text in texts]
    while True:
        nonce = draw()
        if not any(nonce in text for text in folded):
            return nonce


def marked(kind: str, text: str, nonce: str, *, name: str = "", yours: bool = False) -> str:
    """`text`, unaltered, between two markers; `yours` tells the reader that it is its own.

    An empty `nonce`, as events of older journals have, is drawn here.
    """
    nonce = nonce or draw_nonce([text])
    named = f' name="{name}"' if name else ""
    own = " yours" if yours else ""
    return f"<{kind}{named}{own} {nonce}>\n{text}\n</{kind} {nonce}>"


def strip_markers(text: str) -> str:
    """Return `text` without the marker of ours that it begins with, and its closing one: small models copy them."""
    while whole := _WHOLE_IN_MARKERS.match(text):
        text = whole[3]
    return text


def materials(prompt: str) -> Iterator[Material]:
    """What a prompt marks, in order, as a reader should read it: markers within a material are part of it."""
    for found in _MATERIAL.finditer(prompt):
        yield Material(found[1], found[2] or "", found[4], found[5], bool(found[3]))
