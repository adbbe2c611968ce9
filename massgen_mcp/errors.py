"""Every way this product refuses or fails, as types.

Knows nothing of the rest of the package. A caller reads `code`, a person reads the message; nobody parses the message.
"""

import errno
import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, cast

FailureReason = Literal[
    "auth",
    "quota_exhausted",
    "rate_limited",
    "model_not_found",
    "unreachable",
    "tools_unsupported",
    "context_too_small",
    "content_filter",
    "no_quorum",
    "no_answer",
    "timeout",
    "budget",
    "sandbox_denied",
    "config_invalid",
    "runner_lost",
    "internal",
]
"""Why a run failed. Closed: a new reason is a change of the contract."""

DropReason = Literal[
    "auth",
    "quota_exhausted",
    "rate_limited",
    "model_not_found",
    "unreachable",
    "tools_unsupported",
    "context_too_small",
    "content_filter",
    "provider_error",
    "bad_request",
    "bad_reply",
    "timeout",
    "no_action",
    "budget",
    "cut_off",
    "internal",
]
"""Why one agent was dropped from a run. Finer than `FailureReason`, because each has its own remedy. `cut_off`: the run
ended, or was decided, before it answered.
"""

ErrorCode = Literal[
    "invalid_arguments",
    "config_invalid",
    "config_not_found",
    "config_untrusted",
    "missing_key",
    "key_refused",
    "no_default_team",
    "unknown_run",
    "expired",
    "not_finished",
    "idempotency_conflict",
    "session_busy",
    "queue_full",
    "quota_reached",
    "invalid_action",
    "nesting_refused",
    "sandbox_denied",
    "run_damaged",
    "journal_newer",
    "disk_full",
    "store_unavailable",
    "unsafe_path",
    "run_not_completed",
    "internal",
]
"""What a refused call answers with; an MCP client sees it as `ERROR <code>: <message>`."""


FAULTS_OF_THE_MACHINE: frozenset[ErrorCode] = frozenset({"run_damaged", "disk_full", "store_unavailable", "internal"})
"""Faults of this machine or program: another question, config or key would not help."""


class MassgenError(Exception):
    """A refusal that the caller can act on.

    `code` is one of `ErrorCode`; the message says what was wrong and what to do next.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


class BadVariable(MassgenError):
    """A variable of the environment that says how to connect, and cannot be used.

    `what` is wrong with it, `remedy` what to do. `value` is shown: it must hold no password.
    """

    def __init__(self, variable: str, value: str, what: str, remedy: str) -> None:
        super().__init__("config_invalid", f"{variable}={value}: {what}; {remedy}")
        self.what = f"{variable}={value}: {what}"
        self.remedy = remedy


class Declined(MassgenError):
    """A person at the terminal answered no to a question, so nothing was done. The message is whole sentences."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid_action", message)


class JournalNewer(MassgenError):
    """A newer version of this program wrote a `part` of the run: it can be read, but not continued."""

    def __init__(self, part: str) -> None:
        super().__init__(
            "journal_newer",
            f"a newer massgen-mcp version wrote {part}, so the run was left unchanged; upgrade massgen-mcp to "
            "continue it",
        )


