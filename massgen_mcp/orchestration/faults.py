"""What a failure in one agent's work means: that agent falls out, and nobody else is concerned.

A failure of the machine's storage is no agent's: it is passed on, and the run waits until there is room again. Must not
know where a run's log is kept.
"""

from collections.abc import Callable

from massgen_mcp.errors import BackendError, root_causes, storage_fault

Report = Callable[[BaseException], str]
"""Puts an error with its stack trace where the operator finds it; returns what an agent's record says about it."""


def name_only(error: BaseException) -> str:
    """What is said where no log is kept."""
    return f"{type(root_causes(error)[0]).__name__} in massgen-mcp"


def fault_of(error: Exception, report: Report) -> BackendError:
    """Why the agent in whose work `error` was raised falls out; `internal` where no model or provider is to blame.

    Raises `error` again if it is the storage's.
    """
    if storage_fault(error) is not None:
        raise error
    causes = root_causes(error)
    failures = [cause for cause in causes if isinstance(cause, BackendError)]
    return failures[0] if len(failures) == len(causes) else BackendError("internal", report(error))
