"""Codex cuts a long text of a tool in its middle. An answer of 30,000 characters arrives whole, in pages."""

import json
import re

from tests.clients.codex import Codex
from tests.clients.model_apis import Asked, Call, Json, model_api
from tests.clients.places import (
    OURS,
    Broken,
    check_plan,
    hold,
    new_place,
    say,
    show_what_the_model_saw,
    tokens,
)
from tests.harness import agent

CHARACTERS = 30_000
ANSWER = "".join(f"{number:06d} one line of a long answer, naïve and whole.\n" for number in range(1_000))[:CHARACTERS]


class Model:
    """Delegates, waits, and reads the answer page by page, as the replies say."""

    def __init__(self, config: str) -> None:
        self._config = config
        self.pages: list[str] = []
        self.bytes: list[int] = []

    def __call__(self, asked: Asked) -> str | Call:
        if not asked.results:
            return Call("start_run", {"question": "What is long?", "config": self._config})
        reply = _reply(asked.results[-1])
        run_id = _reply(asked.results[0])["run_id"]
        if reply.get("answer") is not None:
            self.pages.append(reply["answer"])
            self.bytes.append(len(asked.results[-1].encode()))
            if reply.get("next_offset") is None:
                return "I have it whole."
            return Call("get_result", {"run_id": run_id, "offset": reply["next_offset"]})
        if reply["status"] == "completed":
            return Call("get_result", {"run_id": run_id})
        return Call("wait_run", {"run_id": run_id})


def _reply(text: str) -> Json:
    """The JSON that a tool returned; Codex puts a line of its own before it. Raises Broken where that was cut."""
    if re.search(r"\d+ (?:tokens|chars|characters|lines) truncated|…\d+", text):
        raise Broken(f"Codex cut a reply of {len(text):,} characters")
    document = json.loads(text[text.index("{") :])
    result: Json = document.get("result", document)
    return result


def show() -> None:
    with new_place() as place:
        model = Model(place.home.config("long", agent("ada", {"answer": ANSWER})))
        with model_api(model) as api:
            state = json.dumps(str(place.home.path))
            entry = f'command = {json.dumps(str(OURS))}\nrequired = true\ndefault_tools_approval_mode = "approve"\n'
            codex = Codex(place, api, f"[mcp_servers.massgen]\n{entry}env = {{ MASSGEN_MCP_HOME = {state} }}\n")
            printed = codex.exec("Ask the team.")
            check_plan(api)
            show_what_the_model_saw(api)
            say(f"  {len(model.pages)} pages of at most {max(model.bytes):,} bytes, {tokens(model.pages[0]):,} tokens")
            hold("I have it whole." in printed, "the model read to the end")
            hold("".join(model.pages) == ANSWER, f"all {len(ANSWER):,} characters, nothing twice, nothing lost")
