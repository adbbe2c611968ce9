"""The one place where failures of SDKs and connections become `BackendError`s.

Both SDKs raise errors of the same shape but of unrelated classes, and their broken connections carry the `httpx2` error
as cause; so this looks at shapes and causes and needs to import neither.
"""

import json
import math
import os
import re
import ssl
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol, assert_never, cast, runtime_checkable
from urllib.parse import urlsplit

import anyio
import httpx2

from massgen_mcp.backends.abilities import reason_in_words, refused_part
from massgen_mcp.backends.base import StopPart
from massgen_mcp.backends.ends import End, stop_of
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.wire_values import clean, member, parse_leniently
from massgen_mcp.certificates import find_named
from massgen_mcp.config.access.connections import ProxySetting, find_proxy, name_page_senders
from massgen_mcp.config.providers.addresses import host_in
from massgen_mcp.errors import BackendError, BadVariable, DropReason, InBetween, RefusedPart

MAX_MESSAGE = 500
MAY_PASS = frozenset({408, 409, 425})
"""Statuses after which a call is tried again, besides 429 and those from 500 on."""
MAX_END = 100
MAX_DEPTH = 5
"""Of an error's body, as far as it is read ..."""
MAX_LISTED = 5
"""... and so many members of each list in it."""

_Verdict = tuple[DropReason, bool]
"""The reason, and whether the same request may succeed later."""

_BY_CODE: dict[str, _Verdict] = {
    "authentication_error": ("auth", False),
    "invalid_api_key": ("auth", False),
    "API_KEY_INVALID": ("auth", False),
    "permission_error": ("auth", False),
    "insufficient_quota": ("quota_exhausted", False),
    "billing_error": ("quota_exhausted", False),
    "billing_hard_limit_reached": ("quota_exhausted", False),
    "contract_spend_limit_reached": ("quota_exhausted", False),
    "enforced_spend_limit_reached": ("quota_exhausted", False),
    "rate_limit_error": ("rate_limited", True),
    "rate_limit_exceeded": ("rate_limited", True),
    "not_found_error": ("model_not_found", False),
    "model_not_found": ("model_not_found", False),
    "invalid_request_error": ("bad_request", False),
    "invalid_prompt": ("bad_request", False),
    "context_length_exceeded": ("context_too_small", False),
    "exceed_context_size_error": ("context_too_small", False),
    "request_too_large": ("bad_request", False),
    "bio_policy": ("content_filter", False),
    "content_filter": ("content_filter", False),
    "content_policy_violation": ("content_filter", False),
    "data_residency_mismatch": ("bad_request", False),
    "misalignment_policy_violation": ("content_filter", False),
}


_NO_CREDIT = re.compile(
    r"credit balance is too low|insufficient (?:credits?|balance|funds)|payment required",
    re.IGNORECASE,
)
_FOR_TODAY = re.compile(r"per[ _-]?day|\bdaily\b|\b[TR]PD\b|\blimit: 0\b|UserByModelByDay", re.IGNORECASE)
"""What a quota is called that a wait of minutes does not restore."""

_WAYS_OUT: dict[DropReason, str] = {
    "quota_exhausted": "; add credit, wait until the quota resets, or use another model",
    "unreachable": "; check the network and base_url, and whether the server is running",
    "rate_limited": "; try again later, or lower `concurrency` or `requests_per_minute` under `limits`",
    "context_too_small": (
        "; start the server with a larger context (OLLAMA_CONTEXT_LENGTH, llama.cpp --ctx-size, vLLM "
        "--max-model-len, SGLang --context-length, LM Studio's slider; or context_length with type ollama), or use "
        "another model or fewer agents"
    ),
    "content_filter": "; rephrase the question, or use another model",
    "tools_unsupported": "; use another model, or enable tool calls in the model server",
    "timeout": "; raise call_timeout_seconds in timeout_settings",
}


