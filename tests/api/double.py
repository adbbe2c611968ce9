"""aimock as every provider that the examples name: agents answer and vote, and the winner presents."""

from typing import Any

from massgen_mcp.config.providers.catalog import PROVIDERS
from tests.wire_double import Aimock

FINAL = "The final answer, made of everything that was said."
USAGE = {
    "prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59, "input_tokens": 50, "output_tokens": 9,
}  # fmt: skip
REASON = "It is complete."
NAMES = [f"agent{place}" for place in range(1, 6)]
"""On ballots. Voters call all answers the same, so that there is no tie, whatever name an answer has for each."""


def say(**response: Any) -> dict[str, Any]:
    return {**response, "usage": USAGE}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return say(toolCalls=[{"name": name, "arguments": arguments}])


def load(aimock: Aimock) -> None:
    """Teach it what a team's models say."""
    aimock.load(
        {"match": {"userMessage": "Write the final answer now"}, "response": say(content=FINAL)},
        {"match": {"toolName": "submit"}, "response": tool("submit", confirmed=True)},
        *(
            {
                "match": {"userMessage": f'<answer name="{NAMES[last]}"', "toolName": "vote"},
                "response": tool("vote", reason=REASON, agent_id=NAMES[last], same_as=NAMES[:last]),
            }
            for last in reversed(range(1, len(NAMES)))
        ),
        {"match": {"toolName": "new_answer"}, "response": tool("new_answer", content="An answer.")},
    )


ROOTS = {"messages": "", "gemini": "/v1beta/openai"}
"""Of the double, by wire; Gemini at its compatible address, because aimock ends calls of the other API in a way of its
own."""


def environment(url: str) -> dict[str, str]:
    """Keys for every provider, and the double as the address of each: what an operator may set."""
    keys = {name: f"sk-test-{name.lower()}" for row in PROVIDERS for name in row.key_variables}
    addresses = {row.base_url_variable: url + ROOTS.get(row.wire, "/v1") for row in PROVIDERS if row.base_url_variable}
    return keys | addresses
