"""The wires as rows: a type of backend, the root it is given, the path that must arrive, how its server streams."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.models.backends import BackendConfig
from tests.ollama_double import about_models, ollama_double
from tests.raw_double import Seen
from tests.wire_check import check_body
from tests.wire_double import Provider
from tests.wires import dialects
from tests.wires.dialects import Dialect

KEY = "sk-secret-0123456789"
MODEL = "some-model"
_CONFIG: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig)


@dataclass(frozen=True)
class Row:
    """`title` is how docs/wires.md calls it; `kind` is the backend's `type`."""

    title: str
    kind: str
    dialect: Callable[[], Dialect]
    path: str
    root: str = ""
    """What stands between the server's address and the path that the backend adds itself."""
    key_header: str = "authorization"
    address: str = "base_url"
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: str = MODEL
    """The name of the model in a request."""
    effort_field: str = "reasoning_effort"
    """Where a request tells how much to reason; dots lead into objects."""
    own_fields: tuple[str, ...] = ()
    """Fields of a request that the SDK does not know, but the provider does."""
    whole_calls: bool = False
    """Whether a call comes whole, not in pieces."""
    comment: bytes = b": keep-alive\n\n"
    """What a server may send in order to say nothing."""
    beside: Callable[[Seen], bytes | None] = lambda _: None
    """What its server answers to requests that are no calls of a model."""
    own_double: Callable[[], AbstractAsyncContextManager[Provider]] | None = None
    """Plays the provider where aimock speaks this wire otherwise than the provider does."""
    model_in_path: bool = False
    """A request names its model in its path, and aimock's replies name none."""
    calls_end: dict[str, str] = field(default_factory=dict[str, str])
    """What aimock has to be told to end a reply with calls as the provider does."""

    def backend(self, url: str, **settings: Any) -> Backend:
        """A backend as a config makes it, asking the server at `url`."""
        given = {"type": self.kind, "model": MODEL, self.address: url + self.root, "api_key_env": "THE_KEY"}
        return make_backend(_CONFIG.validate_python({**given, **self.settings, **settings}), {"THE_KEY": KEY})

    @asynccontextmanager
    async def provider(self, aimock: Provider) -> AsyncGenerator[Provider]:
        """Who plays the provider in the checks."""
        if self.own_double is None:
            yield aimock
        else:
            async with self.own_double() as double:
                yield double

    def check(self, body: dict[str, Any]) -> None:
        """Fail unless the API allows this request body, by the SDK's own types."""
        check_body(self.path, {name: value for name, value in body.items() if name not in self.own_fields})


ROWS = (
    Row("Chat Completions", "chatcompletion", dialects.Chat, "/v1/chat/completions", root="/v1"),
    Row("Responses", "openai", dialects.Responses, "/v1/responses", root="/v1", effort_field="reasoning"),
    Row(
        "Messages",
        "claude",
        dialects.Messages,
        "/v1/messages",
        key_header="x-api-key",
        effort_field="output_config",
    ),
    Row(
        "Gemini",
        "gemini",
        dialects.Gemini,
        f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
        root="/v1beta",
        key_header="x-goog-api-key",
        effort_field="generationConfig.thinkingConfig.thinkingLevel",
        model_in_path=True,
        whole_calls=True,
        calls_end={"finishReason": "STOP"},
    ),
    Row("Grok", "grok", dialects.Grok, "/v1/responses", root="/v1", effort_field="reasoning"),
    Row(
        "Gemini, compatible",
        "gemini",
        dialects.GeminiCompatible,
        "/v1beta/openai/chat/completions",
        root="/v1beta/openai",
    ),
    Row(
        "Azure",
        "azure_openai",
        dialects.Azure,
        "/openai/v1/chat/completions",
        key_header="api-key",
        address="endpoint",
        settings={"deployment": "team-1"},
        asked="team-1",
    ),
    Row(
        "OpenRouter",
        "openrouter",
        dialects.OpenRouter,
        "/api/v1/chat/completions",
        root="/api/v1",
        effort_field="reasoning",
        own_fields=("reasoning",),
    ),
    Row(
        "Ollama",
        "ollama",
        dialects.Ollama,
        "/api/chat",
        effort_field="think",
        whole_calls=True,
        comment=b"\n",
        beside=about_models,
        own_double=ollama_double,
    ),
)