@runtime_checkable
class _ApiError(Protocol):
    """What `APIError` of both SDKs has."""

    message: str
    body: object


@runtime_checkable
class _StatusError(Protocol):
    """What `APIStatusError` of both SDKs has besides."""

    status_code: int
    response: httpx2.Response


@contextmanager
def translated(endpoint: Endpoint) -> Generator[None]:
    """Whatever fails inside is raised as a `BackendError`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the seam: nothing of an SDK passes it
        # Without the cause: SDK errors hold the request, and with it the key.
        raise translate(error, endpoint) from None


def translate(error: Exception, endpoint: Endpoint) -> BackendError:
    """What `error`, raised while `endpoint` was asked, means for the agent."""
    chain = list(_chain(error))
    for cause in chain:
        if isinstance(cause, BackendError):
            return cause
        if isinstance(cause, BadVariable):
            return _report_in_between("variable", f"{endpoint.base_url} cannot be asked: {cause}", "", endpoint)
        if isinstance(cause, _StatusError) and isinstance(cause, _ApiError):
            return _of_status(cause.status_code, cause.body, cause.message, cause.response.headers, endpoint)
    for cause in chain:
        if (blocked := _find_in_between(cause, chain[-1], endpoint)) is not None:
            return blocked
        if (verdict := _of_connection(cause)) is not None:
            reason, retryable, what = verdict
            message = f"{endpoint.base_url} {what}: {_error_text(chain[-1])}"
            return failure(reason, message, endpoint, retryable=retryable)
    if isinstance(error, _ApiError):
        return of_event(error.body, error.message, endpoint)
    if isinstance(error, (ValueError, TypeError, LookupError, AttributeError, RecursionError)):
        message = f"{endpoint.base_url} sent a reply that doesn't match its API: {_error_text(error)}"
        return failure("bad_reply", message, endpoint)
    return failure("provider_error", f"{endpoint.base_url} failed: {_error_text(error)}", endpoint)


def of_event(body: object, message: str, endpoint: Endpoint) -> BackendError:
    """An error told inside a stream, by its code or type; an unknown one may pass, as most of them do."""
    detail = _describe_cause(body) or message
    refused = refused_part(400, detail)
    reason, retryable = _by_code(body) or ("provider_error", True)
    if in_words := reason_in_words(detail):
        reason, retryable = in_words, False
    elif refused is not None:
        reason, retryable = _judge_refusal(refused)
    elif spent := _find_exhausted_quota(body, detail):
        reason, retryable = spent
    error = failure(reason, f"{endpoint.base_url} broke off: {detail}", endpoint, retryable=retryable)
    error.refused = refused
    return error


def cut_off(endpoint: Endpoint) -> BackendError:
    """A stream ended in order but without the model's own end."""
    message = f"{endpoint.base_url} ended the reply early"
    return failure("provider_error", message, endpoint, retryable=True)


def report_empty_reply(usage: object, endpoint: Endpoint) -> BackendError:
    """A stream ended in order, and there was nothing in it."""
    tokens = member(usage, "prompt_tokens")
    read = ""
    if isinstance(tokens, int) and tokens:
        read = f" after reading {tokens:,} tokens"
    message = (
        f"{endpoint.base_url} sent an empty reply{read}; the prompt may be longer than the model's context: "
        "start the server with a larger context, or use another model"
    )
    return failure("provider_error", message, endpoint, retryable=True)


def stop_part(
    ends: Mapping[str, End],
    name: str,
    reason: object,
    calls: Collection[str],
    endpoint: Endpoint,
    *,
    comment: str = "",
) -> StopPart:
    """Why a reply ended: for the `reason` that its API tells as `name`, which is one of these `ends`. `calls`: the
    arguments of its calls; `comment`: what the server says beside a reason.

    Raises `BackendError` if the model did not come to an end.
    """
    if not reason:
        raise cut_off(endpoint)
    stop = stop_of(ends, reason, calls)
    if stop is None:
        raise broken_off(f"{name} {reason}{comment}", endpoint)
    return StopPart(stop, provider_word=str(reason))


