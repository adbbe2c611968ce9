"""Runs that are started inside a run, as the store keeps them and a runner executes them: see `NestedHost`.

A runner needs no place for them (`runs/store/sqlite/claiming.py`). Must not know tools or prompts.
"""

from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.loader import EXAMPLE_PREFIX, parse_config, read_config, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.money.nested import Caps
from massgen_mcp.orchestration.nested_runs import NestedRunRequest, PreparedNestedRun
from massgen_mcp.request.nested import NestedRunLimits, nested_config
from massgen_mcp.request.question import check_question
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.engine.rows import FrozenRequest, NewRun, RunRow, new_run_id
from massgen_mcp.runs.host.failing import break_off
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.starting import Dispatch

OWN_TEAM = "a team like its own"


class NestedRunHost:
    """For the runs that are started inside one run. `request` is that run's."""

    def __init__(
        self, engine: Engine, service: RunService, environ: Mapping[str, str], run_id: str, request: FrozenRequest
    ) -> None:
        self._engine = engine
        self._service = service
        self._environ = environ
        self._run_id = run_id
        self._request = request
        self._dispatch = Dispatch(engine, environ)

    async def prepare(self, wanted: NestedRunRequest, caps: Caps, seconds: float, key: str) -> PreparedNestedRun:
        return await anyio.to_thread.run_sync(self._prepare, wanted, caps, seconds, key)

    def _prepare(self, wanted: NestedRunRequest, caps: Caps, seconds: float, key: str) -> PreparedNestedRun:
        """Its row is there from now on, not admitted: it is found again by its key, and pruning leaves it alone."""
        check_question(wanted.question)
        own, source = self._named(wanted)
        bounds = NestedRunLimits(caps.usd, caps.tokens, min(seconds, wanted.max_seconds or seconds))
        config = nested_config(self._request.config, own, bounds, self._environ)
        require_keys(config, self._environ)
        redactor = redactor_for(self._environ, [agent.backend for agent in config.agents])
        run = NewRun(
            new_run_id(),
            redactor.text(wanted.question),
            source,
            self._dispatch.identity(config),
            request_hash="",
            idempotency_key=f"{self._run_id}/{key}",
            parent=self._run_id,
            admitted=False,
        )
        files = self._engine.files
        with files.making():
            if (earlier := self._engine.store.reusable(run, "use_existing")) is not None:
                return self._prepared(earlier.row)
            frozen = FrozenRequest(run.question, config, nesting=self._request.nested_in(self._run_id))
            files.create(run.run_id, frozen, redactor, run)
            return self._prepared(self._engine.store.add(run).row)

    def _named(self, wanted: NestedRunRequest) -> tuple[Config | None, str]:
        """The config that is asked for, and in words where it came from. Its own paths are not for others to give."""
        if wanted.written is not None:
            text, source, environ = wanted.written, "a config of the agent's own", dict[str, str]()
        elif wanted.config is not None:
            source = wanted.config.removeprefix(EXAMPLE_PREFIX)
            text, environ = read_config(f"{EXAMPLE_PREFIX}{source}"), self._environ
        else:
            return None, OWN_TEAM
        config = parse_config(text, source, environ, base_dir=self._engine.home.path)
        orchestrator = config.orchestrator.model_copy(update={"context_paths": ()})
        return config.model_copy(update={"orchestrator": orchestrator}), source

    async def prepared(self, run_id: str) -> PreparedNestedRun:
        row = await anyio.to_thread.run_sync(self._engine.store.get, run_id)
        if row.parent != self._run_id:
            raise MassgenError("nesting_refused", f"{run_id} was not started inside {self._run_id}")
        return await anyio.to_thread.run_sync(self._prepared, row)

    def _prepared(self, row: RunRow) -> PreparedNestedRun:
        request = self._engine.files.of(row).read_request()
        budget = request.config.budget
        return PreparedNestedRun(row.run_id, request.question, row.config, Caps(budget.max_usd, budget.max_tokens))

    async def begin(self, run_id: str) -> None:
        view = await self._service.look(run_id)
        if not view.row.admitted:
            await anyio.to_thread.run_sync(self._engine.store.admit, run_id)
        fingerprint = self._dispatch.identity(view.directory.read_request().config)
        send = self._dispatch.adopt if view.state == "interrupted" and fingerprint != view.row.fingerprint else None
        await anyio.to_thread.run_sync(send or self._dispatch.see_to, view)

    async def refuse(self, run_id: str, reason: str) -> None:
        row = await anyio.to_thread.run_sync(self._engine.store.get, run_id)
        ended = await break_off(self._engine.files.of(row), "budget", reason, self._environ)
        await anyio.to_thread.run_sync(self._engine.store.end, run_id, ended)

    async def look(self, run_id: str) -> RunState:
        return (await self._service.look(run_id)).snapshot

    async def wait(self, run_id: str, seconds: float) -> RunState:
        return (await self._service.wait(run_id, until="terminal", seconds=seconds, cursor=None)).snapshot

    async def cancel(self, run_id: str) -> None:
        await self._service.control(run_id, "cancel")

    async def files(self, run_id: str) -> Path:
        row = await anyio.to_thread.run_sync(self._engine.store.get, run_id)
        return self._engine.files.of(row).path
