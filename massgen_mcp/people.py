"""The people who share one server: by which token each is known, how much each may start, and with whose keys.

The server's transport sets the current user of a request (`set_current_user`), and gives `current_user` to the run
service, which hands the user to the store: it shows each person their own runs alone. Where no people are named, every
request may see everything, as on a machine of one's own.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from massgen_mcp.config.models.common import VARIABLE_PATTERN
from massgen_mcp.config.yaml_reader import read_yaml
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import PEOPLE_VARIABLE

ANYBODY = "*"
"""Stands for every subject of the authorization server that is not named."""
OPERATOR = "operator"
"""How the owner of the server is called in words; as an owner of runs the name is empty."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Variable = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]


class Person(BaseModel):
    """What is said of one. A quota that is left out is none; days and months are those of UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)

    tokens: tuple[Digest, ...] = ()
    """SHA-256 of each of his bearer tokens, in hexadecimal digits."""
    subject: str | None = None
    """Who he is at the authorization server (`sub`)."""
    runs_per_day: int | None = Field(default=None, ge=0)
    runs_per_month: int | None = Field(default=None, ge=0)
    usd_per_day: float | None = Field(default=None, ge=0)
    usd_per_month: float | None = Field(default=None, ge=0)
    pool: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")] | None = None
    """Whose workers execute his runs, with their keys."""
    keys: dict[Variable, Variable] = Field(default_factory=dict[Variable, Variable])
    """By the variable of a key: the variable of the server in which his own is."""


_PEOPLE = TypeAdapter(
    dict[Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._@+-]{0,99})$")], Person]
)


@dataclass(frozen=True, slots=True)
class User:
    """A user of the server. `name`: the owner of their runs; `environ`: their part of the environment."""

    name: str
    person: Person = field(default_factory=Person)
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_guest(self) -> bool:
        """Whether the directories of this machine are none of the user's business."""
        return bool(self.name)


ANONYMOUS = User("nobody:")
"""Owns no runs, and never will: no name has a colon at its end."""
_current: ContextVar[User | None] = ContextVar("user", default=None)


def current_user() -> User | None:
    """Return the user of the request that is being served; None where no people are named, and for the operator's own
    commands.
    """
    return _current.get()


@contextmanager
def set_current_user(user: User | None) -> Generator[None]:
    """Serve this user in the block, and in tasks that begin there."""
    before = _current.set(user)
    try:
        yield
    finally:
        _current.reset(before)


class People:
    """Everybody who is named in a file, and what is for each of them of one environment."""

    def __init__(self, named: Mapping[str, Person], environ: Mapping[str, str]) -> None:
        """Raises `MassgenError` invalid_arguments for a token or subject of two, and a variable that is not set."""
        self.variables = frozenset(variable for person in named.values() for variable in person.keys.values())
        self._environ = {name: value for name, value in environ.items() if name not in self.variables}
        self._of_token: dict[str, User] = {}
        self._of_subject: dict[str, User] = {}
        self._anybody: User | None = None
        self.operator = User("", environ=self._environ)
        for name, person in named.items():
            if missing := sorted(variable for variable in person.keys.values() if variable not in environ):
                raise _wrong(f"{name}: {missing[0]} is not set")
            if name == OPERATOR:
                raise _wrong(f"the name '{OPERATOR}' is reserved for the owner of --token-file")
            own = {key: environ[variable] for key, variable in person.keys.items()}
            one = User(name, person, {**self._environ, **own})
            self._anybody = one if name == ANYBODY else self._anybody
            for by, known in ((person.tokens, self._of_token), (filter(None, [person.subject]), self._of_subject)):
                for known_by in by:
                    if known.setdefault(known_by, one) is not one:
                        raise _wrong(f"{known[known_by].name} and {name} have the same token or subject")

    @classmethod
    def of(cls, given: str, environ: Mapping[str, str]) -> "People":
        """Those of this file, or of this text, which begins with a brace. Raises as `People`, and for what cannot be
        read.
        """
        try:
            text = given if given.startswith("{") else Path(given).read_text(encoding="utf-8")
            return cls(_PEOPLE.validate_python(read_yaml(text, PEOPLE_VARIABLE).data), environ)
        except (OSError, UnicodeDecodeError) as error:
            raise _wrong("cannot read the file") from error
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            raise _wrong(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error

    def of_token(self, token: str) -> User | None:
        return self._of_token.get(sha256(token.encode("utf-8", "surrogateescape")).hexdigest())

    def of_subject(self, subject: str) -> User | None:
        """A subject that is not named owns its runs under a name that no file can give."""
        if subject in self._of_subject or self._anybody is None or not subject.isprintable():
            return self._of_subject.get(subject)
        return replace(self._anybody, name=f"sub:{subject}")


def _wrong(what: str) -> MassgenError:
    return MassgenError("invalid_arguments", f"{PEOPLE_VARIABLE} (--people): {what}")
