"""Keys that every test's processes hold, and the search for them in whatever the suite leaves behind.

What is searched: every file below the session's temporary directories, the output of commands that were run to their
end, and the replies of tools. What is not: a directory in which a test wrote a key on purpose, as an input, which says
so by a file called `HOLDS_KEYS`; and `.credentials.json`, where a user's own login is kept. Requests that doubles
record hold keys rightly, and lie in no file.

The forms are made here anew, so that the search finds what the product's own idea of them misses.
"""

import base64
import json
import os
import re
import stat
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

PLANTED = {
    "GROQ_API_KEY": "gsk_PLANTEDq7Zf3Lm9Vx2Rt8Kc5Wb1Yd",
    "CEREBRAS_API_KEY": "csk-PLANTED/w4+Hn6Js0Qe/Pu7+Ta3Gi8Mo",
    "TOGETHER_API_KEY": "PLANTED5e8f1b2c9d7a4063be51fa28c7d09e64",
    "ZAI_API_KEY": 'PLANTED"k3\\Vn8%Xr1=Bz6&Ly4?Fs9',
    "PLANTED_ACCESS_KEY": "PLANTED-uR5yO2pE8tI1wA6sD9fG4hJ7",
}
"""None of these makes a default team larger; the last one is no provider's."""

HOLDS_KEYS = "HOLDS_KEYS"
OWN_LOGIN = ".credentials.json"
_KEY_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_WINDOW, _STRIDE = 12, 4


@dataclass
class Search:
    """`found` names each place with the variable whose key is in it."""

    keys: dict[str, str] = field(default_factory=lambda: dict(PLANTED))
    found: list[str] = field(default_factory=list[str])
    files: int = 0
    size: int = 0
    _pattern: re.Pattern[bytes] | None = None

    def add(self, variables: dict[str, str]) -> None:
        """Look for the keys among these variables of a test, too, from now on."""
        for name, value in variables.items():
            if _KEY_NAME.search(name) and len(value.strip()) >= 16 and value not in self.keys.values():
                self.keys[f"{name} {len(self.keys)}"] = value.strip()
                self._pattern = None

    @property
    def figures(self) -> tuple[int, int, int]:
        """Files, bytes of files and outputs, hits."""
        return self.files, self.size, len(self.found)

    def look(self, place: str, data: Any) -> None:
        """Search bytes, text, or plain data that was told by `place`."""
        if data is None:
            return
        told = (
            data
            if isinstance(data, bytes)
            else (data if isinstance(data, str) else json.dumps(data, default=str)).encode()
        )
        self.size += len(told)
        self._search(place, told)

    def look_below(self, directory: Path) -> None:
        searched = set[Path]()
        for top, below, names in os.walk(directory):
            if HOLDS_KEYS in names:
                below.clear()
                continue
            for path in map(Path(top).joinpath, names):
                if path.name != OWN_LOGIN and stat.S_ISREG((status := path.lstat()).st_mode):
                    searched.add(path)
                    self.size += status.st_size
        self.files += len(searched)
        for path in searched.intersection(self._candidates(directory)):
            self._search(str(path), path.read_bytes())

    def _candidates(self, directory: Path) -> list[Path]:
        """All files that may hold a form. `grep` looks for many texts at a time, ten times as fast as an expression."""
        lines = dict.fromkeys(line for form in self._forms() for line in form.split(b"\n") if line)
        asked = ["grep", "--recursive", "--devices=skip", "--text", "--fixed-strings", "--files-with-matches", "--null"]
        done = subprocess.run(
            [*asked, "--file=-", "--", str(directory)],
            input=b"\n".join(lines),
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        if unread := [line for line in done.stderr.splitlines() if not line.endswith(b"Permission denied")]:
            self.found.append(f"not all of {directory} was searched: {unread[:3]}")
        return [Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name]

    def _search(self, place: str, data: bytes) -> None:
        if self._pattern is None:
            self._pattern = re.compile(b"|".join(map(re.escape, dict.fromkeys(self._forms()))))
        if (hit := self._pattern.search(data)) is not None:
            names = [name for name, value in self.keys.items() if hit[0] in set(_forms_of(name, value))]
            self.found.append(f"{place}: {', '.join(names)} at byte {hit.start()}")

    def _forms(self) -> Iterator[bytes]:
        for name, value in self.keys.items():
            yield from _forms_of(name, value)


def _forms_of(name: str, value: str) -> Iterator[bytes]:
    """The value in every form; of planted ones, which nothing else looks like, pieces as well: a key may be split."""
    raw = value.encode()
    escaped = json.dumps(value)[1:-1]
    for text in (
        value,
        escaped,
        json.dumps(escaped)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        quote_plus(value),
    ):
        yield text.encode()
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    for offset in range(3):
        code = base64.b64encode(b"\0" * offset + raw)
        clear = code[4 if offset else 0 : (offset + len(raw)) // 3 * 4]
        yield from (clear, clear.translate(bytes.maketrans(b"+/", b"-_")))
    if name in PLANTED:
        yield from (raw[start : start + _WINDOW] for start in range(0, len(raw) - _WINDOW + 1, _STRIDE))


SEARCH = Search()
"""Of this process; every worker has its own."""


@contextmanager
def searched_outputs(search: Search) -> Generator[None]:
    """Search what commands print that are run to their end."""
    original: Callable[..., tuple[Any, Any]] = vars(subprocess.Popen)["communicate"]

    def communicate(process: "subprocess.Popen[Any]", *args: Any, **options: Any) -> tuple[Any, Any]:
        told = original(process, *args, **options)
        for stream, data in zip(("standard output", "standard error"), told, strict=True):
            search.look(f"{stream} of {process.args!r:.200}", data)
        return told

    setattr(subprocess.Popen, "communicate", communicate)  # noqa: B010 - its type is overloaded
    try:
        yield
    finally:
        setattr(subprocess.Popen, "communicate", original)  # noqa: B010 - as above
