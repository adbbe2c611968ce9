"""The public price list: the one that is installed with genai-prices, or a newer one that the user took in with
`massgen prices`. Nothing here asks the network.

The list is loaded when a price is first needed; where it was installed without bytecode that once takes 70 MB.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import anyio.to_thread

from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import write_durably
from massgen_mcp.threads import imported

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

FILE_NAME = "prices.json"
"""Of the list that was taken in, in the state directory."""
MAX_BYTES = 64 << 20
OLD_DAYS = 60
NEWEST_LIST = "https://raw.githubusercontent.com/pydantic/genai-prices/refs/heads/main/prices/new_data/v2/data.json"
"""Where the authors of genai-prices publish their newest list. Asked only if a person names it."""
LEAST_MODELS = 100
"""With fewer priced models a file is no price list."""
_lock = Lock()
_loaded: list[float] = []
"""When the file was changed whose list is in use; 0.0: the installed one is."""
_caches: list[Callable[[], None]] = []


@dataclass(frozen=True, slots=True)
class PriceList:
    """Which list is in use. `changed`: its date, in seconds since 1970; of the installed one, the day it came here."""

    path: Path
    changed: float
    taken_in: bool

    @property
    def days(self) -> float:
        return (time.time() - self.changed) / 86_400

    @property
    def is_old(self) -> bool:
        return self.days > OLD_DAYS


def locate_list(home: Path) -> Path:
    """Return where the list that was taken in is kept."""
    return home / FILE_NAME


def find_price_list(home: Path) -> PriceList | None:
    """Return the list that is in use: the one that was taken in, else the installed one. Loads nothing."""
    if locate_list(home).is_file():
        return PriceList(locate_list(home), locate_list(home).stat().st_mtime, taken_in=True)
    spec = find_spec("genai_prices")
    if spec is None or spec.origin is None:
        return None
    installed = Path(spec.origin).with_name("data.py")
    return PriceList(installed, installed.stat().st_mtime, taken_in=False)


async def ensure_loaded(taken_in: Path | None) -> None:
    """Load the list where that is not done. A file that cannot be read leaves the installed list in use."""
    await imported("genai_prices", "genai_prices.data")
    if is_outdated_list(taken_in):
        await anyio.to_thread.run_sync(load, taken_in)


def load(taken_in: Path | None) -> None:
    """The same, not for an event loop."""
    from genai_prices import data_snapshot

    with _lock:
        if not is_outdated_list(taken_in):
            return
        snapshot: DataSnapshot | None = None
        changed = _get_mtime(taken_in)
        if taken_in is not None and changed:
            with suppress(OSError, ValueError):
                snapshot = read_snapshot(taken_in.read_bytes())
        data_snapshot.set_custom_snapshot(snapshot)
        for clear in _caches:
            clear()
        _loaded[:] = [changed]


def register_cache(clear: Callable[[], None]) -> None:
    """Have results of the list that was in use forgotten when another one is loaded."""
    _caches.append(clear)


def _get_mtime(taken_in: Path | None) -> float:
    """Return when the file was changed; 0.0: it is not there."""
    try:
        return taken_in.stat().st_mtime if taken_in else 0.0
    except OSError:
        return 0.0


def is_outdated_list(taken_in: Path | None) -> bool:
    return "genai_prices.data_snapshot" not in sys.modules or _loaded != [_get_mtime(taken_in)]


def read_snapshot(data: bytes) -> "DataSnapshot":
    """Raises `ValueError` in one line for what is no price list."""
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import _providers_from_raw  # pyright: ignore[reportPrivateUsage] - as its updater does

    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        raw = json.loads(data)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(raw, list):
        raise ValueError("expected genai-prices' data.json, a list of providers")  # noqa: TRY004 - of a file
    try:
        providers = _providers_from_raw(raw)
    except Exception as error:  # noqa: BLE001 - whatever its own parser raises for what is no list of its
        first = str(error).splitlines()[0]
        raise ValueError(f"genai-prices cannot read it: {first}") from None
    models = sum(len(provider.models) for provider in providers)
    if models < LEAST_MODELS:
        raise ValueError(f"it has only {models} models; a complete price list has at least {LEAST_MODELS}")
    return DataSnapshot(providers, from_auto_update=False)


def save_list(data: bytes, home: Path, changed: float | None = None) -> int:
    """Check a list and keep it in the state directory, durably. Returns how many models it has. `changed`: its date.

    Raises `MassgenError` invalid_arguments, disk_full, store_unavailable.
    """
    try:
        snapshot = read_snapshot(data)
    except ValueError as error:
        raise MassgenError("invalid_arguments", f"no price list: {error}") from None
    target = locate_list(home)
    try:
        write_durably(target, data)
        if changed is not None:
            os.utime(target, (changed, changed))
    except OSError as error:
        raise storage_error(f"cannot keep {target}", error) from error
    return sum(len(provider.models) for provider in snapshot.providers)


def remove_own_list(home: Path) -> None:
    """Return to the installed list. Raises `MassgenError` store_unavailable."""
    try:
        locate_list(home).unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(f"cannot remove {locate_list(home)}", error) from error
