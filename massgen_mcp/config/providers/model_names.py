"""Which provider a model is of, by its name."""

import re

from massgen_mcp.config.providers.catalog import PROVIDERS, WITHOUT_PROVIDER, named_provider, provider_names
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest

_OPEN_MODELS = re.compile(r"(?i)(llama|qwen|mistral|gemma|phi|deepseek|gpt-oss|codellama|mixtral|smollm|granite)")


def detect_backend(model: str) -> tuple[str, str]:
    """Split `provider/model`, or recognise a plain model name; returns the backend's type and the model.

    Raises `MassgenError("config_invalid")` when the provider is unknown or cannot be told from the name.
    """
    prefix, slash, name = model.strip().partition("/")
    if slash and prefix and name:
        if prefix in WITHOUT_PROVIDER:
            return prefix, name
        return named_provider(prefix).type, name
    for row in PROVIDERS:
        if row.plain_models and re.fullmatch(row.plain_models, prefix) and not slash:
            return row.type, prefix
    raise MassgenError(
        "config_invalid",
        f"model {model[:80]!a}: massgen can't infer the provider from the name; {_meant(model)}write "
        f"provider/model, such as openai/{named_provider('openai').strong_model}, with one of these providers: "
        f"{', '.join(provider_names())}",
    )


FAMILIES = {"gpt": "openai", "chatgpt": "openai", "claude": "claude", "gemini": "gemini", "grok": "grok"}
"""Words for a provider's models, and the type of that provider."""


def name_strong_model(word: str) -> str:
    """Return `provider/model` for the name of a provider or of its family of models: its strong model of today. Any
    other name comes back as it is.

    Raises `MassgenError("config_invalid")` for a bare word that names neither, with the nearest names.
    """
    lower = word.strip().lower()
    for row in PROVIDERS:
        if FAMILIES.get(lower) != row.type and lower not in (row.type, *row.aliases):
            continue
        if row.strong_model is None:
            raise MassgenError("config_invalid", f"`{lower}` needs a model: write {lower}/MODEL")
        return f"{row.type}/{row.strong_model}"
    if "/" in word or any(row.plain_models and re.fullmatch(row.plain_models, word.strip()) for row in PROVIDERS):
        return word
    names = [*FAMILIES, *(name for row in PROVIDERS if row.strong_model for name in (row.type, *row.aliases))]
    models = [row.strong_model for row in PROVIDERS if row.strong_model]
    near = _meant(word) or _suggest(nearest(word, [*names, *models]))
    raise MassgenError(
        "config_invalid",
        f"unknown provider or model {word[:80]!a}: {near}write a provider ({', '.join(dict.fromkeys(names))}) or "
        f"provider/model, such as openai/{models[0]}",
    )


def _suggest(name: str | None) -> str:
    return f"did you mean {name}? Otherwise, " if name else ""


def _meant(model: str) -> str:
    """What was most likely meant, as words that end in a blank; nothing where none is near."""
    if model.startswith("$"):
        return "massgen doesn't replace variables; "
    if model in provider_names():
        return f"it is a provider: use --backend {model}, or "
    strong = (row.strong_model for row in PROVIDERS if row.strong_model)
    if fitting := [name for name in strong if model.lower() in name.split("-")]:
        return f"did you mean {fitting[0]}? Otherwise, "
    hyphened = re.sub(r"^([A-Za-z]+)(?=\d)", r"\1-", model[:80].lower())
    if any(row.plain_models and re.fullmatch(row.plain_models, hyphened) for row in PROVIDERS):
        return f"did you mean {hyphened}? Otherwise, "
    if _OPEN_MODELS.match(model):
        return f"did you mean ollama/{model[:80]}? Otherwise, "
    return ""
