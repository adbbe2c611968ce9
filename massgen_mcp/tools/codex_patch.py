"""Patches in the form that Codex's models write: parsed, and applied to texts. Pure.

*** Begin Patch
*** Update File: src/a.py
@@ def f():
-    return 1
+    return 2
*** End Patch
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from massgen_mcp.tools.aliases import PATCH_BEGINS, PATCH_ENDS
from massgen_mcp.tools.base import ToolRefused

PatchKind = Literal["add", "update", "delete"]
_HEADS: dict[str, PatchKind] = {
    "*** Add File: ": "add",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}
_MOVE = "*** Move to: "
_END_OF_FILE = "*** End of File"
FORM = (
    "a patch has the form: *** Begin Patch, then for each file *** Update File: PATH (or Add, Delete), @@ and lines "
    "that begin with a blank, - or +, then *** End Patch"
)


@dataclass(frozen=True, slots=True)
class PatchHunk:
    """Lines to be found, and what takes their place. `below`: a line that stands somewhere before them."""

    below: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """`text` is that of a new file; `hunks` are those of one that is updated."""

    kind: PatchKind
    path: str
    moved_to: str = ""
    text: str = ""
    hunks: tuple[PatchHunk, ...] = ()


def parse_patch(patch: str) -> tuple[PatchedFile, ...]:
    """Return the changes of a patch. Raises `ToolRefused` where it is none."""
    lines = patch.strip("\n").split("\n")
    if lines[0].strip() != PATCH_BEGINS or lines[-1].strip() != PATCH_ENDS:
        raise ToolRefused(FORM)
    changes = tuple(_changes(lines[1:-1]))
    if not changes:
        raise ToolRefused("the patch changes no file")
    paths = [change.path for change in changes]
    if len(set(paths)) != len(paths):
        raise ToolRefused("a file stands in the patch twice; put its changes together")
    return changes


def _changes(lines: Sequence[str]) -> Iterator[PatchedFile]:
    place = 0
    while place < len(lines):
        head = next((head for head in _HEADS if lines[place].startswith(head)), None)
        if head is None:
            raise ToolRefused(f"line {place + 2} of the patch names no file: {lines[place][:80]!a}; {FORM}")
        end = place + 1
        while end < len(lines) and not lines[end].startswith(tuple(_HEADS)):
            end += 1
        yield _change(_HEADS[head], lines[place].removeprefix(head).strip(), lines[place + 1 : end])
        place = end


def _change(kind: PatchKind, path: str, body: Sequence[str]) -> PatchedFile:
    match kind:
        case "delete":
            return PatchedFile(kind, path)
        case "add":
            if not all(line.startswith("+") for line in body):
                raise ToolRefused(f"every line of the new file {path!a} begins with +")
            return PatchedFile(kind, path, text="".join(f"{line[1:]}\n" for line in body))
        case "update":
            moved = ""
            if body and body[0].startswith(_MOVE):
                moved, body = body[0].removeprefix(_MOVE).strip(), body[1:]
            return PatchedFile(kind, path, moved, hunks=tuple(_hunks(path, body)))


def _hunks(path: str, body: Sequence[str]) -> Iterator[PatchHunk]:
    below, old, new = "", list[str](), list[str]()
    for line in body:
        if line.startswith("@@"):
            if old or new:
                yield PatchHunk(below, tuple(old), tuple(new))
            below, old, new = line.removeprefix("@@").strip(), [], []
        elif line[:1] in ("-", "+", " ") or not line:
            if line[:1] != "+":
                old.append(line[1:])
            if line[:1] != "-":
                new.append(line[1:])
        elif line != _END_OF_FILE:
            raise ToolRefused(f"a line of the change of {path!a} begins with none of blank, - and +: {line[:80]!a}")
    if old or new:
        yield PatchHunk(below, tuple(old), tuple(new))


def apply_hunks(text: str, change: PatchedFile) -> str:
    """Return the text with every hunk applied, in order. Raises `ToolRefused` where one fits nowhere."""
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(ending)
    at = 0
    for number, hunk in enumerate(change.hunks, start=1):
        start = at
        if hunk.below:
            found = next((place for place in range(at, len(lines)) if lines[place].strip() == hunk.below), None)
            start = at if found is None else found + 1
        place = _find_lines(lines, hunk.old, start)
        if place is None:
            wanted = next((line for line in hunk.old if line.strip()), "")
            raise ToolRefused(
                f"change {number} of {change.path!a} fits nowhere: its lines, from {wanted[:80]!a} on, do not stand in "
                "the file in this order; read the file and write them as they are"
            )
        lines[place : place + len(hunk.old)] = hunk.new
        at = place + len(hunk.new)
    return ending.join(lines)


def _find_lines(lines: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    """Return the first place from `start` on where these lines stand, if need be without blanks at their ends."""
    if not wanted:
        return max(start, len(lines) - 1) if lines and not lines[-1] else len(lines)
    places = range(start, len(lines) - len(wanted) + 1)
    exact = next((place for place in places if list(lines[place : place + len(wanted)]) == list(wanted)), None)
    if exact is not None:
        return exact
    stripped = [line.rstrip() for line in wanted]
    return next(
        (place for place in places if [line.rstrip() for line in lines[place : place + len(wanted)]] == stripped), None
    )
