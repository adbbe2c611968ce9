"""MassGen's spelling of a `backend` section, brought to ours. Pure."""

from typing import get_args

from massgen_mcp.config.massgen import claude_code_agents
from massgen_mcp.config.massgen.remarks import Remarks
from massgen_mcp.config.models.http_backends import LocalBackendConfig
from massgen_mcp.config.providers.addresses import is_loopback
from massgen_mcp.config.yaml_reader import Place, Plain

SYSTEM_KEYS = ("system_prompt", "append_system_prompt", "system_message")
"""What becomes the agent's system message, in this order."""
LENGTH_KEYS = ("max_tokens", "max_completion_tokens")
"""Other names of `max_output_tokens`."""
TO_THE_PROVIDER = (
    *("top_k", "min_p", "seed", "stop", "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias"),
    *("service_tier", "parallel_tool_calls", "thinking", "metadata", "user", "store"),
    "chat_template_kwargs",
)
"""Settings of providers that MassGen hands on as they are; here `extra_body` does."""
_NO_KEY = frozenset(
    {"", "empty", "none", "dummy", "local", "not-needed", "no-key", "no-key-required", "lm-studio", "ollama"}
)
"""What people write where a server wants no key, but a library insists on one."""
_LOCAL_TYPES = get_args(LocalBackendConfig.model_fields["type"].annotation)
VERBOSE_TYPES = ("openai", "chatcompletion", "azure_openai", "openrouter")

_NO_SUMMARY = "massgen shows the model's reasoning as the provider sends it"
_NO_VERBOSITY = "this provider has no such setting; in system_message, ask for the verbosity that you want"
_CONFINED = "in massgen, the team's tools let Claude Code use files in its workspace and run commands in the sandbox"


OVER_ACP = ("codex", "copilot", "gemini_cli")
"""Types of MassGen's that are presets here."""


def take(backend: dict[str, Plain], place: Place, remarks: Remarks) -> str | None:
    """Bring `backend`, the caller's own copy at `place`, to our spelling. Returns what it says in the agent's system
    message, if anything.
    """
    kind = backend.get("type")
    if kind == "scripted" or kind == "ag2":
        return None
    texts = [backend.pop(key) for key in SYSTEM_KEYS if isinstance(backend.get(key, ""), str | None) and key in backend]
    if kind in OVER_ACP:
        backend.update(type="acp", preset=kind)
    elif kind == "claude_code":
        _take_claude_code(backend, place, remarks)
    else:
        for key in LENGTH_KEYS:
            _rename(backend, "max_output_tokens", backend.pop(key, None), place, (key,), remarks)
        _take_reasoning(backend, place, remarks)
        _take_verbosity(backend, place, remarks)
        _take_placeholder(backend)
        _take_further(backend)
    return "\n\n".join(text for text in texts if isinstance(text, str) and text) or None


def _take_further(backend: dict[str, Plain]) -> None:
    """What is for the provider alone."""
    extra = backend.get("extra_body", {})
    for key in TO_THE_PROVIDER:
        if key in backend and isinstance(extra, dict):
            value = backend.pop(key)
            extra = extra if value is None else {key: value, **extra}
            backend["extra_body"] = extra
    if backend.get("extra_body") == {}:
        del backend["extra_body"]


def _take_claude_code(backend: dict[str, Plain], place: Place, remarks: Remarks) -> None:
    plain, problems = claude_code_agents.translated(backend)
    allowed = backend.get("allowed_tools")
    if isinstance(allowed, list) and (names := [name for name in claude_code_agents.WITHOUT if name in allowed]):
        remarks.ignore(f"{', '.join(names)}: {_CONFINED}", (*place, "allowed_tools"))
    for key in claude_code_agents.KEYS:
        if key in backend and key not in problems and key != "allowed_tools":
            remarks.ignore(_CONFINED, (*place, key))
    for key, message in problems.items():
        remarks.refuse((*place, key), message)
    backend.clear()
    backend.update(plain)


def _rename(backend: dict[str, Plain], ours: str, value: Plain, place: Place, written: Place, remarks: Remarks) -> None:
    """Let `value`, which is `written` below `place`, be what our key `ours` says. None: nothing was written."""
    if value is None:
        return
    if backend.setdefault(ours, value) != value:
        remarks.refuse((*place, *written), f"{ours} means the same but has another value; keep only one")
    remarks.moved.setdefault((*place, ours), (*place, *written))


def _take_reasoning(backend: dict[str, Plain], place: Place, remarks: Remarks) -> None:
    """`reasoning: {effort, summary}`, or `reasoning: high`."""
    if "reasoning" not in backend:
        return
    reasoning = backend.pop("reasoning")
    settings = dict(reasoning) if isinstance(reasoning, dict) else {"effort": reasoning}
    _rename(backend, "reasoning_effort", settings.pop("effort", None), place, ("reasoning", "effort"), remarks)
    for key in ("summary", "generate_summary"):
        if settings.pop(key, None) is not None:
            remarks.ignore(_NO_SUMMARY, (*place, "reasoning", key))
    for key in settings:
        remarks.refuse((*place, "reasoning", key), "unknown key; known keys: effort, summary")


def _take_verbosity(backend: dict[str, Plain], place: Place, remarks: Remarks) -> None:
    """`text: {verbosity}`; there is nothing else to say of texts."""
    if "text" in backend:
        text = backend.pop("text")
        settings = dict(text) if isinstance(text, dict) else {}
        if not isinstance(text, dict | None):
            remarks.refuse((*place, "text"), "expected a mapping")
        verbosity = settings.pop("verbosity", None)
        if verbosity is not None:
            backend["verbosity"] = verbosity
            remarks.moved[(*place, "verbosity")] = (*place, "text", "verbosity")
        for key in settings:
            remarks.refuse((*place, "text", key), "unknown key; known key: verbosity")
    if backend.get("verbosity") is not None and backend.get("type") not in VERBOSE_TYPES:
        written = remarks.moved.pop((*place, "verbosity"), (*place, "verbosity"))
        remarks.ignore(_NO_VERBOSITY, written)
        del backend["verbosity"]


def _take_placeholder(backend: dict[str, Plain]) -> None:
    """A key that is none, for a server of one's own."""
    key, address = backend.get("api_key"), backend.get("base_url")
    if key is None:
        backend.pop("api_key", None)
    at_home = backend.get("type") in _LOCAL_TYPES or (isinstance(address, str) and is_loopback(address))
    if at_home and isinstance(key, str) and key.strip().lower() in _NO_KEY:
        del backend["api_key"]
