"""Which runner works on a run: waking it, starting one that is lacking, and why none can be started from here."""

from collections.abc import Mapping

from massgen_mcp.config.access.key_hosts import describe_refusal
from massgen_mcp.config.loader import missing_keys, refused_keys, require_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import Engine
from massgen_mcp.runs.engine.rows import RunRow
from massgen_mcp.runs.store.credentials import identity
from massgen_mcp.runs.view.run_view import RunView

_RESUME = "control_run resume (`massgen-mcp resume`)"


class Dispatch:
    """For the runs of one engine, with the keys of one environment."""

    def __init__(self, engine: Engine, environ: Mapping[str, str]) -> None:
        self._engine = engine
        self._store, self._files, self._liveness = engine.store, engine.files, engine.liveness
        self._environ = environ

    def identity(self, config: Config) -> str:
        """The fingerprint of the credentials that this environment has for the config."""
        return identity(config, self._environ, self._engine.home)

    def care_for(self, view: RunView) -> None:
        """Start a runner if the run needs one and has none."""
        state = view.row.state
        if state == "interrupted" or (state == "queued" and not self._liveness.runner_alive(view.row.fingerprint)):
            self.see_to(view)

    def see_to(self, view: RunView) -> None:
        """Wake the run's runner; if there is none, start one, provided that this process has the same credentials. The
        server that started the run may have died before it did so.
        """
        if view.newer or view.row.foreground or view.row.state in TERMINAL_STATES:
            return  # nobody may work on it, or the process that asked does
        if self._liveness.wake(view.row.fingerprint):
            return
        try:
            config = view.directory.read_request().config
        except JournalNewer:
            self._store.set_aside(view.row.run_id)
            return
        if self.identity(config) == view.row.fingerprint:
            self._liveness.ensure_runner(view.row.fingerprint, self._environ)

    def adopt(self, view: RunView) -> None:
        """Let a runner with the keys of this environment continue an interrupted run. Raises `MassgenError`."""
        config = view.directory.read_request().config
        require_keys(config, self._environ)
        self._store.adopt(view.row.run_id, self.identity(config))
        self._liveness.ensure_runner(self.identity(config), self._environ)

    def held_up(self, row: RunRow) -> str | None:
        """Why this process cannot start a runner for an interrupted run."""
        config = self._files.of(row).read_request().config
        if refused := refused_keys(config, self._environ):
            return describe_refusal(refused)
        if missing := missing_keys(config, self._environ):
            return f"{', '.join(missing)} is not set here"
        if row.foreground:
            return f"the program that executed it ended; {_RESUME} lets a runner continue it"
        if self.identity(config) != row.fingerprint:
            return f"it was started with other keys than those set here; {_RESUME} takes these"
        return None
