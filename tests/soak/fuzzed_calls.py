"""Calls of tools that nobody would write: drawn from the published schemas, and from beyond them, by a seed.

Must not know what the tools do; only which runs and files there are to be named.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

Json = dict[str, Any]

SHORT_WAIT = 0.05
"""What a call on a run that goes on may wait, in seconds; thousands of such calls are made."""
WAITS = {"wait_run": ("timeout_seconds", 45.0), "start_run": ("wait_seconds", 0.0)}
"""The argument by which a tool waits, and its default."""
STRANGE_TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\n",
    "line\r\nbreak",
    "\x1b[31mred\x1b[0m",
    "\x7f",
    "\u202eright to left",
    "\u200b",
    "\ufeff",
    "\ufffe",
    "e\u0301\u0301\u0301",
    "\N{PILE OF POO}" * 3,
    "\U0010ffff",
    "null",
    "None",
    "NaN",
    "-1",
    "0",
    "true",
    "[]",
    '["a"]',
    "{}",
    "'; DROP TABLE runs; --",
    "%s%n{0}{x}",
    "$(id)",
    "..",
    "../../etc/passwd",
    "/",
    "//",
    "~",
    "~nosuch/x",
    "~root/x",
    "/etc/hostname",
    "/dev/null",
    "/nowhere/at/all",
    "/" + "a" * 256,
    "/" + "a" * 5_000,
    "/" + "a/" * 2_500,
    "file:///etc/hostname",
    "@examples/",
    "@examples/../scripted",
    "run-",
    "x" * 201,
    "y" * 5_000,
    "\x01\x02",
    "/etc/a\x07b",
    "/etc/\x9bhostname",
)
HALVES = ("\ud800", "a\udfffb", "\udc00\ud800", "/etc/\ud83d")
"""Halves of surrogate pairs: JSON has them, text has not."""
STRANGE_NUMBERS: tuple[float, ...] = (
    0,
    -1,
    1,
    0.5,
    -0.0,
    5e-324,
    1e308,
    -1e308,
    2**31,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    10**400,
)
STRANGE_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [None], [[]], {"a": 1}, ["a", 1], [1.5])
UNKNOWN_TOOLS = ("start_runs", "", "get-status", "../start_run", "\0", "t" * 5_000, "__init__", "call_tool")
UNKNOWN_ARGUMENTS = ("confg", "runid", "", "self", "context", "__class__", "\0", "k" * 5_000, "additionalProperties")


@dataclass(frozen=True)
class Known:
    """What calls may name. `runs`: ids by how they stand; one may be replaced."""

    runs: dict[str, str]
    configs: list[str]
    paths: list[str]

    @property
    def fitting(self) -> Mapping[str, list[Any]]:
        """Values that arguments of these names may well have."""
        return {
            "run_id": list(self.runs.values()),
            "config": self.configs,
            "models": [["scripted/x"], ["scripted/a", "scripted/b"], ["openai/gpt-5"], ["nobody/x"], ["scripted/\n"]],
            "context_paths": [[path] for path in self.paths] + [self.paths * 7],
            "agent": ["agent_a", "agent_b", "agent_z", "bo"],
            "session_id": ["talk", "other-talk"],
            "idempotency_key": ["one", "two", "three"],
            "question": ["Why?", "Which of the two, and for which reason?"],
            "name": ["scripted", "two_providers", "nothing"],
            "value": [0.5, 50.0, 1_000_000.0],
            "message": ["Mind the budget."],
            "cursor": [1, 5, 100],
            "max_seconds": [5.0],
        }


@dataclass(frozen=True)
class Call:
    """`waits`: the seconds that it asks to wait, at most."""

    tool: str
    arguments: Json
    waits: float


class Calls:
    """An endless series of calls; the same for the same seed and schemas, but for the ids of runs."""

    def __init__(self, seed: int, schemas: Mapping[str, Json], known: Known) -> None:
        self._random = random.Random(seed)
        self._schemas = schemas
        self._known = known

    def draw(self) -> Call:
        draw = self._random
        if draw.random() < 0.02:
            return Call(draw.choice(UNKNOWN_TOOLS), {"run_id": draw.choice(STRANGE_TEXTS)}, 0.0)
        tool = draw.choice(list(self._schemas))
        schema = self._schemas[tool]
        strangeness = draw.choice((0.0, 0.1, 0.5))  # a call that is wrong everywhere is only refused in one place
        arguments: Json = {}
        for name, wanted in schema["properties"].items():
            if draw.random() < (0.97 if name in schema.get("required", ()) else 0.35):
                strange = draw.random() < strangeness
                arguments[name] = self._strange(name, wanted) if strange else self._fitting(name, wanted)
        if draw.random() < 0.03:
            arguments[draw.choice(UNKNOWN_ARGUMENTS)] = self._anything()
        self._settle(tool, arguments)
        return Call(tool, arguments, self._waits(tool, arguments))

    def _fitting(self, name: str, schema: Json) -> Any:
        draw = self._random
        if (values := self._known.fitting.get(name)) and draw.random() < 0.9:
            return draw.choice(values)
        if "enum" in schema:
            return draw.choice(schema["enum"])
        match _type_of(schema):
            case "string":
                return draw.choice(("some text", "x", "\N{GREEK SMALL LETTER ALPHA}" * 20))
            case "integer":
                return draw.randint(schema.get("minimum", 0), min(schema.get("maximum", 1_000), 1_000_000))
            case "number":
                return draw.uniform(schema.get("minimum", 0.001), min(schema.get("maximum", 1e6), 1e6))
            case "boolean":
                return draw.random() < 0.5
            case "array":
                return [self._fitting("", schema.get("items", {})) for _ in range(draw.randint(0, 3))]
            case _:
                return self._anything()

    def _strange(self, name: str, schema: Json) -> Any:
        draw = self._random
        makers: list[Callable[[], Any]] = [
            lambda: draw.choice(STRANGE_TEXTS),
            lambda: draw.choice(HALVES),
            lambda: draw.choice(STRANGE_NUMBERS),
            lambda: draw.choice(STRANGE_OTHERS),
            lambda: self._beside_a_bound(schema),
            lambda: self._mutated(self._fitting(name, schema)),
            lambda: [draw.choice(STRANGE_TEXTS) for _ in range(draw.choice((1, 2, 21)))],
        ]
        return draw.choice(makers)()

    def _anything(self) -> Any:
        texts = (*STRANGE_TEXTS, *HALVES, "z" * 300_000)
        return self._random.choice((*texts, *STRANGE_NUMBERS, *STRANGE_OTHERS, _nested(60)))

    def _beside_a_bound(self, schema: Json) -> Any:
        """On a limit of the schema, or one beside it."""
        draw = self._random
        numbers = [
            schema[key] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if key in schema
        ]
        if numbers:
            return draw.choice(numbers) + draw.choice((-1, 0, 1, -1e-9, 1e-9))
        for key, unit in (("minLength", "x"), ("maxLength", "x"), ("minItems", ["x"]), ("maxItems", ["x"])):
            if key in schema:
                return unit * max(0, min(schema[key], 50_000) + draw.choice((-1, 0, 1)))
        return draw.choice(STRANGE_TEXTS)

    def _mutated(self, value: Any) -> Any:
        """A text with one character more, less or changed; the like for lists."""
        draw = self._random
        if isinstance(value, list) and value:
            items = cast("list[Any]", value)
            return [*items, self._mutated(draw.choice(items))]
        if not isinstance(value, str) or not value:
            return draw.choice(STRANGE_OTHERS)
        place = draw.randrange(len(value))
        return draw.choice(
            (
                value[:place] + value[place + 1 :],
                value[:place] + draw.choice("\0/\n~é\N{PILE OF POO} ") + value[place:],
                value.upper(),
                value[:place],
                value * 40,
                f" {value}",
            )
        )

    def _settle(self, tool: str, arguments: Json) -> None:
        """Keeps the harness short: few runs are really started, and nothing waits long for a run that goes on."""
        if tool == "start_run" and self._random.random() < 0.8:
            arguments["dry_run"] = True
        if tool not in WAITS:
            return
        name, default = WAITS[tool]
        asked = _number(arguments.get(name, default))
        if asked is not None and asked > SHORT_WAIT and asked <= 50:
            arguments[name] = SHORT_WAIT

    @staticmethod
    def _waits(tool: str, arguments: Json) -> float:
        if tool not in WAITS:
            return 0.0
        name, default = WAITS[tool]
        asked = _number(arguments.get(name, default))
        return asked if asked is not None and 0 <= asked <= 50 else 0.0


def _type_of(schema: Json) -> str | None:
    """The one type of a schema, leaving out null."""
    named = schema.get("type")
    types = cast("list[str]", named if isinstance(named, list) else [named])
    options: list[Json] = schema.get("anyOf", [])
    types = [*types, *(option.get("type", "") for option in options)]
    return next((name for name in types if name and name != "null"), None)


def _number(value: Any) -> float | None:
    """What a lenient reader takes for a number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value
