"""A Python caller's dictionary into the plain data that a file would have given, with the same bounds."""

import math
from collections.abc import Mapping
from os import PathLike
from typing import cast

from massgen_mcp.config.diagnostics import Problem
from massgen_mcp.config.yaml_reader import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_NODES, Place, Plain


class NotPlainError(Exception):
    """The data holds what no config file could hold."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(place, message)


def plain_data(value: object) -> Plain:
    """A copy of `value` made of dictionaries with text keys, lists, text, numbers, booleans and None.

    Mappings, tuples and paths are welcome and converted. Raises `NotPlainError` at the first part that is not data,
    or when the whole is larger or deeper than a file may be (which ends data that contains itself).
    """
    return _Copying().copy(value, ())


class _Copying:
    def __init__(self) -> None:
        self._nodes = 0
        self._characters = 0

    def copy(self, value: object, place: Place) -> Plain:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise NotPlainError((), f"a config can have at most {MAX_NODES:,} values")
        match value:
            case None | bool():
                return value
            case int() | float():
                return _plain_number(value, place)
            case str():
                return self._text(value, place)
            case PathLike():
                path = cast("PathLike[str] | PathLike[bytes]", value).__fspath__()
                return self._text(path if isinstance(path, str) else path.decode("utf-8", "surrogateescape"), place)
            case Mapping() | list() | tuple():
                return self._container(
                    cast("Mapping[object, object] | list[object] | tuple[object, ...]", value), place
                )
            case _:
                raise NotPlainError(place, f"expected plain data, not {type(value).__name__[:60]}")

    def _container(self, value: Mapping[object, object] | list[object] | tuple[object, ...], place: Place) -> Plain:
        if len(place) >= MAX_DEPTH:
            raise NotPlainError((), f"nested more than {MAX_DEPTH} levels deep")
        if not isinstance(value, Mapping):
            return [self.copy(item, (*place, number)) for number, item in enumerate(value)]
        copied: dict[str, Plain] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotPlainError(place, f"a key must be text, not {type(key).__name__[:60]}")
            copied[self._text(key, place)] = self.copy(item, (*place, key))
        return copied

    def _text(self, text: str, place: Place) -> str:
        self._characters += len(text)
        if self._characters > MAX_BYTES:
            raise NotPlainError((), f"a config can have at most {MAX_BYTES // 1024} KiB")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotPlainError(place, "not UTF-8 text") from None
        return str(text)


def _plain_number(value: float, place: Place) -> int | float:
    if isinstance(value, int):
        if abs(value) >= 10**MAX_DIGITS:
            raise NotPlainError(place, f"a number can have at most {MAX_DIGITS} digits")
        return int(value)
    if not math.isfinite(value):
        raise NotPlainError(place, "expected a finite number")
    return float(value)
