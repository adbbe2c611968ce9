"""Agent types of your own: what a package brings along to be a `type` of backend, by an entry point
`massgen_mcp.members`.

docs/acp.md has an example. `massgen check-adapter` plays it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.own_loop import Agent
from massgen_mcp.config.access.agent_types import Environ, Installable
from massgen_mcp.redaction import Redactor

C = TypeVar("C", bound=BaseModel)

Situation = Literal["answers", "calls", "refuses", "hangs", "auth", "rate_limited", "unreachable", "crashes"]
"""What an adapter can be asked to play: a reply, a call of the first tool that is offered, a refusal, a silence, and
how it fails.
"""


@dataclass(frozen=True, slots=True)
class Making:
    """The surroundings in which an agent is made."""

    environ: Environ
    redactor: Redactor
    private: Path | None = None
    """The directory for the files of an agent that is a program; it is deleted with the backend."""


@runtime_checkable
class MakesAgents(Protocol):
    """A type that makes its agents."""

    def make_agent(self, config: Any, making: Making) -> Backend | Agent:  # noqa: ANN401 - each has its own model
        """Make an agent: a model, or one with a loop of its own. Raises `BackendError`."""
        ...


@runtime_checkable
class Rehearsable(MakesAgents, Protocol):
    """A type whose agents can play every situation, without a network and a key."""

    def rehearse(self, situation: Situation) -> BaseModel | None:
        """Return the config of an agent that behaves so; None: it cannot be played."""
        ...


class Adapter(Installable[C]):
    """An agent type of another package.

    A subclass says `config` and `make`, and overrides what else there is to say. Without a subclass, all of it is given
    as arguments: functions of the same parameters.
    """

    def __init__(
        self,
        *,
        config: type[C] | None = None,
        make: Callable[[C, Environ], Backend | Agent] | None = None,
        rehearse: Callable[[Situation], C | None] | None = None,
        **further: Callable[..., Any] | str | int | None,
    ) -> None:
        given = {"config": config, "make": make, "rehearse": rehearse, **further}
        if unknown := given.keys() - _METHODS.keys():
            raise TypeError(f"an Adapter has no {', '.join(sorted(unknown))}")
        vars(self).update((_METHODS[key], value) for key, value in given.items() if value is not None)
        if not hasattr(self, "config"):
            raise TypeError("an Adapter needs `config`, the Pydantic model for its settings")

    def make(self, config: C, environ: Environ) -> Backend | Agent:
        """Make an agent: a model, or one with a loop of its own. Raises `BackendError`."""
        raise NotImplementedError

    def make_agent(self, config: C, making: Making) -> Backend | Agent:
        return self.make(config, making.environ)

    def rehearse(self, situation: Situation) -> C | None:
        """Return the config of an agent that behaves so, without a network and a key; None: it cannot be played."""


_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "named": "name_backend",
        "asked": "list_models",
        "lack": "find_lack",
        "vendor": "get_vendor",
        "destination": "get_destination",
        "unknown_price": "bound_unknown_price",
        "priced_as": "get_priced_model",
        "key_variables": "list_key_variables",
        "variables": "list_variables",
        "hosts": "list_hosts",
        "addresses": "list_addresses",
        "missing": "list_missing",
        "or_else": "describe_alternative",
        "check": "check_credentials",
        "keys": "list_keys",
        "refused": "list_refused_keys",
        "secrets": "list_secrets",
        "starts": "list_programs",
        "doctor": "describe_state",
        **{
            name: name
            for name in (
                *("config", "make", "rehearse"),
                *("misnamed", "listed_at", "limitable", "most_output", "concurrency"),
            )
        },
    }
)
"""Arguments of an `Adapter`, and what each takes the place of."""
