"""The real Codex as a member of a team, over ACP, in our enclosure: it answers, votes, and presents what won."""

import json
import os
import re
import shutil

from tests.clients.model_apis import Asked, Call, model_api
from tests.clients.places import BINARIES, Missing, hold, new_place, say, with_node
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, agent, events_of

ANSWER, FINAL = "Forty-two, says Codex.", "It is forty-two, as Codex said."


class Model:
    """Answers, votes for itself, and presents."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, asked: Asked) -> str | Call:
        text = json.dumps(asked.body)
        offered = [name for name in asked.tools if name.endswith(("new_answer", "vote"))]
        self.seen.append(" ".join(offered) or "no tools of the team")
        if not offered:
            return FINAL
        if not any(name.endswith("vote") for name in offered) or ANSWER not in text:
            return Call(asked.full_name("new_answer"), {"content": ANSWER})
        own = re.findall(r"agent\d+", text[: text.rindex(ANSWER)])[-1]
        return Call(asked.full_name("vote"), {"agent_id": own, "reason": "It is right."})


def show() -> None:
    environ = with_node(dict(os.environ))
    found = shutil.which("codex-acp", path=f"{BINARIES}{os.pathsep}{environ['PATH']}")
    if found is None or shutil.which("bwrap") is None:
        raise Missing("codex-acp and bubblewrap are needed: npm install -g @agentclientprotocol/codex-acp@2.6.0")
    with new_place() as place, model_api(Model()) as api:
        provider = {"name": "double", "base_url": f"{api.url}/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"}
        settings = {"model_provider": "double", "model": "gpt-5", "model_providers": {"double": provider}}
        home = place.home.with_variables(
            PATH=f"{os.path.dirname(found)}{os.pathsep}{environ['PATH']}",  # noqa: PTH120 - as it was found
            CODEX_CONFIG=json.dumps(settings),
            MODEL_PROVIDER="double",
            OPENAI_API_KEY="sk-not-a-key-of-anybody-0123456789",
        )
        cli = {
            "id": "codex",
            "backend": {
                "type": "acp",
                "preset": "codex",
                "env": ["CODEX_CONFIG", "MODEL_PROVIDER"],
                "hosts": [api.url.removeprefix("http://")],
            },
        }
        other = agent("ada", {"answer": "The first."}, {"vote": "Codex"})
        config = home.config("codex", cli, other)
        done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "What is it?")
        say(f"{done.stdout}\n{done.stderr}")
        directory = max((home.work / ".massgen" / "massgen_logs").glob("log_*"))
        replies = [event for event in events_of(directory) if event["type"] == "model_replied"]
        for one in (each for each in replies if each["agent"] == "agent_a"):
            counted = "estimated" if one["usage"]["estimated"] else "counted"
            say(f"  {one['purpose']}: {one['usage']['input_tokens']} tokens in, {counted}; {one['seconds']:.2f} s")
        hold(FINAL in done.stdout + done.stderr, "codex wins and presents the final answer")
