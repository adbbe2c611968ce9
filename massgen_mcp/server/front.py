"""Answers a client's first questions on standard input and output while the server is still being imported behind it.

Some clients give a server one second; the import takes longer on a busy machine. What clients ask first hardly changes
with runs: `initialize`, `server/discover`, `ping` and the lists (of resources those that are no runs); and some wait
until `subscriptions/listen` is acknowledged. The answers come with the package, made by the real server of the same
code (`first_answers.json`). Only a request that looks exactly as expected is answered here; everything else
waits, in order, for the server. Imports nothing but small parts of the standard library.
"""

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, cast

FirstAnswers = dict[str, dict[str, dict[str, object]]]
"""By protocol version and method: the result; of `LISTEN` the kinds of news that a listener can have."""

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LIST_CHANGES = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
QUIET_SECONDS = 0.2
"""The import begins when a list was answered, when a message has to wait for it, or after so long."""
ANSWERS = Path(__file__).with_name("first_answers.json")
READ_BYTES = 64 * 1024
MOST_BYTES = 16 * 1024
"""Of a first question; a longer line waits for the server."""


def first_answers() -> FirstAnswers:
    """Those that came with this package. A test holds that the server itself says the same."""
    kept = json.loads(ANSWERS.read_bytes())
    return {
        version: {method: kept["answers"][place] for method, place in places.items()}
        for version, places in kept["places"].items()
    }


