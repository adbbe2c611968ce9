"""What a call of a model is to us, as another framework makes it: a request, from the model's name, messages and
parameters. Must not import a framework.

Nothing of a call is ignored in silence: what cannot be done is a `MassgenError`, unless it may be dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from massgen_mcp.api.options import RunArguments
from massgen_mcp.api.request import PreparedRequest, check_types, prepared
from massgen_mcp.config.build_config import build_config
from massgen_mcp.config.loader import EXAMPLE_PREFIX
from massgen_mcp.errors import MassgenError

BUILD_OPTIONS = ("model", "models", "num_agents", "backend", "backends", "use_docker", "context_paths")
RUN_OPTIONS = (
    *("enable_filesystem", "enable_logging", "output_file", "session_id", "system_message", "context_paths"),
    *("decide", "changes_of"),
)
PLAIN = ("stream", "stream_options", "user", "metadata", "max_retries", "extra_headers")
"""Of LiteLLM's own concern."""
SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""Parameters that every agent's model is asked with."""
DEFAULT = "default"
"""As a model: no team is named, so the rule of every door decides."""
DEFAULT_TIMEOUT = 600.0
"""LiteLLM always hands one over; this one means that the caller gave none, and the config's own holds."""


class UnsupportedParameters(MassgenError):
    """The call wants something of the answer that a team cannot give, such as tool calls."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            "invalid_arguments",
            f"massgen doesn't support {', '.join(names)}; leave it out, or set drop_params=True to ignore it",
        )


async def request_of(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    given_parameters: Mapping[str, Any],
    *,
    api_base: str | None = None,
    timeout: float | None = None,
    drop_unsupported: bool = False,
) -> PreparedRequest:
    """The request, checked as those of `run`. `model` has no provider prefix any more. Raises `MassgenError`."""
    parameters = _unnested(given_parameters)
    sampling = _sampling(parameters, drop=drop_unsupported)
    question, earlier, system = conversation(messages)
    options = cast("RunArguments", {name: parameters.pop(name) for name in RUN_OPTIONS if name in parameters})
    texts = [text for text in (system, options.get("system_message")) if text]
    given: RunArguments = {
        **options,
        **_team_arguments(model, api_base, parameters),
        "conversation_history": earlier or None,
        "system_message": "\n\n".join(texts) or None,
    }
    seconds = None if timeout == DEFAULT_TIMEOUT else timeout
    run = await prepared(question, given, sampling=sampling, at_most_seconds=seconds)
    if model != "build":
        return run
    return replace(run, config_used=f"build:{','.join(agent.backend.model for agent in run.request.config.agents)}")


def _unnested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """LiteLLM hands `optional_params` on as one parameter among the others."""
    flat = dict(parameters)
    inner = flat.pop("optional_params", None)
    if isinstance(inner, Mapping):
        flat.update(cast("Mapping[str, Any]", inner))
    return {name: value for name, value in flat.items() if value is not None and name not in PLAIN}


def _sampling(parameters: dict[str, Any], *, drop: bool) -> dict[str, Any]:
    """Take what belongs to the models out of `parameters`, and refuse or drop what nobody here understands."""
    tuned = {key: parameters.pop(name) for name, key in SAMPLING.items() if name in parameters}
    if parameters.get("n") == 1:
        del parameters["n"]
    unknown = [name for name in parameters if name not in BUILD_OPTIONS and name not in RUN_OPTIONS]
    if unknown and not drop:
        raise UnsupportedParameters(unknown)
    for name in unknown:
        del parameters[name]
    return tuned


def _team_arguments(model: str, api_base: str | None, parameters: dict[str, Any]) -> RunArguments:
    """How `run` would be told the team that the model string means."""
    use_docker = parameters.pop("use_docker", False)
    if model == "build":
        return {"config_dict": _built(api_base, parameters), "use_docker": use_docker}
    if parameters:
        raise MassgenError("invalid_arguments", f"{', '.join(parameters)}: works only with the model massgen/build")
    kind, colon, rest = model.partition(":")
    if colon and kind == "model":
        return {"model": rest, "base_url": api_base or None, "use_docker": use_docker}
    if api_base:
        raise MassgenError("invalid_arguments", "api_base: only with massgen/model:MODEL and massgen/build")
    if model == DEFAULT:
        return {"use_docker": use_docker}
    if colon and kind == "path":
        return {"config": rest, "use_docker": use_docker}
    return {"config": f"{EXAMPLE_PREFIX}{model}", "use_docker": use_docker}


def _built(api_base: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
    if not any(parameters.get(name) for name in ("model", "models", "backend", "backends")):
        raise MassgenError("invalid_arguments", "massgen/build: set model or models in optional_params")
    check_types(parameters)
    data = build_config(**parameters)
    for agent in data["agents"] if api_base else ():
        agent["backend"]["base_url"] = api_base
    return data


# -- messages ---------------------------------------------------------------------------------------------------------


def conversation(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, str]], str]:
    """The question (what the user said last), the turns before it, and the system's words."""
    system: list[str] = []
    turns: list[dict[str, str]] = []
    for message in messages:
        role = message.get("role")
        text = _content_text(message.get("content"))
        if role in ("system", "developer"):
            system.append(text)
        elif role in ("user", "assistant") and not message.get("tool_calls"):
            turns.append({"role": str(role), "content": text})
        else:
            raise MassgenError("invalid_arguments", "messages: expected text with the role system, user or assistant")
    last = len(turns)
    while last and turns[last - 1]["role"] == "user":
        last -= 1
    if last == len(turns):
        raise MassgenError("invalid_arguments", "messages: the last one must be the user's question")
    question = "\n\n".join(message["content"] for message in turns[last:])
    return question, turns[:last], "\n\n".join(filter(None, system))


def _content_text(content: object) -> str:
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(_part(part) for part in cast("list[object]", content))
        case _:
            raise MassgenError("invalid_arguments", "messages: content must be text or a list of text parts")


def _part(part: object) -> str:
    match part:
        case str():
            return part
        case {"type": "text", "text": str(text)}:
            return text
        case _:
            raise MassgenError("invalid_arguments", "messages: a team reads only text, not images, audio or files")
