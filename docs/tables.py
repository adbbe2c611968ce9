"""Writes docs/backends.md from the code: `python docs/tables.py`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from massgen_mcp.config.native_tools import native_tools_of
from massgen_mcp.config.providers import PROVIDERS, Provider, Wire

PAGE = Path(__file__).parent / "backends.md"


class WireFacts(NamedTuple):
    """What a wire brings along, whoever speaks it."""

    name: str
    streaming: str
    tool_calls: str
    reasoning: str
    usage: str


WIRES: dict[Wire, WireFacts] = {
    "responses": WireFacts(
        "OpenAI Responses", "yes", "yes", "summaries; encrypted and sent back; `reasoning_effort`", "yes"
    ),
    "messages": WireFacts("Anthropic Messages", "yes", "yes", "signed and sent back; `reasoning_effort`", "yes"),
    "chat": WireFacts(
        "Chat Completions", "yes", "yes", "as text, where the server streams it; `reasoning_effort`", "where sent"
    ),
}
SIGNED = {"gemini": "; signatures of tool calls are sent back"}

HEAD = """\
# Backends

<!-- Written by `python docs/tables.py` from massgen_mcp/config/providers.py; do not edit. -->

What `type:` of a backend may be, besides `scripted`, which calls nobody. `TYPE/NAME` as a model on the command line and
in tools means the same. Every key goes to its provider's own hosts, or to the address that the operator set in the
environment, and nowhere else; for any other `base_url` name the variable with `api_key_env`.

"""

TAIL = """\

- `chatcompletion` is any server with an OpenAI-compatible API at `base_url`; the key is chosen by the host.
- `lmstudio`, `vllm` and `sglang` may leave `model` out: then it is the first chat model that the server lists.
- `azure_openai` has `endpoint`, `api_version` and `deployment` (default: `model`) in place of `base_url`.
- Native tools run at the provider. Where the table has none, the flag is refused when the config is loaded.
- Usage counts cached input and reasoning tokens apart where the provider does.
- A default team takes the strong model of every provider whose key is set:
"""


def page() -> str:
    columns = (
        *("Type", "Wire", "Key variables", "Default base URL"),
        *("Streaming", "Tool calls", "Native tools", "Reasoning", "Usage"),
    )
    lines = [_line(columns), _line("---" for _ in columns), *(_line(_cells(row)) for row in PROVIDERS)]
    strong = [f"  `{row.type}/{row.strong_model}`" for row in PROVIDERS if row.strong_model]
    return HEAD + "\n".join(lines) + "\n" + TAIL + ",\n".join(strong) + ".\n"


def _cells(row: Provider) -> Iterator[str]:
    wire = WIRES[row.wire]
    aliases = f" (or {', '.join(f'`{alias}`' for alias in row.aliases)})" if row.aliases else ""
    address = row.base_url or "every customer's own"
    moved = f"; set by `{row.base_url_variable}`" if row.base_url_variable else ""
    yield f"`{row.type}`{aliases}"
    yield wire.name
    yield ", else ".join(f"`{name}`" for name in row.key_variables) or "none needed"
    yield f"{address}{moved}"
    yield wire.streaming
    yield wire.tool_calls
    yield ", ".join(f"`enable_{tool}`" for tool in native_tools_of(row.type)) or "none"
    yield wire.reasoning + SIGNED.get(row.type, "")
    yield wire.usage


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
