"""The error boundary of both commands: whatever a verb raises becomes words on standard error and an exit code."""

import gc
import os
import traceback
from collections.abc import Callable

from massgen_mcp.cli.output import print_error
from massgen_mcp.cli.process import raise_on_interrupt
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.errors import Declined, MassgenError, root_causes, translate_system_error
from massgen_mcp.home import find_store_path
from massgen_mcp.redaction import redacted_output


def guarded(
    work: Callable[[], int], *, code_of: Callable[[MassgenError], int], interrupted: int, debug: bool = False
) -> int:
    """The exit code of `work`. `code_of` gives that of an error, `interrupted` is that of Ctrl-C. No key is printed."""
    with redacted_output(redactor_for(os.environ)):
        try:
            raise_on_interrupt()
            return work()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the boundary of the process
            cause = root_causes(error)[0]
            if isinstance(cause, KeyboardInterrupt):
                return interrupted
            if debug:
                print_error("".join(traceback.format_exception(error)))
            if not isinstance(cause, MassgenError):
                cause = _translate(cause)
            if isinstance(cause, Declined):
                print_error(str(cause))
            else:
                print_error(f"ERROR {cause.code}: {cause}")
            return code_of(cause)
        finally:
            gc.enable()  # a program of somebody else may have called the command


def _translate(cause: BaseException) -> MassgenError:
    if isinstance(cause, OSError):
        error = translate_system_error(cause, find_store_path(os.environ))
        if error.code != "internal":
            return error
    return MassgenError("internal", f"{type(cause).__name__}: {cause}")
