"""Right and wrong versions of the tasks, and what they return: run in a process of its own, with limits.

python -m benchmarks.deciding.variants SEED     # what the process prints: one JSON document
"""

import ast
import copy
import inspect
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.deciding import functions

INPUTS = 80
"""So many there are for those who write tests, the first one the example that everybody sees, and as many hidden."""
SECONDS, BYTES = 120, 1 << 30
"""CPU time and memory of the process."""
RUN_SECONDS = 0.1
"""CPU time of one version on all inputs."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


@dataclass(frozen=True, slots=True)
class Version:
    """A program for a task, and what it returned, as text, on the open inputs and on the hidden ones."""

    source: str
    seen: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """`wrong`: versions that return what the right one does on the example, and something else on hidden inputs."""

    name: str
    inputs: tuple[str, ...]
    """Arguments as they stand in a call."""
    right: Version
    wrong: tuple[Version, ...]


def tasks(seed: int) -> tuple[list[Task], int]:
    """Those with a wrong version, and how many changed versions were run."""
    command = [sys.executable, "-m", "benchmarks.deciding.variants", str(seed)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found: list[Task] = []
    for one in told["tasks"]:
        right, *others = (Version(v["source"], tuple(v["seen"]), tuple(v["hidden"])) for v in one["versions"])
        wrong = {(v.seen, v.hidden): v for v in others if v.seen[0] == right.seen[0] and v.hidden != right.hidden}
        if wrong:
            found.append(Task(one["name"], tuple(one["inputs"]), right, tuple(wrong.values())))
    return found, told["run"]


# -- in the process ---------------------------------------------------------------------------------------------------


class _Changed(ast.NodeTransformer):
    """Changes the n-th place that can be changed in one of its ways."""

    def __init__(self, place: int) -> None:
        self._left = place
        self.done = False

    def _here(self, ways: int) -> int | None:
        """Which way to change this place; None: not here."""
        way, self._left = self._left, self._left - ways
        self.done = self.done or 0 <= way < ways
        return way if 0 <= way < ways else None

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        other = COMPARISONS.get(type(node.ops[0]))
        if other is not None and self._here(1) is not None:
            node.ops[0] = other()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = ARITHMETIC.get(type(node.op))
        if other is not None and self._here(1) is not None:
            node.op = other()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._here(1) is not None:
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and (way := self._here(2)) is not None:
            return ast.Constant(node.value + (1, -1)[way])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        swapped = {"min": "max", "max": "min", "abs": "int", "sorted": "list", "lower": "upper", "upper": "lower"}
        called = node.func
        if isinstance(called, ast.Name) and called.id in swapped and self._here(1) is not None:
            called.id = swapped[called.id]
        elif isinstance(called, ast.Attribute) and called.attr in swapped and self._here(1) is not None:
            called.attr = swapped[called.attr]
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self._here(1) is not None:
            node.test = ast.Constant(value=False)
        return node


def versions_of(source: str) -> Iterator[str]:
    """The source, and each of its changes."""
    tree = ast.parse(source)
    yield source
    for place in range(1000):
        change = _Changed(place)
        changed = change.visit(copy.deepcopy(tree))
        if not change.done:
            return
        yield ast.unparse(ast.fix_missing_locations(changed))


class _TooLong(BaseException):
    pass


def _too_long(*_: object) -> None:
    raise _TooLong


def returned(source: str, name: str, calls: Sequence[str]) -> list[str]:
    """What the function returns for each call, as text; how it failed, where it did."""
    space: dict[str, object] = {}
    exec(compile(source, name, "exec"), space)  # noqa: S102 - our own functions, changed, in a process with limits
    out: list[str] = []
    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_SECONDS)
    try:
        for call in calls:
            try:
                out.append(repr(eval(f"{name}({call})", space)))  # noqa: S307
            except Exception as error:  # noqa: BLE001 - whatever a wrong program does
                out.append(f"{type(error).__name__}")
    except _TooLong:
        out += ["no end"] * (len(calls) - len(out))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return out


def _argument(kind: object, random: Random) -> object:
    if kind is int:
        return random.randint(-20, 20)
    if kind is str:
        length = random.randint(0, 9)
        return "".join(random.choice(random.choice(("aabcde", "aB (", "()() ", "12 Zz"))) for _ in range(length))
    return [random.randint(-5, 6) for _ in range(random.randint(0, 7))]


def calls_of(function: Callable[..., object], random: Random) -> list[str]:
    kinds = [one.annotation for one in inspect.signature(function).parameters.values()]
    return [", ".join(repr(_argument(kind, random)) for kind in kinds) for _ in range(2 * INPUTS)]


def set_limits() -> None:
    """For this process, which is to run changed programs."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGVTALRM, _too_long)


def _main(seed: str) -> None:
    set_limits()
    told: list[dict[str, object]] = []
    run = 0
    for name, function in inspect.getmembers(functions, inspect.isfunction):
        calls = calls_of(function, Random(f"{seed}/{name}"))
        versions: list[dict[str, object]] = []
        for source in versions_of(inspect.getsource(function)):
            out = returned(source, name, calls)
            versions.append({"source": source, "seen": out[:INPUTS], "hidden": out[INPUTS:]})
        run += len(versions) - 1
        told.append({"name": name, "inputs": calls[:INPUTS], "versions": versions})
    print(json.dumps({"tasks": told, "run": run}))


if __name__ == "__main__":
    _main(sys.argv[1])