def broken_off(end: str, endpoint: Endpoint) -> BackendError:
    """A stream ended with a reason that is no end of a whole reply; `end` says which."""
    return failure("provider_error", f"{endpoint.base_url} broke off: {end[:MAX_END]}", endpoint, retryable=True)


def failure(reason: DropReason, message: str, endpoint: Endpoint, *, retryable: bool = False) -> BackendError:
    """The message ends with what to change, where something can be changed."""
    way_out = _about_key(endpoint) if reason == "auth" else _WAYS_OUT.get(reason, "")
    if reason == "unreachable" and endpoint.start:
        way_out = f"; start the server with `{endpoint.start}`, or correct base_url"
    return BackendError(reason, _presentable(message, endpoint, way_out), retryable=retryable)


def _about_key(endpoint: Endpoint) -> str:
    if endpoint.key_variable is None:
        return "; massgen sent no key: set api_key_env to the name of the variable that holds the key"
    return f"; set {endpoint.key_variable} to a valid key"


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The provider's wish in seconds from `now`: `retry-after-ms`, or `retry-after` as seconds or an HTTP date. None if
    there is none, as where that time is over.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    return seconds if seconds > 0 else None


def _of_status(status: int, body: object, message: str, headers: Mapping[str, str], endpoint: Endpoint) -> BackendError:
    if status < 300:
        return of_event(body, message, endpoint)
    if status == _LOGIN_WANTED:
        return _report_login(f"{endpoint.base_url} cannot be reached", _find_endpoint_proxy(endpoint), endpoint)
    if _is_page(headers) and (
        status == _FORBIDDEN or (status in _OF_GATEWAYS and _find_endpoint_proxy(endpoint) is not None)
    ):
        return report_page(status, endpoint)
    detail = _describe_cause(body) or message
    refused = refused_part(status, detail)
    reason, retryable = _judge_refusal(refused) if refused else _by_status(status, body)
    if status in _ABOUT_QUOTA and not refused and (spent := _find_exhausted_quota(body, detail)):
        reason, retryable = spent
    if status >= 400 and reason in ("bad_request", "provider_error") and (in_words := reason_in_words(detail)):
        reason, retryable = in_words, False
    text = f"{endpoint.base_url} answered {status}: {detail}"
    if status < 400:
        text = f"{endpoint.base_url} answered {status}; massgen doesn't follow redirects, so correct base_url"
    elif reason == "model_not_found":
        text = (
            f"{endpoint.base_url} answered {status}; it doesn't have the model {endpoint.model!r}, or "
            f"base_url is wrong: {detail}"
        )
        if endpoint.base_url and not urlsplit(endpoint.base_url).path.strip("/"):
            text = f"{text}; most servers offer their API at {endpoint.base_url.rstrip('/')}/v1"
    translated_error = failure(reason, text, endpoint, retryable=retryable)
    seconds = retry_after(headers, datetime.now(UTC))
    translated_error.retry_after = seconds if seconds is not None else _retry_delay(body)
    translated_error.refused = refused
    return translated_error


_FORBIDDEN = 403
_OF_GATEWAYS = frozenset({502, 503, 504})


