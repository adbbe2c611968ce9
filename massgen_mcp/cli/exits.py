"""The exit codes of our commands. A contract: programs decide by them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # the codes alone must cost nothing to import
    from massgen_mcp.errors import MassgenError
    from massgen_mcp.run_state.state import RunState
    from massgen_mcp.runs.view.run_view import RunView

EXIT_OK = 0

# -- massgen ----------------------------------------------------------------------------------------------------------

EXIT_CONFIG = 1
EXIT_EXECUTION = 2
EXIT_TIMEOUT = 3
EXIT_INTERRUPTED = 4
EXIT_FINDINGS = 1
"""Of `review`, which has 2 for whatever keeps it from saying so."""


def exit_of_foreground(run: "RunState", *, refused: bool = False) -> int:
    """Return the code for a run that this process took to its end. `refused`: its changes could not be applied."""
    match run.state:
        case "completed":
            return EXIT_OK if run.work_done.succeeded and not refused else EXIT_EXECUTION
        case "timed_out":
            return EXIT_TIMEOUT
        case "cancelled":
            return EXIT_INTERRUPTED
        case _:
            return EXIT_EXECUTION


# -- massgen-mcp ------------------------------------------------------------------------------------------------------

EXIT_FAILED = 1
"""The run was no success (see `WorkDone.failure`); a check failed; a request was refused."""
EXIT_NOT_ENDED = 2
EXIT_UNKNOWN = 3
EXIT_INPUT_NEEDED = 4
"""The run does not go on before somebody answers it, or resumes it with its keys."""
EXIT_BROKEN = 5
"""The run store, or this program, failed."""
EXIT_USAGE = 64
EXIT_STOPPED = 130
"""Ctrl-C."""


def exit_of_run(view: "RunView") -> int:
    if view.ended:
        return EXIT_OK if view.snapshot.work_done.succeeded else EXIT_FAILED
    return EXIT_INPUT_NEEDED if view.stands_still else EXIT_NOT_ENDED


def exit_of_error(error: "MassgenError") -> int:
    match error.code:
        case "unknown_run" | "expired":
            return EXIT_UNKNOWN
        case "not_finished":
            return EXIT_NOT_ENDED
        case "run_damaged" | "disk_full" | "store_unavailable" | "internal":
            return EXIT_BROKEN
        case _:
            return EXIT_FAILED


# -- of each kind of verb ---------------------------------------------------------------------------------------------


class ExitCodes(NamedTuple):
    """The exit codes of a kind of verb, beside those of its own outcomes."""

    usage: int
    """The command line is wrong."""
    interrupted: int
    """Ctrl-C."""
    of_error: Callable[["MassgenError"], int]


def exit_of_question_error(error: "MassgenError") -> int:
    from massgen_mcp.errors import FAULTS_OF_THE_MACHINE

    return EXIT_EXECUTION if error.code in FAULTS_OF_THE_MACHINE else EXIT_CONFIG


def exit_of_review_error(_: "MassgenError") -> int:
    """Any error leaves the review unclear."""
    return EXIT_EXECUTION


CODES_OF_QUESTION = ExitCodes(EXIT_CONFIG, EXIT_INTERRUPTED, exit_of_question_error)
CODES_OF_REVIEW = ExitCodes(EXIT_EXECUTION, EXIT_INTERRUPTED, exit_of_review_error)
CODES_OF_VERBS = ExitCodes(EXIT_USAGE, EXIT_STOPPED, exit_of_error)
"""A wrong command line has a code of its own, because 2 is what `wait` says of a run that continues."""


class UsageError(Exception):
    """A wrong command line, in words, and the exit code that it has. `means_verb`: no question was meant."""

    def __init__(self, message: str, exit_code: int, *, means_verb: bool = False) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.means_verb = means_verb
