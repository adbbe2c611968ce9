"""Tokens as the o200k encoding counts them. Its ranks come with LiteLLM, so nothing is fetched."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

WHERE = "TIKTOKEN_CACHE_DIR"


def tokens(text: str) -> int:
    return len(_encoding().encode_ordinary(text))


@cache
def _encoding() -> "tiktoken.Encoding":
    found = find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    import tiktoken

    before = os.environ.get(WHERE)
    os.environ[WHERE] = str(Path(found.origin).parent / "litellm_core_utils" / "tokenizers")
    try:
        return tiktoken.get_encoding("o200k_base")
    finally:
        del os.environ[WHERE]
        if before is not None:
            os.environ[WHERE] = before
