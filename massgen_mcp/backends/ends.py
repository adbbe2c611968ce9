"""How a reply can end, by wire: closed lists. An end that is in none is a failure that may pass, never a success.

A good end is "end" or "tool_calls"; "length" and "refusal" are final, and told as such. Servers invent words of their
own for a reply that they broke off (`abort`, `cancelled`, `error`), so only known ones count; but calls whose arguments
are whole need no good word, only none that is bad. Knows no SDK.
"""

from collections.abc import Collection, Mapping
from typing import Literal

from massgen_mcp.backends.base import StopReason
from massgen_mcp.backends.wire_values import is_object

End = StopReason | Literal["refusal"]

CHAT: Mapping[str, End] = {
    # openai.types.chat.chat_completion_chunk.Choice.finish_reason; also all that vLLM (v1/engine/__init__.py), SGLang
    # (srt/managers/schedule_batch.py), llama.cpp's server and Ollama say when a reply is whole. Their other words are
    # vLLM's abort, error and repetition, SGLang's abort, Ollama's load and unload.
    "stop": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
    # Text Generation Inference and Together; LiteLLM (litellm_core_utils/core_helpers.py) calls them ends, too.
    "eos": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    # xAI, and proxies that pass Anthropic's words on.
    "end_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "refusal",
    # Mistral; Z.ai.
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "sensitive": "refusal",
    # Google's own, which its compatible endpoint lets through.
    "safety": "refusal",
    "recitation": "refusal",
    "language": "refusal",
    "blocklist": "refusal",
    "prohibited_content": "refusal",
    "spii": "refusal",
    "model_armor": "refusal",
    # Bedrock's, through LiteLLM.
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
}
"""Finish reasons of Chat Completions, in lower case, without what some servers add after a colon."""

MESSAGES: Mapping[str, End] = {
    # anthropic.types.StopReason; `pause_turn` is none, the reply goes on.
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
"""Stop reasons of the Messages API, and of the Claude Code CLI, which passes them on."""

RESPONSES_INCOMPLETE: Mapping[str, End] = {
    # openai.types.responses.response.IncompleteDetails; `max_messages` and `steered` belong to what we do not use.
    "max_output_tokens": "length",
    "content_filter": "refusal",
}
"""Why a response of the Responses API is incomplete. Of its other states only `completed` is an end."""


GEMINI: Mapping[str, End] = {
    # google.genai.types.FinishReason. None of OTHER, MALFORMED_FUNCTION_CALL, MALFORMED_RESPONSE, UNEXPECTED_TOOL_CALL,
    # TOO_MANY_TOOL_CALLS, MISSING_THOUGHT_SIGNATURE, NO_IMAGE, IMAGE_OTHER is an end.
    "stop": "end",
    "max_tokens": "length",
    "continuation": "length",
    "safety": "refusal",
    "recitation": "refusal",
    "language": "refusal",
    "blocklist": "refusal",
    "prohibited_content": "refusal",
    "spii": "refusal",
    "model_armor": "refusal",
    "escalation": "refusal",
    "pup_limited_disabled": "refusal",
    "image_safety": "refusal",
    "image_prohibited_content": "refusal",
    "image_recitation": "refusal",
}
"""Finish reasons of Gemini's own API, in lower case."""


RESPONSES: Mapping[str, End] = {"completed": "end"}
"""States of a response of the Responses API that is not incomplete."""

_BROKEN_OFF = (
    *("abort", "cancel", "close", "error", "fail", "incomplete", "in_progress", "interrupt", "preempt", "queued"),
    *("time_out", "timeout", "compaction", "insufficient", "load", "malformed", "missing", "pause", "repetition"),
    *("too_many", "unexpected", "image", "none", "null", "other", "unknown", "unspecified"),
)
"""What is in the words of servers for a reply that is not whole, or of which they do not know how it ended."""


def stop_of(table: Mapping[str, End], reason: object, calls: Collection[str]) -> End | None:
    """The end that a server told; None if it is none that we know.

    `calls`: the arguments of the reply's calls. A reply that ended in order and calls some has ended for them; one that
    says so and calls none is not whole.
    """
    if not isinstance(reason, str):
        return None
    word = reason.partition(":")[0].strip().lower()
    stop = table.get(word)
    invented = stop is None and word and not any(bad in word for bad in _BROKEN_OFF)
    if calls and (stop == "end" or (invented and all(map(is_object, calls)))):
        return "tool_calls"
    return None if stop == "tool_calls" and not calls else stop
