"""Parts of `json` and `typing` for the supervisor, which would take longer to load than it takes to start a command.

The parsers and encoders are the ones in C that `json` itself uses. Loaded by `supervisor` and the modules beside it,
which is why it knows no other module of ours.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:  # another Python than CPython
    from json import dumps as encode_basestring_ascii
    from json.scanner import make_scanner

_PLAIN = {None: "null", True: "true", False: "false"}


class _Settings:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - of the scanner that is not in C


_scan = make_scanner(_Settings())  # pyright: ignore[reportArgumentType] - it reads these attributes


def read_json(document: str | bytes) -> Any:  # noqa: ANN401 - as `json.loads`
    """Return the value of a JSON document. Raises `ValueError`."""
    text = document
    if isinstance(text, bytes):
        text = text.decode()
    text = text.strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration as error:
        raise ValueError("not JSON") from error
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def write_json(facts: dict[str, str | float | bool | None]) -> str:
    """Return a flat JSON object of one line."""
    pairs = (f"{encode_basestring_ascii(name)}: {_write_value(value)}" for name, value in facts.items())
    return "{" + ", ".join(pairs) + "}"


def _write_value(value: str | float | bool | None) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or isinstance(value, bool):
        return _PLAIN[value]
    return repr(value)


class _NamedTupleMaker(type):
    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
        if not bases:
            return super().__new__(cls, name, bases, namespace)
        fields: list[str] = [*namespace.get("__annotations__", {})]
        defaults = [namespace[field] for field in fields if field in namespace]
        made = namedtuple(name, fields, defaults=defaults)  # noqa: PYI024 # pyright: ignore[reportUntypedNamedTuple] - as above
        for attribute, value in namespace.items():
            if attribute not in fields and not hasattr(object, attribute):
                setattr(made, attribute, value)
        return made


class NamedTuple(metaclass=_NamedTupleMaker):
    """As `typing.NamedTuple`: a class below it is a tuple with the fields that it declares."""
