"""Two people on one server in this process, the runs of one of them, and what the other one is answered."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp.types import Request, RequestParams
from starlette.types import ASGIApp

from massgen_mcp.certificates import trusted
from massgen_mcp.config.models.config import Config
from massgen_mcp.home import find_home
from massgen_mcp.people import People, Person, User, current_user, set_current_user
from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.request.team import Team
from massgen_mcp.runs.engine import Engine, FrozenRequest, NewRun, new_run_id
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.server.build import BuiltServer, build_server
from massgen_mcp.server.http.gate import Admission, Gate, Pages
from massgen_mcp.server.http.oauth import OAuthSettings
from massgen_mcp.server.http.serving import HttpSettings
from massgen_mcp.server.http.tokens import Tokens
from massgen_mcp.web.app import api
from massgen_mcp.web.login import login_pages
from tests.cluster.stage import Store, cluster
from tests.harness import TempHome, after
from tests.postgres import shared_server
from tests.run_requests import run_request
from tests.server.task_client import Anything, KnowsTasks
from tests.teams import silent_team, team

HOST = "127.0.0.1:8765"
TOKENS = {name: f"the-token-of-{name}-0123456789" for name in ("ann", "bob")}
UI = "io.modelcontextprotocol/ui"

ANSWER, SESSION, KEY = "bobs-answer", "bobs-session", "bobs-key"
"""What is in the runs of the one of whom nothing is to be seen, beside their ids."""


def login_of(app: ASGIApp, people: People) -> Pages:
    """The pages of a server whose authorization server does not answer."""
    oauth = OAuthSettings("http://127.0.0.1:9", f"http://{HOST}/mcp", (), client=("massgen", ""), people=True)
    return login_pages(app, HttpSettings(oauth=oauth, people=people), encrypted=False)


def digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


@dataclass
class Shared:
    """A server for ann and bob."""

    home: TempHome
    engine: Engine
    service: RunService
    built: BuiltServer
    people: People
    gate: Path
    runs: dict[str, str] = field(default_factory=dict[str, str])
    """Those of bob, by what becomes of them."""

    def asking(self, name: str) -> User:
        found = self.people.of_token(TOKENS[name])
        assert found is not None
        return found

    @contextmanager
    def asked_by(self, name: str) -> Generator[None]:
        with set_current_user(self.asking(name)):
            yield

    async def start(self, name: str, config: Config, **given: Any) -> str:
        with self.asked_by(name):
            view, _ = await self.service.start(
                await self.service.prepare(
                    run_request(given.pop("question", "q"), Team(config, "test", self.home.environ), **given)
                )
            )
        return view.row.run_id

    async def ended(self, name: str, run_id: str) -> None:
        with self.asked_by(name):
            view = await self.service.watcher.wait(run_id, until="terminal", seconds=60, cursor=None)
            assert view.stands_still

    @asynccontextmanager
    async def client(self, name: str) -> AsyncGenerator[Client]:
        with self.asked_by(name):
            shown = [KnowsTasks(), advertise(UI, {"mimeTypes": ["text/html;profile=mcp-app"]})]
            async with Client(self.built.server, mode="2026-07-28", extensions=shown) as client:
                yield client

    @asynccontextmanager
    async def browser(self, name: str) -> AsyncGenerator[httpx2.AsyncClient]:
        async with api(self.built, NO_KEYS) as app:
            gate: Any = Gate(
                app,
                Admission(Tokens(None, None, f"http://{HOST}/mcp", self.people), [HOST]),
                beside=login_of(app, self.people),
            )
            transport = httpx2.ASGITransport(gate, client=("127.0.0.1", 1))
            shown = {"Authorization": f"Bearer {TOKENS[name]}"}
            async with httpx2.AsyncClient(
                verify=trusted(), transport=transport, base_url=f"http://{HOST}", headers=shown
            ) as http:
                yield http


@asynccontextmanager
async def sharing(home: TempHome, store: Store, *, concurrency: int = 50, **more: Person) -> AsyncGenerator[Shared]:
    """`more`: what is said of ann or bob beside their tokens."""
    named = {
        name: more.get(name, Person()).model_copy(update={"tokens": (digest(token),)}) for name, token in TOKENS.items()
    }
    if store == "local":
        engine = local_engine(find_home(home.environ))
        yield _shared(home, engine, named)
        engine.close()
    else:
        with cluster(home, shared_server()) as machines:
            machines.add_worker("--concurrency", str(concurrency))
            yield _shared(machines.home, machines.engine(), named)


def _shared(home: TempHome, engine: Engine, named: dict[str, Person]) -> Shared:
    service = RunService(engine, home.environ, current_user)
    built = build_server(find_home(home.environ), service, NO_KEYS)
    return Shared(home, engine, service, built, People(named, home.environ), home.work / "gate")


async def with_runs_of_bob(shared: Shared) -> None:
    """One that has ended, one that goes on until the test ends, one that asks, one nested in another."""
    says = {"answer": ANSWER}
    ended = await shared.start("bob", team([says]), question="bobs-question", session_id=SESSION, idempotency_key=KEY)
    await shared.ended("bob", ended)
    going = await shared.start("bob", team([{**says, **after(shared.gate)}]), question="bobs-question")
    ask = {"call": "ask_the_asker", "arguments": {"question": "bobs-doubt"}}
    asks = await shared.start("bob", team([ask, says], orchestrator={"allow_questions": True}), caller_answers=True)
    await shared.ended("bob", asks)
    nested = NewRun(new_run_id(), "bobs-question", "test", "x", "", f"{going}/1", parent=going, admitted=False)
    shared.engine.files.create(nested.run_id, FrozenRequest("bobs-question", silent_team(1)), NO_KEYS, nested)
    shared.engine.store.queue.add(nested)
    shared.runs = {"ended": ended, "going": going, "asks": asks, "nested": nested.run_id}


class AnyParams(RequestParams, extra="allow"):
    """As they are written."""


class AnyRequest(Request[AnyParams, str]):
    """Whatever the protocol calls it."""


async def told(client: Client, method: str, params: dict[str, Any]) -> str:
    """The whole reply, of whatever kind."""
    try:
        request = AnyRequest(method=method, params=AnyParams.model_validate(params))
        return (await client.session.send_request(request, Anything)).model_dump_json()
    except MCPError as refusal:
        return refusal.error.model_dump_json()