def _is_page(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").lower().startswith("text/html")


_ABOUT_QUOTA = frozenset({400, 402, 403, 429})


def _judge_refusal(part: RefusedPart) -> _Verdict:
    """Return what it means that a server refuses this part of a request, if there is no asking without it."""
    match part:
        case "tools" | "tool_choice":
            return "tools_unsupported", False
        case "call_parser":
            return "provider_error", True
        case "stream_options" | "system_role" | "alternation" | "schema":
            return "bad_request", False
        case _:
            assert_never(part)


def _find_exhausted_quota(body: object, detail: str) -> _Verdict | None:
    """Return that nothing more is to be had today, where a server says so in words or by the name of a quota."""
    said = f"{detail} {json.dumps(body, default=str)[:4000]}"
    if _NO_CREDIT.search(said) or _FOR_TODAY.search(said):
        return "quota_exhausted", False
    return None


def _by_status(status: int, body: object) -> _Verdict:
    by_code = _by_code(body)
    if status == 402 or (by_code is not None and by_code[0] == "quota_exhausted"):
        return "quota_exhausted", False
    if status in (401, 403):
        return by_code if by_code is not None and by_code[0] in ("bad_request", "content_filter") else ("auth", False)
    if status == 404:
        return "model_not_found", False
    if status == 429:
        return "rate_limited", True
    if status in MAY_PASS or status >= 500:
        return "provider_error", True
    return (by_code or ("bad_request", False)) if status >= 400 else ("provider_error", False)


def _by_code(body: object) -> _Verdict | None:
    for where in (member(_unwrapped(body), "error"), _unwrapped(body)):
        if member(where, "metadata", "flagged_input") is not None:
            return "content_filter", False  # OpenRouter's moderation, which answers like a refused key
        details = [member(detail, name) for detail in _details(where) for name in ("error_code", "reason")]
        for code in (*details, member(where, "code"), member(where, "type")):
            if isinstance(code, str) and code in _BY_CODE:
                return _BY_CODE[code]
            if isinstance(code, int) and 400 <= code < 600:
                return _by_status(code, None)
    return None


def _retry_delay(body: object) -> float | None:
    """Google's wish in seconds, which it puts into the body: `"retryDelay": "34.5s"`."""
    for where in (member(_unwrapped(body), "error"), _unwrapped(body)):
        for detail in _details(where):
            delay = member(detail, "retryDelay")
            if isinstance(delay, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9})?s", delay):
                return float(delay[:-1]) or None
    return None


def _details(error: object) -> Iterator[object]:
    """An error's details: one object with Anthropic, a list of them with Google."""
    details = member(error, "details")
    yield from cast("list[object]", details) if isinstance(details, list) else (details,)


def _unwrapped(body: object) -> object:
    """Google's OpenAI-compatible endpoint puts its errors into a list of one."""
    if not isinstance(body, list):
        return body
    return next(iter(cast("list[object]", body)), None)


def _find_endpoint_proxy(endpoint: Endpoint) -> ProxySetting | None:
    return find_proxy(endpoint.base_url or "https://", own_server=endpoint.is_own_server)