class Front:
    """Speaks for the server until that is there."""

    def __init__(self, answers: FirstAnswers, *, exit_code: int = 0) -> None:
        """`exit_code`: of a process whose client leaves before the server is needed."""
        self._answers = answers
        self.exit_code = exit_code
        self.parent = os.getppid()
        """Whoever started the process. It may be gone when the server is there."""
        self._version: str | None = None
        """What was agreed on in a handshake; None before one."""
        self.handshake_id: int | str | None = None
        """Of the `initialize` that was answered here. The server is sent it, too; nobody must see its answer."""
        self.acknowledged: set[int | str] = set()
        """The listeners that were acknowledged here. The server is sent their requests, too, and does it again."""
        self.unread = b""
        """What the server has to read before it reads standard input."""
        self._rest = b""
        self._reading = True
        self._needed = False
        """Whether something waits that only the server can answer, or will soon."""

    def answer_until(self, ready: Callable[[], object]) -> None:
        """Answer what can be answered while a thread does `ready`, and no longer. Raises what that raises. The process
        ends here if the client leaves before it has asked for anything else.
        """
        done, finished = os.pipe()
        failure: list[BaseException] = []

        def prepare() -> None:
            try:
                ready()
            except BaseException as error:  # noqa: BLE001 - raised again below
                failure.append(error)
            finally:
                os.close(finished)

        before = {each: signal.signal(each, _leave) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        begin = time.monotonic() + QUIET_SECONDS
        begun = False
        while True:
            if not begun and (self._needed or time.monotonic() >= begin):
                threading.Thread(target=prepare, daemon=True).start()
                begun = True
            wanted = [done, sys.stdin.fileno()] if self._reading else [done]
            readable, _, _ = select.select(wanted, [], [], None if begun else max(0.0, begin - time.monotonic()))
            if done in readable:
                break
            if readable:
                self._read()
        os.close(done)
        for each, handler in before.items():
            signal.signal(each, handler)
        self.unread += self._rest
        if failure:
            raise failure[0]

    def refuse(self, code: str, message: str, exit_code: int) -> NoReturn:
        """Answer every further request with an error, until the client leaves: the server cannot be had."""
        message = f"ERROR {code}: {message}"
        lines, unread = self.unread.split(b"\n"), b""
        while True:
            for line in lines:
                self._refuse_line(line, message)
            if not (data := os.read(sys.stdin.fileno(), READ_BYTES)):
                os._exit(exit_code)
            *lines, unread = (unread + data).split(b"\n")

    def _refuse_line(self, line: bytes, message: str) -> None:
        request = _parsed(line) or {}
        identity, method = request.get("id"), request.get("method")
        if identity is None or identity == self.handshake_id or method is None:
            return
        if method == "tools/call":
            text = [{"type": "text", "text": message}]
            content = {"resultType": "complete", "content": text, "isError": True}  # which older protocols do not mind
            _send({"jsonrpc": "2.0", "id": identity, "result": content})
        else:
            _send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32603, "message": message}})

    def _read(self) -> None:
        data = os.read(sys.stdin.fileno(), READ_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            request = _parsed(line)
            if request is None or not self._sends_result(request):
                self.unread += line + b"\n"
                self._needed = self._needed or request is None or "id" in request
        if len(self._rest) > MOST_BYTES:
            self._reading, self._needed = False, True
        if not data:
            if not self._needed and not self._rest:
                os._exit(self.exit_code)
            self._reading, self._needed = False, True

    def _sends_result(self, request: dict[str, object]) -> bool:
        result = self._known_answer(request)
        if result is None:
            return False
        identity = cast("int | str", request["id"])
        try:
            if request["method"] == LISTEN:
                about = {"_meta": {SUBSCRIPTION_ID: identity}, "notifications": result}
                _send({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": about})
                self.acknowledged.add(identity)
                self.unread += _encoded(request)
            else:
                _send({"jsonrpc": "2.0", "id": identity, "result": result})
        except UnicodeEncodeError:  # half a character as an id
            return False
        self._needed = self._needed or str(request["method"]).endswith("/list")
        return True

    def _known_answer(self, request: dict[str, object]) -> dict[str, object] | None:
        method, identity, params = request.get("method"), request.get("id"), request.get("params", {})
        if request.keys() - {"jsonrpc", "id", "method", "params"} or request.get("jsonrpc") != "2.0":
            return None
        if isinstance(identity, bool) or not isinstance(identity, int | str) or not isinstance(params, dict):
            return None
        given = cast("dict[str, object]", params)
        if method == "initialize":
            return self._handshake(identity, given)
        meta, wanted = given.get("_meta", {}), given.get("notifications")
        if given.keys() - {"_meta", *(["notifications"] if method == LISTEN else [])} or not isinstance(meta, dict):
            return None
        about = cast("dict[str, object]", meta)
        if PROTOCOL_VERSION in about and not _all_flags(about.get(CLIENT_CAPABILITIES)):
            return None  # also a client that shows Apps: its lists are longer
        version = about.get(PROTOCOL_VERSION, self._version)
        known = self._answers.get(str(version), {}).get(str(method))
        return _honored(known, wanted) if known is not None and method == LISTEN else known

    def _handshake(self, identity: int | str, params: dict[str, object]) -> dict[str, object] | None:
        known = self._answers.get(str(params.get("protocolVersion")), {}).get("initialize")
        if known is None or self._version is not None or not _usual(params):
            return None
        self._version, self.handshake_id = str(params["protocolVersion"]), identity
        self.unread += _encoded({"jsonrpc": "2.0", "id": identity, "method": "initialize", "params": params})
        return known


def _honored(known: dict[str, object], wanted: object) -> dict[str, object] | None:
    """What the server would acknowledge; None where more is asked for than whether lists have changed."""
    if not isinstance(wanted, dict) or wanted.keys() - set(LIST_CHANGES):
        return None
    asked = cast("dict[str, object]", wanted)
    if not all(isinstance(value, bool) for value in asked.values()):
        return None
    return {kind: True for kind in known if asked.get(kind)}


def _leave(*_: object) -> NoReturn:
    os._exit(0)


def _usual(params: dict[str, object]) -> bool:
    """Whether the server would take this handshake, too."""
    if params.keys() - {"protocolVersion", "capabilities", "clientInfo"}:
        return False
    client = params.get("clientInfo")
    if not isinstance(client, dict):
        return False
    named = cast("dict[str, object]", client)
    return (
        isinstance(named.get("name"), str)
        and isinstance(named.get("version"), str)
        and all(isinstance(value, str) for value in named.values())
        and _all_flags(params.get("capabilities"))
    )


def _all_flags(value: object) -> bool:
    """Whether it is an object of nothing but flags and such objects."""
    return isinstance(value, dict) and all(
        isinstance(one, bool) or _all_flags(one) for one in cast("dict[str, object]", value).values()
    )


def _parsed(line: bytes) -> dict[str, object] | None:
    """The JSON object on a line; None for anything else."""
    if len(line) > MOST_BYTES:
        return None
    try:
        message: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", message) if isinstance(message, dict) else None


def _encoded(message: dict[str, object]) -> bytes:
    """As the SDK writes it."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _send(message: dict[str, object]) -> None:
    data = _encoded(message)
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]
