"""A real browser, Debian's chromium, driven over the pipe of its own debugging protocol: no driver, no socket.

One process for all tests of a worker; each page is opened in a tab of its own.
"""

import json
import os
import select
import subprocess
from base64 import b64decode
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

from tests.needs import found, npm_tool

CHROMIUM = found("chromium")
PATIENCE = 60
"""Seconds that a page may take for what a test waits for."""

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
_WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', event => violations.push(event.violatedDirective));
window.executed = [];
window.alert = what => executed.push(String(what));
"""
"""Runs in every page before anything of its own: it keeps what the policy stops, and what calls `alert`."""

Json = dict[str, Any]


class Browser:
    """`start` it; what it says is read only while somebody waits for an answer."""

    def __init__(self, process: subprocess.Popen[bytes], commands: int, replies: int) -> None:
        self._process = process
        self._commands, self._replies = commands, replies
        self._buffer = b""
        self._last = 0
        self.events: list[Json] = []

    @classmethod
    @contextmanager
    def start(cls, *before: str) -> Generator[Self]:
        """`before`: a command that the browser is started by, such as one without a network."""
        assert CHROMIUM is not None
        read, commands = os.pipe()
        replies, write = os.pipe()
        with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
            process = subprocess.Popen(
                [
                    *(*before, "bash", "-c", f'exec "$0" "$@" 3<&{read} 4>&{write}'),
                    *(CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
                ],
                pass_fds=(read, write),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"], "HOME": profile, "LANG": "C.UTF-8", "TZ": "UTC"},
            )
            os.close(read)
            os.close(write)
            browser = cls(process, commands, replies)
            try:
                yield browser
            finally:
                browser._close()

    def call(self, method: str, session: str | None = None, **params: Any) -> Json:
        self._last += 1
        message: Json = {"id": self._last, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while (reply := self._read()).get("id") != self._last:
            self.events.append(reply)
        assert "error" not in reply, (method, reply["error"])
        result: Json = reply["result"]
        return result

    def wait_for(self, method: str, session: str) -> None:
        """Until the browser tells an event that it has not told before."""
        while (event := self._read()).get("method") != method or event.get("sessionId") != session:
            self.events.append(event)
        self.events.append(event)

    @contextmanager
    def tab(self, file: Path | str, **look: Any) -> Generator["Tab"]:
        """A tab with a file or an address in it; `look` as for `blank`."""
        with self.blank(**look) as tab:
            tab.open(file)
            yield tab

    @contextmanager
    def blank(
        self, *, width: int = 1200, height: int = 900, scheme: Literal["light", "dark"] = "light", apart: bool = False
    ) -> Generator["Tab"]:
        """`apart`: of somebody else, with cookies of his own."""
        whose = self.call("Target.createBrowserContext") if apart else {}
        target = self.call("Target.createTarget", url="about:blank", **whose)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, width, height)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        try:
            yield tab
        finally:
            self.call("Target.closeTarget", targetId=target)
            if whose:
                self.call("Target.disposeBrowserContext", **whose)

    def _read(self) -> Json:
        while b"\0" not in self._buffer:
            heard, _, _ = select.select([self._replies], [], [], 2 * PATIENCE)
            assert heard, "the browser says nothing"
            piece = os.read(self._replies, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: Json = json.loads(line)
        return message

    def _close(self) -> None:
        with suppress(AssertionError, OSError):
            self.call("Browser.close")
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._replies)


@dataclass
class Tab:
    browser: Browser
    session: str
    width: int
    height: int

    def call(self, method: str, **params: Any) -> Json:
        return self.browser.call(method, self.session, **params)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def open(self, file: Path | str, fragment: str = "") -> None:
        """Open a file and wait until it is drawn; or an address, and wait until it is loaded."""
        if isinstance(file, str):
            self.call("Page.navigate", url=file)
            return self.settled("document.readyState === 'complete' && location.protocol === 'http:'")
        self.call("Page.navigate", url=file.as_uri() + fragment)
        self.settled("document.readyState === 'complete' && location.protocol === 'file:'")
        return self.settled("document.querySelector('svg') !== null || document.querySelector('main') === null")

    def hold_frames(self) -> None:
        """Frames of other origins in this page wait from now on, before anything of theirs runs, for `held_frame`."""
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def held_frame(self, before: str = "") -> "Tab":
        """The next frame that waits; it runs now, this script first."""
        told = (self.session, "Target.attachedToTarget")
        while not (
            new := [event for event in self.browser.events if (event.get("sessionId"), event["method"]) == told]
        ):
            self.browser.wait_for("Target.attachedToTarget", self.session)
        self.browser.events.remove(new[0])
        frame = Tab(self.browser, new[0]["params"]["sessionId"], self.width, self.height)
        for domain in ("Page", "Runtime", "Log", "Network"):
            frame.call(f"{domain}.enable")
        frame.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH + before)
        frame.call("Runtime.runIfWaitingForDebugger")
        return frame

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def settled(self, condition: str) -> None:
        """Wait until an expression is true in the page; it is looked at anew with every frame."""
        looks = f"""new Promise((yes, no) => {{
          const end = Date.now() + {PATIENCE * 1000};
          const look = () => {{
            if ({condition}) yes(true);
            else if (Date.now() > end) no(new Error('in vain'));
            else setTimeout(look, 20);
          }};
          look();
        }})"""
        assert self.js(looks)

    def press(self, key: str, code: int, *, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    def pass_time(self, seconds: float) -> None:
        """Let this much time pass for the page, as fast as the machine can."""
        self.call("Emulation.setVirtualTimePolicy", policy="advance", budget=1000 * seconds)
        self.browser.wait_for("Emulation.virtualTimeBudgetExpired", self.session)

    def open_all(self) -> None:
        """Open everything that can be opened, also what is drawn only then."""
        for _ in range(3):
            self.js("document.querySelectorAll('details').forEach(one => one.open = true)")
            self.drawn()

    def drawn(self) -> None:
        """Wait until the browser has drawn twice."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def text(self) -> str:
        """What a person can read when everything is opened."""
        self.open_all()
        return str(self.js("document.body.innerText"))

    def violations_of_accessibility(self) -> list[str]:
        """What axe finds, by its rules of every level and best practice."""
        self.js(Path(npm_tool("axe-core/axe.min.js")).read_text())
        found = self.js("axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)")
        return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:5]]}" for one in found]

    def picture(self, file: Path, *, whole: bool = True, most: int = 6000) -> None:
        if whole:
            self.resize(self.width, min(most, int(self.js("document.documentElement.scrollHeight"))))
            self.drawn()
        file.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def network(self) -> list[str]:
        """Every address that the page has asked for, itself excepted."""
        asked = [
            str(event["params"]["request"]["url"])
            for event in self.browser.events
            if event.get("method") == "Network.requestWillBeSent" and event.get("sessionId") == self.session
        ]
        return [address for address in asked if not address.startswith(("file:", "about:"))]

    def complaints(self) -> list[str]:
        """What the browser has to say: errors, exceptions, and what the policy stopped."""
        told: list[str] = list(self.js("violations"))
        for event in self.browser.events:
            if event.get("sessionId") == self.session:
                match event["method"]:
                    case "Log.entryAdded" if event["params"]["entry"]["level"] in ("error", "warning"):
                        told.append(str(event["params"]["entry"]["text"]))
                    case "Runtime.exceptionThrown":
                        told.append(str(event["params"]["exceptionDetails"]))
                    case _:
                        pass
        return told
