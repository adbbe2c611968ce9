"""A small list of prices, in the form in which genai-prices publishes its own."""

import json

_MODELS = [
    {
        "id": "gpt-6.2-sol",
        "match": {"equals": "gpt-6.2-sol"},
        "prices": {"input_mtok": 2, "output_mtok": 10},
    },
    *(
        {"id": f"old-{number}", "match": {"equals": f"old-{number}"}, "prices": {"input_mtok": 1, "output_mtok": 1}}
        for number in range(200)
    ),
]
SMALL_LIST = json.dumps(
    [{"id": "openai", "name": "OpenAI", "api_pattern": r"https://api\.openai\.com", "models": _MODELS}]
).encode()
"""Of one provider, with a model that the installed list lacks."""
