"""Claude Code in a home of its own, headless or on a terminal, with a plan for its model."""

import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.model_apis import ModelApi
from tests.clients.places import KEY, PATIENCE_SECONDS, Broken, Place, binary, wait_for
from tests.commands import ROOT
from tests.terminal import Terminal

MODEL = "claude-sonnet-4-5"
PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
QUIET = {"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


class ClaudeCode:
    """One user's Claude Code. `allowed` are the tools that it may call without asking."""

    def __init__(self, place: Place, api: ModelApi, allowed: str) -> None:
        self._binary = binary("claude")
        settings = Path(place.environ["HOME"]) / ".claude"
        self.place = place.with_variables(
            CLAUDE_CONFIG_DIR=str(settings), ANTHROPIC_BASE_URL=api.url, ANTHROPIC_API_KEY=KEY, **QUIET
        )
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {"approved": [KEY[-20:]], "rejected": []}
        opened = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": known}
        place.write(".claude/.claude.json", {**opened, "projects": {str(place.work): trusted}})
        self._api = api
        self._options = ["--model", MODEL, "--allowedTools", allowed]

    def install_plugin(self) -> None:
        """As the plugin's page says."""
        self.command("plugin", "marketplace", "add", str(ROOT))
        self.command("plugin", "install", "massgen@massgen-mcp")

    def command(self, *arguments: str) -> str:
        return self.place.run(self._binary, *arguments)

    def headless(self, prompt: str, *arguments: str) -> str:
        """What `claude -p` prints."""
        return self.command("-p", prompt, *self._options, *arguments)

    @contextmanager
    def in_background(self, prompt: str) -> "Generator[subprocess.Popen[bytes]]":
        """`claude -p`, gone at the end of the block."""
        command = [self._binary, "-p", prompt, *self._options]
        with subprocess.Popen(
            command,
            cwd=self.place.work,
            env=self.place.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            yield process
            process.kill()

    @contextmanager
    def on_terminal(self, *arguments: str) -> Generator[Terminal]:
        """In a window, gone at the end of the block. Its input line is there."""
        window = Terminal([self._binary, *self._options, *arguments], self.place.home, 120, 40)
        try:
            self.look(window, lambda: PROMPT in window.text, "the input line")
            yield window
        finally:
            if window.child.isalive():
                window.kill()
            window.child.close()

    def say(self, window: Terminal, line: str) -> None:
        """Type a line once the client takes it, and send it."""
        asked = len(self._api.asked)
        for _ in range(20):
            window.type("\x15" + line)
            self.look(window, lambda: line in window.text, "what was typed", seconds=5, or_fail=False)
            window.type("\r")
            if self.look(window, lambda: len(self._api.asked) > asked, "a request", seconds=5, or_fail=False):
                return
        raise Broken(f"Claude Code did not take {line!r}:\n{window.text}")

    def look(
        self,
        window: Terminal,
        seen: Callable[[], object],
        told: str,
        *,
        seconds: float = PATIENCE_SECONDS,
        or_fail: bool = True,
    ) -> bool:
        """Draw the window until `seen`. Raises Broken, with what stands in the window."""
        done = wait_for(seen, told, seconds=seconds, or_fail=False, meanwhile=lambda: window.pump(0.1))
        if or_fail and not done:
            raise Broken(f"{told} did not come in {seconds:g} s; the window:\n{window.text}")
        return done