def _find_in_between(cause: BaseException, last: BaseException, endpoint: Endpoint) -> BackendError | None:
    """Return what kept a request from its server, where that is a proxy or a certificate; None where it is neither."""
    proxy = _find_endpoint_proxy(endpoint)
    if isinstance(cause, httpx2.ConnectError | ssl.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(cause):
        message = f"{endpoint.base_url} presented a certificate that this machine doesn't trust: {_error_text(last)}"
        return _report_in_between("certificate", message, _WAY_OUT_OF_CERTIFICATE + _describe_certificates(), endpoint)
    if proxy is None:
        return None
    if isinstance(cause, httpx2.ProxyError) and str(cause).startswith(f"{_LOGIN_WANTED} "):
        return _report_login(f"{endpoint.base_url} cannot be reached", proxy, endpoint)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        message = f"{endpoint.base_url} cannot be reached through the proxy set by {proxy}: {_error_text(last)}"
        return _report_in_between("proxy", message, _describe_proxy_remedy(endpoint), endpoint, retryable=True)
    return None


_LOGIN_WANTED = 407
_WAY_OUT_OF_CERTIFICATE = (
    "; if your network replaces certificates, set SSL_CERT_FILE to a PEM file with the network's own certificates"
)


def _describe_certificates() -> str:
    named = find_named()
    return f" (currently {named}={os.environ[named]})" if named else ""


def _describe_proxy_remedy(endpoint: Endpoint) -> str:
    host = host_in(endpoint.base_url or "")
    return f"; check that the proxy is running and allowed to reach {host}, or add {host} to NO_PROXY to bypass it"


def _report_login(what: str, proxy: ProxySetting | None, endpoint: Endpoint) -> BackendError:
    if proxy is None:
        message, way_out = (
            f"{what}: a proxy along the way requires authentication (407)",
            "; log in to your network, or set HTTPS_PROXY",
        )
    else:
        message = f"{what}: the proxy set by {proxy} requires valid credentials (407)"
        way_out = f"; set {proxy.variable} to http://USER:PASSWORD@HOST:PORT"
    return _report_in_between("proxy", message, way_out, endpoint)


def _report_in_between(
    what: InBetween, message: str, way_out: str, endpoint: Endpoint, *, retryable: bool = False
) -> BackendError:
    text = _presentable(message, endpoint, way_out)
    return BackendError("unreachable", text, retryable=retryable, in_between=what)


def report_page(status: int, endpoint: Endpoint) -> BackendError:
    """A web page came in place of the server's own refusal."""
    sender = name_page_senders(_find_endpoint_proxy(endpoint))
    message = f"{endpoint.base_url} answered {status} with a web page, possibly from {sender}"
    way_out = "; open the address in a browser, and check base_url"
    fault = _report_in_between("page", message, way_out, endpoint, retryable=status != _FORBIDDEN)
    if status in _OF_GATEWAYS:
        fault.reason = "provider_error"
    return fault


def _of_connection(cause: BaseException) -> tuple[DropReason, bool, str] | None:
    """Subclasses before their parents: a connect timeout is a timeout and a transport error, too."""
    match cause:
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError() | ssl.SSLError():
            return "unreachable", True, "cannot be reached"
        case httpx2.TimeoutException():
            return "timeout", False, "sent no data for too long"
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return "unreachable", False, "isn't a valid address"
        case httpx2.DecodingError():
            return "provider_error", True, "sent damaged compressed data"
        case httpx2.TransportError() | anyio.EndOfStream() | OSError():
            return "provider_error", True, "lost the connection"
        case _:
            return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


_DETAIL = (
    "message",
    "error",
    "detail",
    "msg",
    "errors",
    "error_message",
    "error_msg",
    "title",
    "reason",
    "description",
)
"""Where servers put what they say, best first."""


def _describe_cause(body: object) -> str:
    """Return what an error's body says, with what OpenRouter quotes of the provider behind it."""
    detail = _detail(body)
    quoted = member(_unwrapped(body), "error", "metadata", "raw") or member(_unwrapped(body), "metadata", "raw")
    if isinstance(quoted, str):
        quoted = parse_leniently(quoted)
    behind = _detail(quoted)
    if not behind or behind in detail:
        return detail
    return f"{detail}: {behind}"


def _detail(body: object, depth: int = 0) -> str:
    """What an error's body says, whatever its shape; "" where it says nothing."""
    match body:
        case str():
            return "" if body.lstrip().startswith("<") else body.strip()  # a page is nothing to quote
        case list() if depth < MAX_DEPTH:
            texts = (_detail(item, depth + 1) for item in cast("list[object]", body)[:MAX_LISTED])
            return "; ".join(filter(None, texts))
        case Mapping() if depth < MAX_DEPTH:
            fields = cast("Mapping[str, object]", body)
            detail = next(filter(None, (_detail(fields.get(name), depth + 1) for name in _DETAIL)), "")
            return detail or ("" if depth or not fields else json.dumps(fields)[:MAX_MESSAGE])
        case _:
            return ""


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _presentable(message: str, endpoint: Endpoint, way_out: str = "") -> str:
    text = endpoint.redactor.text(clean(message))[: MAX_MESSAGE - len(way_out)]
    return f"{text}{way_out}"
