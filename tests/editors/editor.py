"""An editor: the official client of the Agent Client Protocol on a real `massgen-mcp acp`."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.connection import StreamEvent
from acp.interfaces import Agent, Client
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from tests.harness import SERVER_MODULE, TempHome, wait_until

Chooses = Callable[[dict[str, Any]], str | None]
"""Shown what a permission is asked for, the option that the person takes; None: the dialogue is closed."""


class _Person:
    """Of a client, what the agent makes use of: what it sent and the package has checked, and the person's choices."""

    def __init__(self, chooses: Chooses) -> None:
        self._chooses = chooses
        self.updates = 0

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        del session_id, update
        self.updates += 1

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        del session_id
        asked = {
            **tool_call.model_dump(by_alias=True, exclude_none=True),
            "options": [one.option_id for one in options],
        }
        chosen = self._chooses(asked)
        outcome = AllowedOutcome(option_id=chosen, outcome="selected") if chosen else DeniedOutcome(outcome="cancelled")
        return RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Agent) -> None:
        del conn


class Editor:
    def __init__(self, home: TempHome, person: _Person, updates: list[dict[str, Any]]) -> None:
        self._home, self._person = home, person
        self.updates = updates
        """As they came, of all sessions."""
        self.agent: ClientSideConnection
        self.pid = 0

    async def session(self, cwd: str | None = None) -> str:
        return (await self.agent.new_session(cwd=cwd or str(self._home.work), mcp_servers=[])).session_id

    async def ask(self, session_id: str, text: str) -> str:
        """Why the turn ended."""
        return (await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])).stop_reason

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.updates if one["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"]["text"] for one in self.told(kind))

    async def valid(self) -> None:
        """Fails unless the package has accepted every update."""
        await wait_until(lambda: self._person.updates == len(self.updates))


@asynccontextmanager
async def editor(home: TempHome, chooses: Chooses = lambda _: None) -> AsyncGenerator[Editor]:
    updates: list[dict[str, Any]] = []

    def seen(event: StreamEvent) -> None:
        if event.message.get("method") == "session/update":
            updates.append(event.message["params"]["update"])

    person = _Person(chooses)
    made = Editor(home, person, updates)
    command = (home.python, "-m", SERVER_MODULE, "acp")
    async with spawn_agent_process(
        cast("Client", person), *command, env=home.environ, cwd=home.work, observers=[seen]
    ) as (
        conn,
        agent,
    ):
        made.agent, made.pid = conn, agent.pid
        assert (await conn.initialize(protocol_version=PROTOCOL_VERSION)).protocol_version == PROTOCOL_VERSION
        yield made