class RunNotCompleted(MassgenError):
    """A run that was executed, and did not come to a final answer.

    `state` is how it ended, `reason` why, if it failed. `result` is what `run` would have returned, with the best
    answer there was (or None) as `final_answer`.
    """

    def __init__(
        self,
        message: str,
        *,
        state: Literal["failed", "timed_out", "cancelled"],
        reason: FailureReason | None,
        result: dict[str, Any],
    ) -> None:
        super().__init__("run_not_completed", message)
        self.state: Literal["failed", "timed_out", "cancelled"] = state
        self.reason: FailureReason | None = reason
        self.result = result


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the operating system says when there is no room: a full disk, a quota, a limit on file sizes."""


def storage_error(what: str, error: OSError) -> MassgenError:
    """`what` failed on disk: disk_full or store_unavailable, with what to do about it."""
    message = f"{what}: {error.strerror or error}"
    match error.errno:
        case code if code in FULL:
            return MassgenError("disk_full", f"{message}; free some space (`massgen prune` removes old runs)")
        case errno.EMFILE | errno.ENFILE:
            return MassgenError("store_unavailable", f"{message}; close other programs, or raise the limit (ulimit -n)")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return MassgenError("store_unavailable", f"{message}; `massgen doctor` shows which permission is missing")
        case _:
            return MassgenError("store_unavailable", f"{message}; for details, run `massgen doctor`")


def root_causes(error: BaseException) -> tuple[BaseException, ...]:
    """What went wrong, without the groups that task groups wrap around it; never empty."""
    if not isinstance(error, BaseExceptionGroup):
        return (error,)
    group = cast("BaseExceptionGroup[BaseException]", error)
    return tuple(cause for inner in group.exceptions for cause in root_causes(inner))


def translate_system_error(error: OSError, store: str | None) -> MassgenError:
    """Map what the operating system refused to what a caller is told: a fault of the store only where the path is the
    store's, or where it names none and room or files ran out.
    """
    if error.errno == errno.ENOENT and error.filename is None and not _has_directory():
        return MassgenError("invalid_action", DIRECTORY_GONE)
    path = error.filename
    if not isinstance(path, str) or not path.startswith("/"):
        if error.errno in _STORAGE:
            return storage_error("the operating system refused the operation", error)
        return MassgenError("internal", f"the operating system refused the operation: {error.strerror or error}")
    if store is not None and _is_below(path, store):
        return storage_error("the operating system refused the operation", error)
    message = f"{path}: {error.strerror or error}; check that it exists and that you have permission to use it"
    if error.errno in FULL:
        return MassgenError("disk_full", message)
    return MassgenError("invalid_action", message)


DIRECTORY_GONE = "the working directory was deleted; change to an existing directory and start again"


def _has_directory() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _is_below(path: str, store: str) -> bool:
    return os.path.commonpath((os.path.realpath(path), os.path.realpath(store))) == os.path.realpath(store)


_STORAGE = FULL | {errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE}


def storage_fault(error: BaseException) -> MassgenError | None:
    """The failure of the machine's storage in what went wrong, groups of errors included; None if there is none.

    What the storage refused may be tried again later; any other failure is one of the run itself.
    """
    match error:
        case BaseExceptionGroup():
            faults = map(storage_fault, error.exceptions)
            return next((fault for fault in faults if fault is not None), None)
        case MassgenError() if error.code in ("disk_full", "store_unavailable"):
            return error
        case OSError() if error.errno in _STORAGE and not isinstance(error, ConnectionError):
            return storage_error("the storage refused", error)
        case _:
            return None


RefusedPart = Literal["tools", "tool_choice", "call_parser", "stream_options", "system_role", "alternation", "schema"]
"""What a server may refuse of a request: tools at all, that one must be called, the calls that its own parser cannot
read, usage in a stream, a system message, two messages of one role in a row, a schema for the reply."""


LimitKey = Literal["max_steps_per_round", "repeated_call", "max_usd", "max_tokens", "max_calls"]
"""Which limit an agent met: a key of the config, or that the same call failed too often, which no key changes."""


InBetween = Literal["variable", "proxy", "certificate", "page"]
"""A variable of the environment that cannot be used, a proxy that does not let a request through, a certificate that is
not trusted here, a web page in place of the server's reply."""


@dataclass(eq=False, repr=False)
class BackendError(Exception):
    """One model call failed, already translated from whatever the provider's SDK raised.

    `retryable` says whether the same request may succeed later; `retry_after` is the provider's wish in seconds;
    `refused` is the part of the request without which it may succeed; `limit` the limit of the config that was met;
    `in_between` what stands between this program and the server, and is in the way.
    """

    reason: DropReason
    message: str
    _: KW_ONLY
    retryable: bool = False
    retry_after: float | None = None
    refused: RefusedPart | None = None
    limit: LimitKey | None = None
    in_between: InBetween | None = None

    def __str__(self) -> str:
        return self.message
