"""What model servers say they have, read from the replies of each of them. Pure.

A server may send anything: what is not as its API has it is left out, never an error.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from massgen_mcp.config.models.common import MAX_MODEL_NAME

_NO_CHAT = re.compile(
    r"embed|rerank|whisper|\btts\b|\bocr\b|guard|moderation|reward|diffusion|(?:^|[/_-])(?:bge|e5|gte|clip|siglip|bert)\b",
    re.IGNORECASE,
)
"""In names of models that answer no questions."""
_BILLIONS = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![A-Za-z])", re.IGNORECASE)
_OLLAMA_CONTEXT = ".context_length"


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as its server describes it. None: it does not say."""

    name: str
    billions: float | None = None
    """Parameters, in billions; as a model's name tells them where its server does not."""
    size_bytes: int | None = None
    """What its weights take in memory."""
    context: int | None = None
    """Tokens, at most."""
    chats: bool = True
    tools: bool | None = None
    """Whether it calls tools."""
    loaded: bool = False
    owner: str = ""
    """Who the server says it belongs to: OpenAI-compatible servers put their own name there."""

    def __str__(self) -> str:
        facts = [f"{self.billions:.3g}B"] if self.billions else []
        facts += ["no tools"] if self.tools is False else []
        return f"{self.name} ({', '.join(facts)})" if facts else self.name


def compatible_models(body: bytes) -> list[ListedModel]:
    """`GET /v1/models` of any server: `{"data": [{"id": …}]}`, with what vLLM, SGLang and llama.cpp add to it."""
    models: list[ListedModel] = []
    for entry in _objects(_parsed(body), "data"):
        meta = _object(entry, "meta")  # llama.cpp's
        name, counted = _text_field(entry, "id"), _positive_int(meta, "n_params")
        model = ListedModel(
            name,
            counted / 1e9 if counted else billions_in(name.replace(".gguf", "")),
            _positive_int(meta, "size"),
            _positive_int(entry, "max_model_len") or _positive_int(meta, "n_ctx"),
            chats=not _NO_CHAT.search(name),
            loaded=_loaded_by_llama_cpp(entry),
            owner=_text_field(entry, "owned_by"),
        )
        models.append(model)
    return _well_named(models)


def context_of_llama_cpp(body: bytes) -> int | None:
    """`GET /props` of llama.cpp: the context of one of its slots."""
    return _positive_int(_object(fields_in(body), "default_generation_settings"), "n_ctx")


def gemini_models(body: bytes) -> list[ListedModel]:
    """`GET /v1beta/models` of Gemini."""
    named = (_text_field(entry, "name").removeprefix("models/") for entry in _objects(_parsed(body), "models"))
    return _well_named([ListedModel(name) for name in named])


def lm_studio_models(body: bytes) -> list[ListedModel]:
    """`GET /api/v1/models` of LM Studio, or `/api/v0/models` of an older one."""
    listed = _parsed(body)
    models: list[ListedModel] = []
    for entry in _objects(listed, "models"):
        abilities = _object(entry, "capabilities")
        tools = abilities.get("trained_for_tool_use")
        model = ListedModel(
            _text_field(entry, "key"),
            billions_in(_text_field(entry, "params_string")) or billions_in(_text_field(entry, "key")),
            _positive_int(entry, "size_bytes"),
            _least_context(entry) or _positive_int(entry, "max_context_length"),
            chats=entry.get("type") == "llm",
            tools=tools if isinstance(tools, bool) else None,
            loaded=bool(entry.get("loaded_instances")),
        )
        models.append(model)
    for entry in _objects(listed, "data"):
        if "type" not in entry or "state" not in entry:
            continue  # the compatible list, or somebody else's
        abilities = entry.get("capabilities")
        model = ListedModel(
            _text_field(entry, "id"),
            billions_in(_text_field(entry, "id")),
            context=_positive_int(entry, "loaded_context_length") or _positive_int(entry, "max_context_length"),
            chats=entry.get("type") in ("llm", "vlm"),
            tools="tool_use" in cast("list[object]", abilities) if isinstance(abilities, list) else None,
            loaded=entry.get("state") == "loaded",
        )
        models.append(model)
    return _well_named(models)


def _least_context(entry: Mapping[str, object]) -> int | None:
    """Of the times that LM Studio has loaded the model."""
    loaded = (
        _positive_int(_object(instance, "config"), "context_length") for instance in _objects(entry, "loaded_instances")
    )
    return min(filter(None, loaded), default=None)


def ollama_models(tags: bytes) -> list[ListedModel]:
    """`GET /api/tags` of Ollama. Models that it only passes on to its own cloud are left out."""
    models: list[ListedModel] = []
    seen: set[str] = set()
    for entry in _objects(_parsed(tags), "models"):
        name, digest = _text_field(entry, "model") or _text_field(entry, "name"), _text_field(entry, "digest")
        if entry.get("remote_host") or (digest and digest in seen):
            continue
        seen.add(digest)
        details = _object(entry, "details")
        model = ListedModel(
            name,
            billions_in(_text_field(details, "parameter_size")) or billions_in(name),
            _positive_int(entry, "size"),
            _positive_int(details, "context_length"),
            chats=not _NO_CHAT.search(name),
        )
        models.append(_able(model, entry.get("capabilities")))
    return _well_named(models)


def shown_by_ollama(model: ListedModel, body: bytes) -> ListedModel:
    """`model` with what `POST /api/show` of Ollama says of it."""
    shown = fields_in(body)
    able = _able(model, shown.get("capabilities"))
    facts = _object(shown, "model_info")
    context = next((_positive_int(facts, name) for name in facts if name.endswith(_OLLAMA_CONTEXT)), None)
    return replace(able, context=context or able.context)


def loaded_by_ollama(body: bytes) -> dict[str, int]:
    """`GET /api/ps` of Ollama: the models in its memory, each with its context in tokens; 0 where it does not say."""
    entries = _objects(_parsed(body), "models")
    return {_text_field(entry, "model"): _positive_int(entry, "context_length") or 0 for entry in entries}


def fields_in(body: bytes) -> Mapping[str, object]:
    """The object in a reply; one with nothing in it for anything else."""
    value = _parsed(body)
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def billions_in(text: str) -> float | None:
    """The parameters, in billions, that a name or a count such as `8.2B`, `8x7b` or `134.52M` tells; None if none."""
    found = [
        int(times or 1) * float(number) * (1 if unit in "bB" else 0.001)
        for times, number, unit in _BILLIONS.findall(text)
    ]
    return max(found, default=None)


def _able(model: ListedModel, capabilities: object) -> ListedModel:
    if not isinstance(capabilities, list) or not capabilities:
        return model
    listed = cast("list[object]", capabilities)
    return replace(model, chats="completion" in listed and model.chats, tools="tools" in listed)


def _loaded_by_llama_cpp(entry: Mapping[str, object]) -> bool:
    """A router lists models that it would have to load first."""
    status = entry.get("status")
    return not isinstance(status, dict) or cast("Mapping[str, object]", status).get("value") == "loaded"


def _well_named(models: list[ListedModel]) -> list[ListedModel]:
    return [model for model in models if 0 < len(model.name) <= MAX_MODEL_NAME and model.name.isprintable()]


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _objects(value: object, name: str) -> Iterator[Mapping[str, object]]:
    entries = cast("Mapping[str, object]", value).get(name) if isinstance(value, dict) else None
    for entry in cast("list[object]", entries) if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield cast("Mapping[str, object]", entry)


def _object(fields: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = fields.get(name)
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _text_field(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _positive_int(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
