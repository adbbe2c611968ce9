"""The providers on the internet, by the name that they have as the `type` of a backend."""

from typing import Literal, get_args

ProviderType = Literal[
    "openai",
    "chatcompletion",
    "claude",
    "gemini",
    "grok",
    "groq",
    "cerebras",
    "together",
    "fireworks",
    "openrouter",
    "zai",
    "deepseek",
    "mistral",
    "moonshot",
    "qwen",
    "nebius",
    "perplexity",
    "huggingface",
    "github",
]
"""`chatcompletion` is any server that speaks like OpenAI's."""

LISTED_TYPES: tuple[str, ...] = tuple(name for name in get_args(ProviderType) if name != "chatcompletion")
"""The providers whose prices may be named."""
