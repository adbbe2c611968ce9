"""Writes docs/backends.md from the code."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from genai_prices.data import providers as priced

from docs.markdown import WRITTEN, table
from massgen_mcp.config.providers.catalog import PROVIDERS, Provider, Wire
from massgen_mcp.config.providers.native_tools import native_tools_of
from tests.wires.rows import ROWS


class WireFacts(NamedTuple):
    """What a wire brings along, whoever speaks it."""

    name: str
    streaming: str
    tool_calls: str
    reasoning: str
    usage: str


WIRES: dict[Wire, WireFacts] = {
    "responses": WireFacts("OpenAI Responses", "yes", "yes", "encrypted and sent back; `reasoning_effort`", "yes"),
    "gemini": WireFacts("Gemini API", "yes", "yes, whole", "streamed, signed and sent back; `reasoning_effort`", "yes"),
    "messages": WireFacts("Anthropic Messages", "yes", "yes", "signed and sent back; `reasoning_effort`", "yes"),
    "ollama": WireFacts("Ollama's own", "yes", "yes, whole", "sent back as `thinking`; `reasoning_effort`", "yes"),
    "chat": WireFacts(
        "Chat Completions",
        "yes",
        "yes",
        "where the server streams it as text, sent back as `reasoning_content`; `reasoning_effort`",
        "where sent",
    ),
}
REASONING = {
    "openrouter": "as text; `reasoning_details` are sent back; `reasoning_effort`",
}
"""Where a provider differs from its wire."""

HEAD = f"""\
# Backends

{WRITTEN}
What `type:` of a backend may be, besides `scripted`, which calls no model. On the command line and in tools a model is
written as `TYPE/NAME`. A key goes only to its provider's own hosts, or to the address that is set in the environment.
For any other `base_url` name the variable with `api_key_env`, and accept that its key goes there
([security.md](security.md#which-server-a-key-may-go-to)).

"""

TAIL = """\

- `chatcompletion` is any server with an OpenAI-compatible API at `base_url`; the key is chosen by the host.
- What a key and an address may be, and what is taken out of logs and replies: [security.md](security.md#keys).
- The last five are model servers of your own ([local-models.md](local-models.md)): `model` may be left out, and for
  a name that the server does not have the error names the nearest one that it has.
- `claude_code` is not an API but the Claude Code CLI: [claude-code.md](claude-code.md).
- `ag2` is an agent of the AG2 framework, or a group chat of some; its models are asked by Chat Completions:
  [ag2.md](ag2.md).
- `azure_openai` has `endpoint`, `api_version` and `deployment` (default: `model`) in place of `base_url`. The
  `api_version` is `v1`, which has every current model, or the date of an older API, such as 2024-10-21.
- Native tools run at the provider. Where the table has none, the flag is refused when the config is loaded. With
  `chatcompletion` they are those of the provider at the address (OpenAI's without a `base_url`); an unknown host has
  none. The sources that a search found are listed below the answer.
- Gemini 2 does not accept our tools together with its own. An agent with such a model and a native tool acts in text,
  after one request that is refused; Gemini 3 and later accept both.
- `gemini` at an address that ends with `/openai` is asked through Google's compatible endpoint, without native tools.
  `grok` over Chat Completions, which xAI calls legacy, is `chatcompletion` with `base_url: https://api.x.ai/v1`.
- `qwen`, `moonshot` and `nebius` have further regions; name one with `base_url`, such as
  `https://api.moonshot.cn/v1`. A key of one region often is none in another.
- `github` reads `GITHUB_MODELS_TOKEN`, a token that may only ask models. `GITHUB_TOKEN` may write repositories, and is
  sent only where a config names it and a person accepted that.
- A `price` in the config goes before any other source ([costs.md](costs.md)); genai-prices is asked under the name
  given here.
- All wires are tested against doubles ([wires.md](wires.md)), with their SDKs where they use one; no real provider is
  asked.
- Usage counts cached input and reasoning tokens apart where the provider does.
- A default team ([default-teams.md](default-teams.md)) takes the strong model of every provider whose key is set:
"""


def page() -> str:
    columns = (
        *("Type", "Wire", "Key variables", "Default base URL"),
        *("Streaming", "Tool calls", "Native tools", "Reasoning", "Usage", "Price source", "Tested"),
    )
    strong = [f"  `{row.type}/{row.strong_model}`" for row in PROVIDERS if row.strong_model]
    return HEAD + table(columns, [tuple(_cells(row)) for row in PROVIDERS]) + TAIL + ",\n".join(strong) + ".\n"


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
    yield REASONING.get(row.type, wire.reasoning)
    yield wire.usage
    yield _price_source(row)
    yield _tested(row)


def _price_source(row: Provider) -> str:
    """The list of prices knows a provider by its address."""
    address = row.base_url or f"https://name.{row.hosts[0]}"
    name = next((known.id for known in priced if re.match(known.api_pattern, address)), None)
    told = f"`usage.{row.cost_field}`, else " if row.cost_field else ""
    return f"{told}genai-prices, `{name}`" if name else "none"


def _tested(row: Provider) -> str:
    return "every check and fault" if row.type in (tested.kind for tested in ROWS) else "as `chatcompletion`; own path"
