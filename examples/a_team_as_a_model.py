"""Use a whole team wherever LiteLLM takes a model's name.

python examples/a_team_as_a_model.py massgen/model:scripted/x "Should we rewrite it or refactor it?"
"""

import sys
from typing import Any

import litellm

import massgen_mcp as massgen


def main(model: str, question: str) -> None:
    massgen.register_with_litellm()
    message = {"role": "user", "content": question}
    # LiteLLM's completion is typed in part only.
    response: Any = litellm.completion(model=model, messages=[message])  # pyright: ignore[reportUnknownMemberType]
    print(response.choices[0].message.content)
    print(response.usage.total_tokens, "tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
