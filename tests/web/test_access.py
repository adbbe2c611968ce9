"""Who is let into the pages of `massgen web`, and what of it: asked without a browser, as an attacker would."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from massgen_mcp.home import find_home
from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.server.build import build_server
from massgen_mcp.server.http.connections import Strangers
from massgen_mcp.web.app import api
from massgen_mcp.web.serve import web_gate
from tests.harness import TempHome

BASE = "http://127.0.0.1:8765"
TOKEN = "t" * 43
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
ASKED = (
    "/api",
    "/api/",
    "/api/runs",
    "/api/runs/run-x",
    "/api/statistics",
    "/api/form",
    "/api/checks?directory=/",
    "/api/runs/run-x/request",
    "/api/tools/list_runs",
    "/api/../api/runs",
    "//api/runs",
    "/API/runs",
)


@asynccontextmanager
async def visitor(home: TempHome) -> AsyncGenerator[httpx2.AsyncClient]:
    """Who shows the right token, unless a request says otherwise."""
    place = find_home(home.environ)
    service = RunService(local_engine(place), home.environ)
    try:
        async with api(build_server(place, service, NO_KEYS), NO_KEYS) as app:
            gate: Any = web_gate(app, TOKEN, [BASE.removeprefix("http://")], Strangers())
            transport = httpx2.ASGITransport(gate, client=("127.0.0.1", 1))
            async with httpx2.AsyncClient(transport=transport, base_url=BASE, headers=RIGHT) as http:
                yield http
    finally:
        service.close()


async def test_nothing_is_told_without_the_token_of_this_process(home: TempHome) -> None:
    async with visitor(home) as http:
        for wrong in ("", "Bearer", "Bearer x", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"bearer{TOKEN}"):
            shown = {"Authorization": wrong, "Cookie": f"token={TOKEN}"}
            for path in ASKED:
                for method in ("GET", "POST"):
                    reply = await http.request(
                        method, f"{path}{'&' if '?' in path else '?'}token={TOKEN}", json={}, headers=shown
                    )
                    assert reply.status_code in (401, 404), (wrong, path)
                    assert "run" not in reply.text
        assert (await http.get("/api/runs")).json() == {"runs": []}


async def test_the_pages_themselves_hold_nothing_and_may_ask_nobody_else(home: TempHome) -> None:
    async with visitor(home) as http:
        paths = ("/", "/new", "/compare", "/runs/run-x", "/runs/%3Cscript%3E")
        pages = [await http.get(path, headers={"Authorization": ""}) for path in paths]
        assert {page.text for page in pages} == {pages[0].text}
        pages.append(await http.get("/statistics", headers={"Authorization": ""}))
        for path in ("/../etc/passwd", "/runs/../../x", "/runs/a/b", "/%2e%2e/x", "/web.js", "/runs/..%2f..%2fx"):
            assert (await http.get(path)).status_code == 404, path
    for page in (pages[0], pages[-1]):
        headers = page.headers
        assert headers["content-security-policy"] == "frame-ancestors 'none'"
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
        policy = page.text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert policy.endswith("connect-src 'self'")
        assert "unsafe" not in policy


async def test_a_page_of_another_name_or_origin_gets_nothing_even_with_the_token(home: TempHome) -> None:
    hosts = ("evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:8766", "localhost.evil.example:8765")
    origins = ("http://evil.example", "null", "http://127.0.0.1:8766", "https://127.0.0.1:8765", f"{BASE}.evil.example")
    async with visitor(home) as http:
        for host in (*hosts, "2130706433:8765"):
            for path in ("/", "/api/runs", "/api/tools/list_runs"):
                assert (await http.get(path, headers={"Host": host})).status_code == 421, host
        for origin in origins:
            start = {"question": "q", "config": "scripted"}
            reply = await http.post("/api/tools/start_run", json=start, headers={"Origin": origin})
            assert reply.status_code == 403, origin
        reply = await http.get("/api/runs", headers={"Origin": BASE})
        assert reply.json() == {"runs": []}, "massgen started nothing"


IDS = (
    *("run-x", "..", "%2e%2e", "..%5c..", "%00", "%3Cscript%3Ealert(1)%3C%2Fscript%3E", "%F0%9F%98%80"),
    *("x" * 4000, "run-%0d%0aX: y"),
)


async def test_a_run_that_cannot_be_is_not_there(home: TempHome) -> None:
    async with visitor(home) as http:
        for run_id in IDS:
            reply = await http.get(f"/api/runs/{run_id}")
            assert reply.status_code in (404, 405), run_id
            assert "<" not in reply.text or reply.headers["content-type"] == "application/json"


async def test_what_is_asked_is_checked_as_by_the_tools(home: TempHome) -> None:
    async with visitor(home) as http:
        for tool, arguments, told in (
            ("start_run", {"question": ""}, "question"),
            ("start_run", {"question": "q", "num_agents": 99, "models": ["a/b"]}, "num_agents"),
            ("start_run", {"question": "q", "config": "scripted", "context_paths": ["relative"]}, "must be absolute"),
            ("start_run", {"question": "q", "shell": "rm"}, "unknown argument"),
            ("control_run", {"run_id": "run-x", "action": "delete"}, "action"),
            ("control_run", {"run_id": "../../x", "action": "cancel"}, "there is no run"),
            ("get_token", {}, "there is no tool"),
        ):
            reply = await http.post(f"/api/tools/{tool}", json=arguments)
            assert (reply.status_code, told in reply.json()["error"]) == (400, True), (tool, reply.text)
        for body, kind in (
            (b"{}", "text/plain"),
            (b"question=q", "application/x-www-form-urlencoded"),
            (b"[]", "application/json"),
            (b"{", "application/json"),
            (b"[" * 100_000, "application/json"),
            (b" " * 5_000_000, "application/json"),
        ):
            reply = await http.post("/api/tools/list_runs", content=body, headers={"Content-Type": kind})
            assert reply.status_code == 400, (body[:20], kind)
        for query in (
            "limit=0",
            "limit=1000",
            "state=x",
            "since=x",
            "since=nan",
            "cursor=-1",
            "cursor=9223372036854775808",
            "shell=1",
            "since=1e400",
        ):
            reply = await http.get(f"/api/runs?{query}")
            assert reply.status_code == 400, query
        for directory in ("relative", "/no/such/directory", "%00", "/" + "x" * 5000):
            reply = await http.get(f"/api/checks?directory={directory}")
            assert reply.status_code == 400, directory
        assert (await http.get("/api/tools/list_runs")).status_code == 405
