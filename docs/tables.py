"""Writes docs/backends.md from the code."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from genai_prices.data import providers as priced

from docs.markdown import WRITTEN, code, table
from massgen_mcp.config.providers.catalog import PROVIDERS, Provider, Wire, native_tools_of
from tests.wires.rows import ROWS


class WireFacts(NamedTuple):
    """What a wire brings along, whoever speaks it."""

    name: str
    reasoning: str


WIRES: Mapping[Wire, WireFacts] = {
    "responses": WireFacts("OpenAI Responses", "encrypted"),
    "gemini": WireFacts("Gemini API", "streamed and signed"),
    "messages": WireFacts("Anthropic Messages", "signed"),
    "ollama": WireFacts("Ollama's own", "as `thinking`"),
    "chat": WireFacts(
        "Chat Completions",
        "as `reasoning_content`, where the server streams it as text (OpenRouter: as `reasoning_details`)",
    ),
}

HEAD = f"""\
# Backends

{WRITTEN}
What `type:` of a backend may be, besides `scripted`, which calls no model. On the command line and in tools a model is
written as `TYPE/NAME`. For another `base_url` than the provider's, name the variable with `api_key_env`, and accept
that its key goes there ([security.md](security.md#which-server-a-key-may-go-to)).

"""

TAIL = """\

- `chatcompletion` is any server with an OpenAI-compatible API at `base_url`; the key is chosen by the host.
- The last five are model servers of your own ([local-models.md](local-models.md)): `model` may be left out, and for
  a name that the server does not have the error names the nearest one that it has.
- Further types: `claude_code`, [the Claude Code CLI](claude-code.md); `acp`, [other agent CLIs](acp.md); `ag2`, [an
  AG2 agent or group chat](ag2.md).
  `azure_openai` has [keys of its own](config.md#azure-openai) in place of `base_url`.
- Native tools run at the provider. Where the table has none, the flag is refused when the config is loaded. With
  `chatcompletion` they are those of the provider at the address (OpenAI's without a `base_url`); an unknown host has
  none. The sources that a search found are listed below the answer.
- Every wire streams text and calls tools. `reasoning_effort` works on all of them. Reasoning is sent back to the model:
  {reasoning}.
- Gemini 2 does not accept our tools together with its own. An agent with such a model and a native tool acts in text,
  after one request that is refused; Gemini 3 and later accept both.
- `gemini` at an address that ends with `/openai` is asked through Google's compatible endpoint, without native tools.
  `grok` over Chat Completions, which xAI calls legacy, is `chatcompletion` with `base_url: https://api.x.ai/v1`.
- `qwen`, `moonshot` and `nebius` have further regions; name one with `base_url`, such as
  `https://api.moonshot.cn/v1`. A key of one region often is none in another.
- `github` reads `GITHUB_MODELS_TOKEN`, a token that may only ask models. `GITHUB_TOKEN` may write repositories, and is
  sent only where a config names it and a person accepted that.
- The last column is the provider's name in the price list ([costs.md](costs.md)).
- Tests play every check and fault ([wires.md](wires.md)) against doubles of {tested}; the others are tested as
  `chatcompletion`, and their own path. No real provider is asked.
- The strong models, which [default teams](default-teams.md) ask:
"""


def page() -> str:
    columns = (
        *("Type", "Wire", "Key variables", "Default base URL", "set by"),
        *("Native tools", "Prices"),
    )
    strong = [f"  `{row.type}/{row.strong_model}`" for row in PROVIDERS if row.strong_model]
    tail = TAIL.format(
        reasoning=", ".join(f"{wire.name} {wire.reasoning}" for wire in WIRES.values()),
        tested=code(*(row.type for row in PROVIDERS if row.type in {tested.kind for tested in ROWS})),
    )
    return HEAD + table(columns, [tuple(_cells(row)) for row in PROVIDERS]) + tail + ",\n".join(strong) + ".\n"


def _cells(row: Provider) -> Iterator[str]:
    wire = WIRES[row.wire]
    aliases = f" (or {', '.join(f'`{alias}`' for alias in row.aliases)})" if row.aliases else ""
    address = row.base_url or "every customer's own"
    yield f"`{row.type}`{aliases}"
    yield wire.name
    yield ", else ".join(f"`{name}`" for name in row.key_variables) or "none"
    yield address
    yield f"`{row.base_url_variable}`" if row.base_url_variable else ""
    yield ", ".join(f"`enable_{tool}`" for tool in native_tools_of(row.type))
    yield _price_source(row)


def _price_source(row: Provider) -> str:
    """The list of prices knows a provider by its address."""
    address = row.base_url or f"https://name.{row.hosts[0]}"
    name = next((known.id for known in priced if re.match(known.api_pattern, address)), None)
    told = f"`usage.{row.cost_field}`, else " if row.cost_field else ""
    return f"{told}`{name}`" if name else "none"
