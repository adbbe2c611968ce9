"""What a model at one address was found not to take: learned from the refusal, and not asked for again; and the words
of refusals, where the APIs have no codes for them: no tools, a request that is too long, a filter that stopped it.

Every row of these holds words of a real server and where they are reported.
"""

import math
import re
import sys
from dataclasses import dataclass
from typing import Literal, assert_never

import anyio

from massgen_mcp.backends.base import Backend, ModelRequest, window
from massgen_mcp.backends.metering import BYTES_PER_TOKEN, request_tokens
from massgen_mcp.errors import BackendError, RefusedPart
from massgen_mcp.events.parts import Usage

USUAL_SHARE = 0.6
"""Of the tokens that a text has at most, so many are there usually."""
LEAST_SHARE = 0.1
WITHIN = 0.8
"""A model that told no number takes less than what was too much for it."""

Meaning = RefusedPart | Literal["too_long", "filtered"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """`status` and `message` are what a server answers; `pattern` is what tells its meaning, in any case of letters."""

    who: str
    status: int
    message: str
    means: Meaning
    pattern: str
    thread: str


REFUSALS = (
    Refusal(
        "Ollama",
        400,
        "registry.ollama.ai/library/gemma3:4b does not support tools",
        "tools",
        r"(?:does not|doesn't|not) support (?:tool(?:s\b| use| calls?| calling)|function(?:s\b| calls?| calling))",
        "https://github.com/ollama/ollama/issues/6027",
    ),
    Refusal(
        "vLLM",
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools",
        r"requires --(?:enable-auto-tool-choice|tool-call-parser)",
        "https://github.com/vllm-project/vllm/issues/9986",
    ),
    Refusal(
        "SGLang",
        400,
        "Unsupported tool_call_parser: None",
        "tools",
        r"unsupported tool_call_parser",
        "https://github.com/sgl-project/sglang/issues/9102",
    ),
    Refusal(
        "llama.cpp",
        500,
        "tools param requires --jinja flag",
        "tools",
        r"tools param requires --jinja",
        "https://github.com/containers/ramalama/issues/988",
    ),
    Refusal(
        "llama.cpp of 2024",
        500,
        "Unsupported param: tools",
        "tools",
        r"unsupported param(?:eter)?: '?tools\b",
        "https://github.com/ggml-org/llama.cpp/issues/10920",
    ),
    Refusal(
        "OpenRouter",
        404,
        "No endpoints found that support tool use. To learn more about provider routing, visit: "
        "https://openrouter.ai/docs/provider-routing",
        "tools",
        r"no endpoints found that support tool use",
        "https://github.com/dnakov/anon-kode/issues/2",
    ),
    Refusal(
        "Gemini",
        400,
        "Function calling is not enabled for models/gemma-3-12b-it",
        "tools",
        r"(?:function|tool) calling[`'\"]? is (?:not enabled|not supported|unsupported)",
        "https://github.com/agno-agi/agno/issues/3505",
    ),
    Refusal(
        "Gemini 2 with its own search",
        400,
        "Tool use with function calling is unsupported",
        "tools",
        r"tool use with function calling is unsupported",
        "https://github.com/googleapis/go-genai/issues/323",
    ),
    Refusal(
        "Gemini 2 with its own search",
        400,
        "Tool call context circulation is not enabled for models/gemini-2.5-flash",
        "tools",
        r"tool call context circulation is not enabled",
        "https://github.com/egonSchiele/agency-lang/issues/495",
    ),
    Refusal(
        "Gemini with its own search",
        400,
        "Built-in tools ({google_search}) and Custom tools (Function Calling) cannot be combined in the same request. "
        "Please choose one to continue.",
        "tools",
        r"built-in tools.{0,60}function calling.{0,3}cannot be combined",
        "https://github.com/lbjlaq/Antigravity-Manager/issues/2241",
    ),
    Refusal(
        "LiteLLM",
        400,
        "litellm.UnsupportedParamsError: ollama does not support parameters: ['tools'], for model=gemma2. To drop "
        "these, set `litellm.drop_params=True` or for proxy: `litellm_settings: drop_params: true`",
        "tools",
        r"not support parameters: \[[^\]]*'tools'",
        "https://github.com/VectifyAI/OpenKB/issues/137",
    ),
    Refusal(
        "LiteLLM",
        400,
        "litellm.UnsupportedParamsError: groq does not support parameters: ['tool_choice'], for model=gemma2-9b-it.",
        "tool_choice",
        r"not support parameters: \[[^\]]*'tool_choice'",
        "https://github.com/VectifyAI/OpenKB/issues/137",
    ),
    Refusal(
        "Ollama",
        500,
        "error parsing tool call: raw='{\"content\":\"It is 42.\"}]', err=invalid character ']' after top-level value",
        "call_parser",
        r"error parsing tool call",
        "https://github.com/ollama/ollama/issues/12884",
    ),
    Refusal(
        "vLLM of 2024",
        400,
        "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]",
        "stream_options",
        r"stream_options.{0,80}(?:not permitted|not allowed|not supported)|not support[^.]{0,60}stream_options"
        r"|(?:unknown|unsupported|unrecognized|invalid|extra)[^.]{0,60}stream_options",
        "https://github.com/modelscope/ms-agent/issues/489",
    ),
    Refusal(
        "OpenAI-compatible gateways",
        400,
        "Unknown parameter: 'stream_options'. (request id: 1)",
        "stream_options",
        r"unknown parameter: 'stream_options'",
        "https://github.com/QuantumNous/new-api/issues/418",
    ),
    Refusal(
        "vLLM with Gemma 2",
        400,
        "System role not supported",
        "system_role",
        r"system (?:role|messages?|prompts?)(?: is| are)? not (?:supported|allowed)"
        r"|not support(?:ed)? (?:the )?system (?:role|message)"
        r"|only user and assistant roles are supported|developer instruction is not enabled",
        "https://github.com/huggingface/chat-ui/issues/1386",
    ),
    Refusal(
        "vLLM with Mistral",
        400,
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        "alternation",
        r"roles? must alternate|alternate between user and assistant|consecutive (?:user|messages)",
        "https://github.com/vllm-project/vllm/issues/6862",
    ),
    Refusal(
        "Groq",
        400,
        "This model does not support response format `json_schema`. See supported models at "
        "https://console.groq.com/docs/structured-outputs#supported-models",
        "schema",
        r"not support (?:the )?response[ _]format"
        r"|response_format.{0,80}(?:not supported|unsupported|unavailable|not permitted)"
        r"|(?:unknown|unsupported|unrecognized|invalid)[^.]{0,40}response_format|invalid schema for response format"
        r"|not support parameters: \[[^\]]*'response_format'",
        "https://github.com/ItzCrazyKns/Vane/issues/980",
    ),
    Refusal(
        "DeepSeek",
        400,
        "Thinking mode does not support this tool_choice",
        "tool_choice",
        r"not support this tool_choice",
        "https://github.com/deepseek-ai/DeepSeek-V3/issues/1376",
    ),
    Refusal(
        "Qwen at Alibaba",
        400,
        "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required "
        "or object in thinking mode",
        "tool_choice",
        r"tool_choice parameter does not support",
        "https://github.com/cloudwego/eino/issues/994",
    ),
    Refusal(
        "LM Studio",
        400,
        "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
        "tool_choice",
        r"(?:invalid|unsupported|unknown|unexpected|unrecognized)[^.]{0,40}\btool_choice",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670",
    ),
    Refusal(
        "OpenRouter",
        404,
        "No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, "
        "visit: https://openrouter.ai/docs/provider-routing",
        "tool_choice",
        r"support the provided 'tool_choice'",
        "https://github.com/zed-industries/zed/issues/36094",
    ),
    Refusal(
        "vLLM",
        400,
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the "
        "messages, 10000 in the completion). Please reduce the length of the messages or completion.",
        "too_long",
        r"maximum (?:context|prompt) length",
        "https://github.com/vllm-project/vllm/issues/20409",
    ),
    Refusal(
        "llama.cpp",
        400,
        "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "too_long",
        r"exceeds the available context size",
        "https://github.com/ggml-org/llama.cpp/issues/19774",
    ),
    Refusal(
        "llama.cpp",
        500,
        "Context size has been exceeded.",
        "too_long",
        r"context (?:size|length|window) (?:has been )?exceeded",
        "https://github.com/ggml-org/llama.cpp/issues/19774",
    ),
    Refusal(
        "Ollama",
        400,
        "the input length exceeds the context length",
        "too_long",
        r"input (?:length )?exceeds (?:the |maximum )?context length",
        "https://github.com/ollama/ollama/blob/main/llm/llama_server.go",
    ),
    Refusal(
        "LM Studio",
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= "
        "n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        "too_long",
        r"greater than the context length",
        "https://github.com/Gitlawb/openclaude/issues/353",
    ),
    Refusal(
        "LM Studio",
        400,
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context "
        "length of only 7866 tokens, which is not enough.",
        "too_long",
        r"loaded with context length of only",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546",
    ),
    Refusal(
        "SGLang",
        400,
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        "too_long",
        r"longer than the model's context length",
        "https://github.com/QwenLM/Qwen3/issues/1321",
    ),
    Refusal(
        "SGLang",
        400,
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        "too_long",
        r"exceeds the maximum (?:allowed length|number of tokens allowed)",
        "https://github.com/sgl-project/sglang/issues/4048",
    ),
    Refusal(
        "Anthropic",
        400,
        "Output blocked by content filtering policy",
        "filtered",
        r"blocked by content filtering policy",
        "https://github.com/anthropics/claude-code/issues/6195",
    ),
)

_REFUSING = frozenset({400, 404, 422, 500, 501})
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)|prompt length|allowed length|tokens allowed|configured limit|n_ctx)"
    r"(?: is| of| only|:)*[ (]*(\d[\d,]{3,})|> (\d[\d,]{3,}) maximum",
    re.IGNORECASE,
)
_MEANINGS: list[tuple[Meaning, re.Pattern[str]]] = [
    (refusal.means, re.compile(refusal.pattern, re.IGNORECASE)) for refusal in REFUSALS
]


