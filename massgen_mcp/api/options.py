"""What `run` takes by name. Imports next to nothing: a program that only names it has to wait for nothing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from massgen_mcp.config.given import Paths


class RunOptions(TypedDict, total=False):
    """What `run` takes by name besides its listed parameters."""

    config_dict: Mapping[str, Any] | None
    """A config as a dictionary, such as `build_config` makes."""
    context_paths: Paths | None
    """Files and directories that agents may use, besides those of the config. Only text: may be written to."""
    checks: Sequence[str] | None
    """Commands that judge what answers change in the context paths, besides those of the config."""
    decide: str | None
    """How the winner is found: auto, vote, checks or synthesise, instead of what the config says."""
    session_id: str | None
    """Continue the session of an earlier result: agents see its questions and answers. Turns without logging are known
    to this process alone."""
    changes_of: str | None
    """Go on with the changes of `winner`, or of this agent, in the newest turn of the session that changed files."""
    conversation_history: Sequence[Mapping[str, str]] | None
    """Earlier turns as `{"role": "user" | "assistant", "content": ...}`, for a conversation that began elsewhere."""
    system_message: str | None
    """Said to every agent, after the system message that the config gives it."""
    base_url: str | None
    """Where `model` or `models` are asked, instead of at their providers'."""


class RunArguments(RunOptions, total=False):
    """Everything that `run` takes besides the question."""

    config: str | Path | None
    model: str | None
    models: Sequence[str] | None
    num_agents: int | None
    use_docker: bool
    enable_filesystem: bool
    enable_logging: bool
    output_file: str | Path | None
