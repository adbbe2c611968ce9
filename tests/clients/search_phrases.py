"""The words by which a person asks for other models, and by which a search has to find `start_run`."""

PHRASES = (
    "second opinion",
    "ask other models",
    "ask GPT and Gemini",
    "review",
    "debate",
    "consensus",
    "delegate",
    "root cause",
    "architecture decision",
)
