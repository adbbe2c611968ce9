"""The same over HTTP: who is let in, as whom, with how much, and with whose keys."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from massgen_mcp.certificates import trusted
from massgen_mcp.home import STORE_VARIABLE
from tests.busy_double import busy_server
from tests.cli.test_unknown_prices import CALL_USD, CAP, MOST_CALLS, answering, backend, team
from tests.cluster.stage import STORES, Store, kept_in
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, call, expect_error, spawned, wait_until
from tests.harness import home as plain_home
from tests.people.stage import TOKENS, digest
from tests.server.authorization_server import authorization_server
from tests.server.test_http import ACCEPT, INITIALIZE

__all__ = ["plain_home"]

OPERATOR = "the-token-of-the-operator-0123"
RESOURCE = "https://massgen.example/mcp"


IN_BOTH_STORES = pytest.mark.parametrize("store", STORES)


@pytest.fixture
def store() -> Store:
    return "local"


@pytest.fixture
def home(plain_home: TempHome, store: Store) -> Iterator[TempHome]:
    """With a worker of two pools, where it needs one."""
    with kept_in(store, plain_home, "--pools", "default,research") as kept:
        yield kept


def people(home: TempHome, **named: Any) -> Path:
    """The file: ann and bob with their tokens, and what is said of them and of others beside."""
    known = {name: {"tokens": [digest(token)], **named.pop(name, {})} for name, token in TOKENS.items()}
    (home.work / "people.yaml").write_text(json.dumps(known | named))
    return home.work / "people.yaml"


@asynccontextmanager
async def serving(home: TempHome, *options: str, module: str = SERVER_MODULE, **named: Any) -> AsyncGenerator[str]:
    """The URL of a server for them."""
    port = ("--transport", "http", "--port", "0", "--people", str(people(home, **named)))
    log = home.work / "people.log"
    with log.open("wb") as output:
        async with spawned(home, home.python, "-m", module, *port, *options, stderr=output):
            yield (await wait_until(lambda: re.search(r"(http://\S+/mcp)", log.read_text()))).group(1)  # type: ignore[union-attr]


@asynccontextmanager
async def client_of(url: str, token: str, mode: Any = "auto") -> AsyncGenerator[Client]:
    shown = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(verify=trusted(), headers=shown, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def knock(url: str, token: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(verify=trusted(), trust_env=False, timeout=60, headers=ACCEPT) as http:
        return await http.post(url, json=INITIALIZE, headers={"Authorization": f"Bearer {token}", **headers})


@IN_BOTH_STORES
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_each_token_is_a_person_with_runs_of_his_own(home: TempHome, mode: str) -> None:
    async with serving(home) as url:
        async with client_of(url, TOKENS["bob"], mode) as bob, client_of(url, TOKENS["ann"], mode) as ann:
            run_id = (await call(bob, "start_run", question="q", team="scripted", wait_seconds=45))["run_id"]
            assert (await call(ann, "list_runs"))["runs"] == []
            assert (await expect_error(ann, "get_result", run_id=run_id))[0] == "unknown_run"
            assert (await call(bob, "get_result", run_id=run_id))["status"] == "completed"
            for argument in ({"context_paths": ["/etc"]}, {"context_paths": ["/no/such"]}, {"team": "/etc/passwd"}):
                code, told = await expect_error(ann, "start_run", **{"question": "q", **argument})
                assert (code, "names a file on the server, but users can't access" in told) == (
                    "invalid_arguments",
                    True,
                )
        assert (await knock(url, f"{TOKENS['bob']}x")).status_code == 401
        assert not list(home.path.glob("*http-token*")), "there is no token that sees everything"
    listed = run_command(home, SERVER_MODULE, "runs", "--json")
    assert run_id in listed.stdout, "who owns the machine sees all"


async def test_a_session_of_the_protocol_is_its_persons(home: TempHome) -> None:
    async with serving(home) as url:
        session = (await knock(url, TOKENS["bob"])).headers["mcp-session-id"]
        assert (await knock(url, TOKENS["bob"], **{"mcp-session-id": session})).status_code != 404
        strange = await knock(url, TOKENS["ann"], **{"mcp-session-id": session})
        unknown = await knock(url, TOKENS["ann"], **{"mcp-session-id": "0" * 32})
        assert (strange.status_code, strange.content) == (unknown.status_code, unknown.content)


async def test_subjects_of_an_authorization_server_are_people_named_or_not(home: TempHome) -> None:
    with authorization_server() as issuer:
        options = ("--oauth-issuer", issuer.url, "--public-url", RESOURCE)
        for anybody, carol in ((False, 401), (True, 200)):
            named: dict[str, Any] = {"dan": {"subject": "ann"}, **({"*": {}} if anybody else {})}
            async with serving(home, *options, **named) as url:
                names = {"Host": "massgen.example"}
                assert (await knock(url, issuer.token(RESOURCE), **names)).status_code == 200
                assert (await knock(url, issuer.token(RESOURCE, sub="carol"), **names)).status_code == carol
                assert (await knock(url, issuer.token(RESOURCE, sub=None), **names)).status_code == 401


@IN_BOTH_STORES
async def test_quotas_of_runs_and_money_hold_for_each_person(home: TempHome) -> None:
    async with serving(home, ann={"runs_per_day": 1}, bob={"usd_per_month": 3}) as url:
        async with client_of(url, TOKENS["ann"]) as ann:
            given = {"question": "q", "team": "scripted"}
            await call(ann, "start_run", **given, idempotency_key="k")
            code, told = await expect_error(ann, "start_run", **given)
            assert (code, "you have reached your quota of runs per day (UTC): 1" in told) == ("quota_reached", True)
            await call(ann, "start_run", **given, idempotency_key="k")
        told = run_command(home, SERVER_MODULE, "audit", "--person", "ann", "--json")
        assert [entry["action"] for entry in json.loads(told.stdout)["entries"]] == ["start"]
        async with client_of(url, TOKENS["bob"]) as bob:
            for usd in (None, 3.5):
                assert (await expect_error(bob, "start_run", **given, max_usd=usd))[0] == "quota_reached"
            run_id = (await call(bob, "start_run", **given, max_usd=2))["run_id"]
            code, told = await expect_error(bob, "start_run", **given, max_usd=1.5)
            assert (code, "you have 1.00 of 3.00 USD left for the current month" in told) == ("quota_reached", True)
            await call(bob, "wait_run", run_id=run_id)
            await call(bob, "start_run", **given, max_usd=3)  # what has ended counts as what it has cost


async def test_a_quota_of_money_counts_calls_of_unknown_price_at_their_bound(home: TempHome) -> None:
    async with busy_server(answering()) as double, serving(home, bob={"usd_per_month": 3 * CAP}) as url:
        Path(team(home, double)).rename(home.own_configs / "config.yaml")
        async with client_of(url, TOKENS["bob"]) as bob:
            for spent in (0.0, MOST_CALLS * CALL_USD, 2 * MOST_CALLS * CALL_USD):
                left = 3 * CAP - spent
                told = await expect_error(bob, "start_run", question="q", max_usd=left + 0.01)
                assert (told[0], f"{left:.2f} of 0.30 USD left for the current month" in told[1]) == (
                    "quota_reached",
                    True,
                )
                run_id = (await call(bob, "start_run", question="q"))["run_id"]
                await call(bob, "wait_run", run_id=run_id)
    assert len(double.heads) == 3 * MOST_CALLS


async def test_a_quota_of_money_counts_the_whole_budget_of_a_run_whose_cost_is_known_in_part(home: TempHome) -> None:
    """One agent has no price, and `max_tokens` limits its calls."""
    price = {"input_usd_per_million": 0.001, "output_usd_per_million": 0.001}
    async with busy_server(answering()) as double, serving(home, bob={"usd_per_month": 3 * CAP}) as url:
        agents = [
            {"id": "ada", "backend": {**backend(double), "price": price}},
            {"id": "bo", "backend": backend(double)},
        ]
        home.config("config", *agents, budget={"max_usd": CAP, "max_tokens": 1_000_000})
        async with client_of(url, TOKENS["bob"]) as bob:
            run_id = (await call(bob, "start_run", question="q"))["run_id"]
            await call(bob, "wait_run", run_id=run_id)
            told = await expect_error(bob, "start_run", question="q", max_usd=3 * CAP)
            assert (told[0], "0.20 of 0.30 USD left for the current month" in told[1]) == ("quota_reached", True)


async def test_runs_of_a_person_have_his_keys_and_nobody_elses(home: TempHome) -> None:
    """Which keys are set is told by name, never by value."""
    keys = {"OPENAI_API_KEY": "ANNS_OPENAI_KEY"}
    held = home.with_variables(ANNS_OPENAI_KEY="planted-key-of-ann-0123456789")
    async with serving(held, ann={"keys": keys}) as url:
        for name, there in (("ann", True), ("bob", False)):
            async with client_of(url, TOKENS[name]) as client:
                listed = await call(client, "list_configs", name="two_providers")
                assert ("OPENAI_API_KEY" not in str(listed["configs"])) == there, listed["configs"]
    missing = run_command(home, SERVER_MODULE, "--transport", "http", "--people", str(people(home, ann={"keys": keys})))
    assert "ann: ANNS_OPENAI_KEY is not set" in missing.stderr


async def ask(url: str, method: str, path: str, **given: Any) -> httpx2.Response:
    async with httpx2.AsyncClient(verify=trusted(), trust_env=False, timeout=60) as http:
        return await http.request(method, f"{url.removesuffix('/mcp')}{path}", **given)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_nobody_who_shares_a_server_learns_its_directory_or_its_logins(home: TempHome) -> None:
    (home.work / "token").write_text(OPERATOR)
    (home.work / "HOLDS_KEYS").touch()
    async with serving(home, "--pages", "--token-file", str(home.work / "token")) as url:
        started = {"question": "q", "team": "scripted"}
        begun = (await ask(url, "POST", "/api/tools/start_run", json=started, headers=bearer(TOKENS["bob"]))).json()
        relative = {"question": "q", "team": "scripted", "context_paths": [{"path": "notes"}]}
        replies = [
            await ask(url, "GET", "/api/form", headers=bearer(TOKENS["bob"])),
            await ask(url, "GET", "/api/checks?directory=notes", headers=bearer(TOKENS["bob"])),
            await ask(url, "GET", f"/api/runs/{begun['run_id']}/request", headers=bearer(TOKENS["bob"])),
            await ask(url, "POST", "/api/tools/list_configs", json={}, headers=bearer(TOKENS["bob"])),
            await ask(url, "POST", "/api/tools/start_run", json=relative, headers=bearer(TOKENS["bob"])),
            await ask(
                url, "POST", "/api/tools/get_status", json={"run_id": begun["run_id"]}, headers=bearer(TOKENS["bob"])
            ),
        ]
        own = (await ask(url, "GET", "/api/form", headers=bearer(OPERATOR))).json()
    form = replies[0].json()
    assert (form["clis"], form["directories"]) == ([], [])
    assert own["directories"] == [str(Path.cwd())], "who owns the server is offered it"
    assert [str(Path.cwd()) in reply.text for reply in replies] == [False] * len(replies), [one.text for one in replies]


@IN_BOTH_STORES
async def test_the_pages_are_behind_the_same_login(home: TempHome) -> None:
    async with serving(home, "--pages") as url:
        assert "Sign in to see your runs" in (await ask(url, "GET", "/runs/run-x")).text
        assert (await ask(url, "GET", "/api/runs")).status_code == 401
        assert (await ask(url, "POST", "/api/login", headers=bearer("wrong" * 5))).status_code == 401
        cookies: dict[str, dict[str, str]] = {}
        for name, token in TOKENS.items():
            let_in = await ask(url, "POST", "/api/login", headers=bearer(token))
            kept, *rules = let_in.headers["set-cookie"].split("; ")
            assert (let_in.status_code, {"HttpOnly", "SameSite=strict", "Path=/"} <= set(rules)) == (204, True)
            cookies[name] = {"Cookie": kept}
        started = {"question": "q", "team": "scripted"}
        begun = await ask(url, "POST", "/api/tools/start_run", json=started, headers=cookies["bob"])
        run_id = begun.json()["run_id"]
        assert run_id in (await ask(url, "GET", "/api/runs", headers=cookies["bob"])).text
        assert (await ask(url, "GET", "/api/runs", headers=cookies["ann"])).json() == {"runs": []}
        assert (await ask(url, "GET", f"/api/runs/{run_id}", headers=cookies["ann"])).status_code == 404
        foreign = {**cookies["bob"], "Origin": "http://evil.example"}
        assert (await ask(url, "POST", "/api/tools/start_run", json=started, headers=foreign)).status_code == 403
        form = {**cookies["bob"], "Content-Type": "text/plain"}
        assert (await ask(url, "POST", "/api/tools/start_run", content="{}", headers=form)).status_code == 400
        assert (await ask(url, "POST", "/mcp", json=INITIALIZE, headers=cookies["bob"])).status_code == 401
        assert "Max-Age=0" in (await ask(url, "DELETE", "/api/login", headers=cookies["bob"])).headers["set-cookie"]
    async with serving(home) as url:
        assert (await ask(url, "GET", "/")).status_code == (await ask(url, "GET", "/api/runs")).status_code == 404


@pytest.mark.parametrize("store", STORES[1:])
async def test_runs_of_a_person_go_to_the_workers_of_his_pool(home: TempHome) -> None:
    async with serving(home, ann={"pool": "research"}, bob={"pool": "nowhere"}) as url:
        given = {"question": "q", "team": "scripted"}
        async with client_of(url, TOKENS["ann"]) as ann, client_of(url, TOKENS["bob"]) as bob:
            assert (await call(ann, "start_run", **given, wait_seconds=45))["status"] == "completed"
            waiting = await call(bob, "start_run", **given)
            assert (waiting["status"], "in the pool nowhere" in str(waiting)) == ("queued", True)
    own = str(people(home, ann={"keys": {"OPENAI_API_KEY": "PATH"}}))
    refused = run_command(home, SERVER_MODULE, "--transport", "http", "--people", own)
    assert "give users a `pool` whose workers have the keys" in refused.stderr


@IN_BOTH_STORES
async def test_the_operator_alone_reads_figures_of_all_and_everybody_whether_it_can_serve(
    home: TempHome, store: Store
) -> None:
    (home.work / "token").write_text(OPERATOR)
    (home.work / "HOLDS_KEYS").touch()
    async with serving(home, "--token-file", str(home.work / "token")) as url:
        async with client_of(url, TOKENS["bob"]) as bob:
            await call(bob, "start_run", question="q", team="scripted", wait_seconds=45)
        for shown, status in ((OPERATOR, 200), (TOKENS["bob"], 404)):
            assert (await ask(url, "GET", "/metrics", headers=bearer(shown))).status_code == status
        assert (await ask(url, "GET", "/metrics")).status_code == 401
        told = (await ask(url, "GET", "/metrics", headers=bearer(OPERATOR))).text.splitlines()
        assert {'massgen_runs{state="completed"} 1', 'massgen_http_replies_total{status="401"} 1'} <= set(told)
        samples = [line for line in told if not line.startswith("#")]
        assert [line for line in samples if not re.fullmatch(r'[a-z_]+(\{[a-z]+="\w+"\})? \d+(\.\d+)?', line)] == []
        assert (await ask(url, "GET", "/readyz", headers={"Host": "10.0.0.1"})).text == "ready"
        if store == "postgres":
            with psycopg.connect(home.extra[STORE_VARIABLE]) as db:
                db.execute("ALTER TABLE massgen.runs RENAME TO gone")
        else:
            for ending in ("-wal", "-shm"):
                (home.path / f"runs.sqlite3{ending}").unlink(missing_ok=True)
            (home.work / "junk").write_bytes(b"no SQLite file" * 500)
            (home.work / "junk").replace(home.path / "runs.sqlite3")
        assert (await ask(url, "GET", "/readyz")).status_code == 503
        assert (await ask(url, "GET", "/healthz")).status_code == 200


async def test_faults_are_told_as_json_with_who_asked(home: TempHome) -> None:
    async with serving(home, "--log-format", "json", module="tests.server.broken_server") as url:
        async with client_of(url, TOKENS["ann"]) as ann:
            assert (await expect_error(ann, "get_status", run_id="run-x"))[0] == "internal"
        log = (home.work / "people.log").read_text().splitlines()
        greeting, *_, told = map(json.loads, log)
        assert (greeting["level"], url in greeting["message"]) == ("INFO", True)
        assert (told["level"], told["person"], "KeyError" in told["fault"]) == ("ERROR", "ann", True)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("[]", "valid dictionary"),
        ('{"ann": {"tokens": ["short"]}}', "ann.tokens.0"),
        ('{"ann": {"token": "x"}}', "ann.token"),
        ('{"operator": {}}', "the name 'operator' is reserved for the owner of --token-file"),
        ('{"a:b": {}}', "a:b"),
        ('{"ann": {"subject": "x"}, "bob": {"subject": "x"}}', "the same token or subject"),
    ],
)
def test_a_file_of_people_that_is_wrong_is_named_before_anybody_comes(home: TempHome, wrong: str, told: str) -> None:
    refused = run_command(
        home.with_variables(MASSGEN_MCP_PEOPLE=wrong), SERVER_MODULE, "--transport", "http", "--port", "0"
    )
    if wrong == "[]":  # no text of a file, as it has no brace
        told = "cannot read the file"
    assert (refused.returncode, told in refused.stderr) == (1, True), refused.stderr
