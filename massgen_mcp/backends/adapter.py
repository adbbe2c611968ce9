"""Members of your own: what a package brings along to be a `type` of backend, by an entry point `massgen_mcp.members`.

docs/acp.md has an example. `massgen check-adapter` plays it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.own_loop import Agent
from massgen_mcp.config.access.members import Installable

C = TypeVar("C", bound=BaseModel)

Situation = Literal["answers", "calls", "refuses", "hangs", "auth", "rate_limited", "unreachable", "crashes"]
"""What an adapter can be asked to play: a reply, a call of the first tool that is offered, a refusal, a silence, and
how it fails.
"""


@dataclass(frozen=True, kw_only=True)
class Adapter(Installable[C]):
    """A kind of member, and how one is made."""

    make: Callable[[C, Mapping[str, str]], Backend | Agent]
    """One for each agent, with the environment: a model, or an agent with a loop of its own. Raises `BackendError`."""
    rehearse: Callable[[Situation], C | None] = lambda _situation: None
    """The config of one that behaves so, without a network and a key; None: it cannot be played."""
