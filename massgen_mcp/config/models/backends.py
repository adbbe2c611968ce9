"""Every backend that an agent can have, as one closed union."""

from typing import Annotated, get_args

from pydantic import Field

from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.config.models.claude_code import ClaudeCodeBackendConfig
from massgen_mcp.config.models.http_backends import (
    AzureBackendConfig,
    LocalBackendConfig,
    OllamaBackendConfig,
    ProviderBackendConfig,
)
from massgen_mcp.config.models.scripted import ScriptedBackendConfig

BackendConfig = Annotated[
    ScriptedBackendConfig
    | ProviderBackendConfig
    | LocalBackendConfig
    | OllamaBackendConfig
    | AzureBackendConfig
    | ClaudeCodeBackendConfig
    | Ag2BackendConfig,
    Field(discriminator="type"),
]

LIMITED_TYPES: tuple[str, ...] = tuple(
    name
    for model in (
        ProviderBackendConfig,
        LocalBackendConfig,
        OllamaBackendConfig,
        AzureBackendConfig,
        ClaudeCodeBackendConfig,
        Ag2BackendConfig,
    )
    for name in get_args(model.model_fields["type"].annotation)
)
"""The backend types that call somebody."""
