"""`massgen prices`: show which price list is in use, and take in a newer one from a file or an address."""

import argparse
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.access.connections import open_client
from massgen_mcp.config.providers.addresses import is_safe_url
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.money.price_list import MAX_BYTES, NEWEST_LIST, PriceList, find_price_list, remove_own_list, save_list

if TYPE_CHECKING:
    import httpx2

FETCH_SECONDS = 60.0


async def run(options: argparse.Namespace) -> int:
    home = find_home(os.environ).ensure().path
    models = None
    if options.source is not None:
        data, changed = await _load_source(options.source)
        models = await anyio.to_thread.run_sync(save_list, data, home, changed)
    elif options.installed:
        remove_own_list(home)
    found = find_price_list(home)
    if options.json:
        print_line(json.dumps(_as_json(found, models)))
        return EXIT_OK
    if models is not None:
        print_line(f"loaded the prices of {models} models")
    if found is not None:
        print_line(describe(found))
    print_line(f"to load the newest list: massgen prices --from {NEWEST_LIST}")
    return EXIT_OK


def describe(found: PriceList) -> str:
    day = datetime.fromtimestamp(found.changed, UTC).date().isoformat()
    origin = "loaded, dated" if found.taken_in else "from the package genai-prices, installed on"
    return f"price list: {origin} {day} ({found.path})"


def _as_json(found: PriceList | None, models: int | None) -> dict[str, object]:
    if found is None:
        return {"path": None}
    return {
        "path": str(found.path),
        "taken_in": found.taken_in,
        "days": round(found.days, 1),
        "old": found.is_old,
        "models": models,
    }


async def _load_source(source: str) -> tuple[bytes, float | None]:
    """The list at a file or an address, and the file's date. Raises `MassgenError` invalid_arguments."""
    if "://" in source:
        return await _fetch(source), None
    path = anyio.Path(source)
    try:
        if (found := await path.stat()).st_size > MAX_BYTES:
            raise MassgenError(
                "invalid_arguments", f"{source} is larger than {MAX_BYTES >> 20} MiB, so it can't be a price list"
            )
        return await path.read_bytes(), found.st_mtime
    except OSError as error:
        raise MassgenError("invalid_arguments", f"cannot read {Path(source)}: {error.strerror}") from None


async def _fetch(url: str) -> bytes:
    import httpx2  # here: other verbs start without it

    if not is_safe_url(url):
        raise MassgenError("invalid_arguments", "expected a file, or an https:// address without credentials")
    try:
        with anyio.fail_after(FETCH_SECONDS):
            async with (
                open_client(url, timeout=FETCH_SECONDS) as client,
                client.stream("GET", url) as response,
            ):
                response.raise_for_status()
                return await _read_body(response)
    except (httpx2.HTTPError, TimeoutError) as error:
        cause = str(error).splitlines()[0] if str(error) else f"no reply within {FETCH_SECONDS:g} s"
        raise MassgenError("invalid_arguments", f"cannot fetch {url}: {cause}") from None


async def _read_body(response: "httpx2.Response") -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > MAX_BYTES:
            raise MassgenError(
                "invalid_arguments", f"the reply is larger than {MAX_BYTES >> 20} MiB, so it can't be a price list"
            )
    return bytes(data)