def refused_part(status: int, message: str) -> RefusedPart | None:
    """Return the part of a request that the server says it does not take, if that is what it says."""
    meant = _meaning(message)
    return None if meant in ("too_long", "filtered") or status not in _REFUSING else meant


def reason_in_words(message: str) -> Literal["context_too_small", "content_filter"] | None:
    """Why a request failed for good, if that is what the message says."""
    match _meaning(message):
        case "too_long":
            return "context_too_small"
        case "filtered":
            return "content_filter"
        case _:
            return None


def window_in_words(message: str) -> int | None:
    """How many tokens the model takes, where a message that a request is too long tells it."""
    found = _WINDOW.search(message)
    return None if found is None else int((found[1] or found[2]).replace(",", ""))


def _meaning(message: str) -> Meaning | None:
    return next((means for means, pattern in _MEANINGS if pattern.search(message)), None)


class Abilities:
    """Of one model at one address. Everything is taken to be possible until it is refused."""

    def __init__(self) -> None:
        self.takes_tools = True
        self.can_be_forced = True
        """Whether a request may say that a tool must be called."""
        self.left_out: frozenset[RefusedPart] = frozenset()
        """Other parts of a request that were refused."""
        self._parser_failed = False
        self.window: int | None = None
        """Tokens of the largest request that it takes, as its server or a refusal told. None: none did."""
        self._asking = anyio.Lock(fast_acquire=True)
        self._asked = False
        self._tokens_per_estimate = USUAL_SHARE

    async def ask_window(self, backend: Backend) -> None:
        """Have the server itself say it, unless it was asked."""
        async with self._asking:
            if self.window is None and not self._asked:
                self._asked = True
                self.window = await window(backend)

    def tokens(self, request: ModelRequest) -> int:
        """About how many tokens of this model a request has: as many as of those before, by their length."""
        return math.ceil(request_tokens(request) * self._tokens_per_estimate)

    def bytes_of(self, tokens: float) -> int:
        """About so many bytes of text are so many tokens."""
        return int(tokens / self._tokens_per_estimate * BYTES_PER_TOKEN)

    def measure(self, estimate: int, usage: Usage | None) -> None:
        """Learn from what the provider counted. `estimate`: what the request had at most (`request_tokens`)."""
        if usage is not None and not usage.estimated and not usage.at_least:
            self._tokens_per_estimate = max(LEAST_SHARE, usage.input_tokens / estimate)

    def learn(self, error: BackendError, request: ModelRequest) -> bool:
        """Remember what `error` says is not taken of `request`. Whether there is something to ask without."""
        if error.reason == "context_too_small":
            known = self.window or sys.maxsize
            self.window = min(known, window_in_words(str(error)) or int(WITHIN * self.tokens(request)))
        part = error.refused
        if part is None and error.reason == "bad_request" and request.reply_schema is not None:
            part = "schema"  # it may have been the schema, in words that are not known
        match part:
            case None:
                return False
            case "tools" | "tool_choice":
                if request.tools:
                    self.remember(part, forced=request.must_call_tool)
                return bool(request.tools)
            case "call_parser":
                repeated, self._parser_failed = self._parser_failed, True
                if repeated and request.tools:
                    self.takes_tools = False
                return repeated and bool(request.tools)
            case "stream_options" | "system_role" | "alternation" | "schema":
                if part == "alternation" and part in request.left_out:
                    part = "system_role"  # to old templates a system message is one too many
                self.remember(part)
                return part not in request.left_out
            case _:
                assert_never(part)

    def recall(self, message: str) -> None:
        """Learn from what a server answered before the run was resumed, if it refused a part of a request."""
        part = refused_part(400, message)
        match part:
            case None | "call_parser":
                pass
            case _:
                self.remember(part, forced=part == "tool_choice")

    def remember(self, part: RefusedPart, *, forced: bool = False) -> None:
        """Ask without this part from now on. `forced`: the request said that a tool must be called."""
        match part:
            case "tool_choice" if forced:
                self.can_be_forced = False
            case "tools" | "tool_choice" | "call_parser":
                self.takes_tools = False
            case _:
                refused: frozenset[RefusedPart] = frozenset({part})
                self.left_out |= refused
