"""What is kept for one connection of a client. The one place that reaches for it: the SDK hands it to no handler."""

from collections.abc import Callable
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext


def state_of(ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """Lasts as long as the connection; of one request only, where the protocol knows no connections."""
    return _connection(ctx).state


def at_end(ctx: ServerRequestContext[Any, Any], callback: Callable[[], None]) -> None:
    """Call it when the connection is closed."""
    _connection(ctx).exit_stack.callback(callback)


def _connection(ctx: ServerRequestContext[Any, Any]) -> Connection:
    return ctx.session._connection  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - see above
