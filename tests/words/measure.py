"""The counting rules for names, docstrings and conditional expressions, per room of a package.

Not counted as functions: properties, dunder methods, overloads, context managers, fixtures, and functions that return
`bool`. Not counted as statements: docstrings.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
"""The first words that make a name a verb phrase, with the prefixes of predicates and conversions (`is`, `from`)."""
PREPOSITIONS = frozenset({"of", "in", "at", "with", "by", "to", "for", "on", "from", "as", "into", "over"})
LONE_PARTICIPLE = re.compile(
    r"^(told|heard|said|begun|given|taken|held|kept|shown|seen|found|left|made|known|drawn|spent|gone|done|meant|sent|put"
    r"|set_aside|written|chosen|[a-z]{3,}ed)$"
)
RELATIVE_START = re.compile(r"^(What|Who|Whose|Whom|Whether|How|Of|Those|So many|So much|Nobody|Somebody|Whoever)\b")
PRONOUN = re.compile(r"\b(nobody|somebody|whoever|whatever)\b", re.IGNORECASE)
GERUND = re.compile(r"[a-z]ing$")
ORDINARY_NOUNS = {"string", "thing", "timing", "logging"}
"""Module names that end like a gerund and are none."""
NOT_COUNTED = {
    "property",
    "cached_property",
    "setter",
    "overload",
    "computed_field",
    "hybrid_property",
    "contextmanager",
    "asynccontextmanager",
    "fixture",
}
"""Decorators of functions that need no verb."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef | ast.Module


@dataclass
class Counts:
    """Sums over the modules of a room."""

    modules: int = 0
    statements: int = 0
    functions: int = 0
    verbs: int = 0
    participles: int = 0
    prepositions: int = 0
    docstrings: int = 0
    relative_starts: int = 0
    words: int = 0
    pronouns: int = 0
    conditionals: int = 0
    gerunds: int = 0
    badly_named: list[str] = field(default_factory=list[str])
    """Functions to rename: file, line and name."""

    def add_module(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        self.modules += 1
        self.gerunds += bool(GERUND.search(path.stem)) and path.stem not in ORDINARY_NOUNS
        prose = [" ".join(comments(text))]
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and not is_docstring(node):
                self.statements += 1
            if isinstance(node, ast.IfExp):
                self.conditionals += 1
            if isinstance(node, Documented) and (docstring := ast.get_docstring(node)):
                self.docstrings += 1
                self.relative_starts += bool(RELATIVE_START.match(docstring))
                prose.append(docstring)
            if isinstance(node, Function):
                self._add_function(node, path)
        joined = " ".join(prose)
        self.words += len(joined.split())
        self.pronouns += len(PRONOUN.findall(joined))

    def _add_function(self, node: Function, path: Path) -> None:
        words = [word for word in node.name.strip("_").split("_") if word]
        if not words or node.name.startswith("__") or decorators(node) & NOT_COUNTED or is_predicate(node):
            return
        has_verb = words[0] in VERBS and words[1:] != ["of"]
        is_participle = len(words) == 1 and bool(LONE_PARTICIPLE.match(words[0]))
        ends_in_preposition = words[-1] in PREPOSITIONS and len(words) > 1
        self.functions += 1
        self.verbs += has_verb
        self.participles += is_participle
        self.prepositions += ends_in_preposition
        if not has_verb or is_participle or ends_in_preposition:
            self.badly_named.append(f"{path}:{node.lineno} {node.name}")


def count(modules: Iterable[Path]) -> Counts:
    counts = Counts()
    for path in modules:
        counts.add_module(path)
    return counts


def rooms(package: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield the modules of each folder of the package, those beside the folders, and all. A folder `plugins` is also
    left out once.
    """
    everything = sorted(package.rglob("*.py"))
    for folder in sorted(package.iterdir()):
        if modules := [path for path in everything if folder in path.parents]:
            yield folder.name, modules
    yield "(root)", sorted(package.glob("*.py"))
    yield "all", everything
    if (package / "plugins").is_dir():
        yield "not plugins", [path for path in everything if package / "plugins" not in path.parents]


def comments(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_predicate(node: Function) -> bool:
    return isinstance(node.returns, ast.Name) and node.returns.id == "bool"


def decorators(node: Function) -> set[str]:
    """Return the last part of each decorator's name."""
    found: set[str] = set()
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                found.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case _:
                pass
    return found
