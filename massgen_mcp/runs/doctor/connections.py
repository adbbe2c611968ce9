"""Finds out what stands between this program and the servers of models: variables, proxies, certificates, web pages.

Before a run begins and for the doctor. No model is asked: only a server's list of models, which costs nothing.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from massgen_mcp.config.access.connections import (
    find_proxy,
    list_bad_variables,
    list_proxies,
    require_connection,
)
from massgen_mcp.config.access.key_hosts import provider_for
from massgen_mcp.config.access.members import asked_by
from massgen_mcp.config.loader import config_places, is_team, load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import AnyHttpBackend
from massgen_mcp.config.providers.catalog import PROVIDERS, operators_address
from massgen_mcp.errors import BackendError, MassgenError
from massgen_mcp.runs.doctor.result import DoctorCheck
from massgen_mcp.threads import imported

if TYPE_CHECKING:
    from massgen_mcp.backends.http import Endpoint

ASKING = ("massgen_mcp.backends.http", "massgen_mcp.backends.registry", "massgen_mcp.backends.local_server")
"""The HTTP stack, for who has models to look for."""
SECONDS = 5.0
"""So long the doctor waits for a server behind a proxy."""
_MAY_PASS = frozenset({"page"})
"""What may hold for a server's list of models alone, so that a run begins all the same."""


def require_connections(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Return notes on variables that cannot be used, and that this team does not need. Raises `BadVariable` for one
    that it needs.
    """
    for backend in asked_by([agent.backend for agent in config.agents]):
        provider = provider_for(backend, environ)
        require_connection(provider.base_url, own_server=provider.start is not None)
    return [f"{fault}. This team doesn't need it." for fault in list_bad_variables()]


def is_behind_proxy(backend: AnyHttpBackend, environ: Mapping[str, str]) -> bool:
    provider = provider_for(backend, environ)
    return find_proxy(provider.base_url, own_server=provider.start is not None) is not None


async def find_connection_fault(endpoint: "Endpoint") -> BackendError | None:
    """Return what keeps requests from the server, where that is not the server itself."""
    from massgen_mcp.backends.failures import report_page, translated  # see ASKING
    from massgen_mcp.backends.http import RefusedError, listing_client

    url = f"{(endpoint.base_url or '').rstrip('/')}/models"
    try:
        with translated(endpoint):
            async with listing_client(endpoint) as client, client.stream("GET", url) as reply:
                if not reply.is_success:
                    raise RefusedError(reply, None, reply.reason_phrase)
                if reply.headers.get("content-type", "").startswith("text/html"):
                    raise report_page(reply.status_code, endpoint)
    except BackendError as error:
        return error if error.in_between else None
    return None


def is_certain(fault: BackendError) -> bool:
    """Return whether no model behind it can be reached, whatever is asked."""
    return fault.in_between not in _MAY_PASS


async def check_connections(cwd: Path, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Check the variables, and ask the servers that lie behind a proxy. Never raises."""
    faults = [DoctorCheck("connection", "fail", fault.what, fault.remedy) for fault in list_bad_variables()]
    proxies = list_proxies()
    if faults or not proxies:
        return faults or [DoctorCheck("connection", "ok", "no proxy is set; the certificates are readable")]
    await imported(*ASKING)
    found: dict[str, DoctorCheck] = {}

    async def ask(endpoint: "Endpoint") -> None:
        found[endpoint.base_url or ""] = await _ask_through_proxy(endpoint)

    async with anyio.create_task_group() as tasks:
        for endpoint in _list_endpoints(cwd, environ):
            tasks.start_soon(ask, endpoint)
    set_here = DoctorCheck("connection", "ok", f"{', '.join(map(str, proxies))}; not used for requests to this machine")
    return [set_here, *found.values()]


async def _ask_through_proxy(endpoint: "Endpoint") -> DoctorCheck:
    fault: BackendError | None = None
    with anyio.move_on_after(SECONDS) as limit:
        fault = await find_connection_fault(endpoint)
    if limit.cancelled_caught:
        message = f"{endpoint.base_url} did not answer within {SECONDS:g} s through the proxy"
        return DoctorCheck("connection", "warn", message, "check that the proxy is running and can reach this address")
    if fault is None:
        return DoctorCheck("connection", "ok", f"{endpoint.base_url} answers through the proxy")
    message, _, advice = str(fault).partition("; ")
    if is_certain(fault):
        return DoctorCheck("connection", "fail", message, advice)
    return DoctorCheck("connection", "warn", message, advice)


def _list_endpoints(cwd: Path, environ: Mapping[str, str]) -> "Iterator[Endpoint]":
    """Yield the servers behind a proxy that a team here may ask, each once and without a key."""
    from massgen_mcp.backends.http import Endpoint  # see ASKING

    rows = [row for row in PROVIDERS if any(environ.get(name) for name in row.key_variables)]
    addresses = [(operators_address(row, environ) or row.base_url, row.start) for row in rows]
    with suppress(MassgenError, StopIteration):
        config = load_config(next(filter(is_team, config_places(cwd, environ))), environ=environ, base_dir=cwd)
        for backend in asked_by([agent.backend for agent in config.agents]):
            provider = provider_for(backend, environ)
            addresses.append((provider.base_url, provider.start))
    for address, start in dict.fromkeys(addresses):
        endpoint = replace(Endpoint(model="", api_key=_NO_KEY), base_url=address, start=start)
        if address and find_proxy(address, own_server=endpoint.is_own_server) is not None:
            yield endpoint


_NO_KEY = "none"
