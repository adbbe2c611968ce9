"""Names in backticks that don't exist: in docstrings, comments and messages of the code, and on pages.

A name is a word, a dotted name or a Python file, or a call of one: `budget`, `RunQueue.add`, `execute.py`, `python(…)`.
Other text in backticks (commands, keys with their values, paths) isn't checked. A name exists if it is

- a module or a file of the repository;
- `OWNER.NAME`: in the module or a member of the class OWNER, or written like this in code or in a string;
- a word in the code of the same file, or in a string or a data file anywhere;
- defined in the same room, which is the first folder below the package; anywhere, if it has a capital or an underscore;
- part of Python, or a name of another program that `FOREIGN` lists with its reason.
"""

import ast
import builtins
import io
import keyword
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

WORD = re.compile(r"[A-Za-z_]\w*")
DOTTED = re.compile(r"\w+(?:\.\w+)+")
IN_BACKTICKS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|(?:\w+/)*\w+\.py)(?:\(.*\))?")
FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
PLACEHOLDER = re.compile(
    r"(?:^|[._/]|v(?=V))(?:NAME|TOOL|SERVER|TYPE|PRESET|N|VERSION|AGENT|MODEL|RUN_ID|FILE)(?:$|[._/])"
)
DATA_SUFFIXES = {".css", ".html", ".js", ".mjs", ".json", ".sh", ".sql", ".toml", ".yaml", ".yml"}
LANGUAGE = {*dir(builtins), *keyword.kwlist, *sys.stdlib_module_names}


@dataclass(frozen=True)
class Mention:
    """A name in backticks."""

    name: str
    file: Path
    line: int


@dataclass
class Names:
    """The names of a Python file, or of data."""

    room: str
    words: set[str] = field(default_factory=set[str])
    """Identifiers in code."""
    quoted: set[str] = field(default_factory=set[str])
    """Keys and names in strings, without their parts in backticks."""
    spoken: set[str] = field(default_factory=set[str])
    """All words of strings."""
    top: set[str] = field(default_factory=set[str])
    """Names that the module itself defines."""
    imported: set[str] = field(default_factory=set[str])
    members: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    """Names that each class has, and its bases."""
    pairs: set[str] = field(default_factory=set[str])
    """Each `OWNER.NAME` in code."""

    @cached_property
    def definitions(self) -> set[str]:
        return self.top.union(self.members, *self.members.values())

    def quote(self, text: str) -> None:
        """Add all words of a key or a path; of a sentence those that have an underscore or a dot."""
        text = IN_BACKTICKS.sub(" ", text)
        words = WORD.findall(text)
        self.spoken.update(words)
        self.quoted.update(DOTTED.findall(text), (word for word in words if "_" in word or " " not in text))


@cache
def read_python(path: Path, room: str) -> tuple[Names, tuple[Mention, ...], tuple[Mention, ...]]:
    """Read the names of a file, those that its comments and docstrings mention, and those of its other strings."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    names = Names(room)
    names.top |= {path.stem, *bound_names(tree)}
    mentions, of_messages = list[Mention](), list[Mention]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            names.words.add(token.string)
        elif token.type == tokenize.COMMENT:
            mentions += find_mentions(token.string, path, token.start[0])
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant):
            add_names(node, names)
        elif isinstance(text := node.value, str):
            (mentions if node in docstrings else of_messages).extend(find_mentions(text, path, node.lineno))
            if node not in docstrings:
                names.quote(text)
    return names, tuple(mentions), tuple(of_messages)


def add_names(node: ast.AST, names: Names) -> None:
    """Add the members of a class, what an import brings, or an attribute with its owner."""
    match node:
        case ast.ClassDef(name=name):
            own = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and is_self(part.value)}
            bases = {WORD.findall(ast.unparse(base))[-1] for base in node.bases}
            names.members[name] |= {*bound_names(node), *own, *bases}
        case ast.ImportFrom(module=str(module), names=imported):
            names.imported |= {one.asname or one.name for one in imported}
            names.pairs |= {f"{module.rpartition('.')[2]}.{one.name}" for one in imported}
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
            names.pairs.add(f"{owner}.{name}")
        case _:
            pass


def find_mentions(text: str, file: Path, line: int) -> Iterator[Mention]:
    """Yield the names in backticks of a text that begins at a line of a file."""
    for found in IN_BACKTICKS.finditer(text):
        if name := NAME.fullmatch(found[1]):
            yield Mention(name[1], file, line + text.count("\n", 0, found.start()))


def bound_names(scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield what a module or a class binds outside its functions and inner classes."""
    waiting: list[ast.AST] = [*scope.body]
    while waiting:
        match waiting.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case node:
                waiting += ast.iter_child_nodes(node)


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def path_ends(path: Path) -> Iterator[str]:
    """Yield every way to write this path and its folders that leaves out the first folders."""
    for place in (path, *path.parents):
        for start in range(len(place.parts)):
            yield "/".join(place.parts[start:])


class Code:
    """The names of all files below a root."""

    def __init__(
        self,
        root: Path,
        files: Collection[Path],
        package: Path,
        foreign: Collection[str] = (),
        others: Collection[Path] = (),
    ) -> None:
        """`others`: files that may be named, and whose own names don't count."""
        self.root, self.foreign = root, foreign
        self.places = {end for path in [*files, *others] for end in path_ends(path.relative_to(root))}
        self.modules: dict[str, Names] = {}
        """By their dotted path."""
        self.mentions: list[tuple[Mention, Names | None]] = []
        """With the names of the Python file that has them."""
        data = Names("")
        for path in files:
            if path.suffix == ".py":
                in_package = package in path.parents
                room = path.relative_to(package if in_package else root).parts[0]
                names, mentions, of_messages = read_python(path, room)
                self.modules[".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")] = names
                self.mentions += [(mention, names) for mention in (*mentions, *of_messages * in_package)]
            elif path.suffix == ".md":
                text = FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), path.read_text(encoding="utf-8"))
                self.mentions += [(mention, None) for mention in find_mentions(text, path, 1)]
            elif path.suffix in DATA_SUFFIXES:
                text = path.read_text(encoding="utf-8")
                data.quoted.update(WORD.findall(text), DOTTED.findall(text))
        every = [*self.modules.values(), data]
        self.quoted = set[str]().union(*(names.quoted for names in every))
        self.words = set[str]().union(*(names.words | names.spoken for names in every))
        self.pairs = set[str]().union(*(names.pairs for names in every))
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        self.rooms: defaultdict[str, set[str]] = defaultdict(set)
        for names in self.modules.values():
            self.rooms[names.room] |= names.definitions
            for name, members in names.members.items():
                self.members[name] |= members
        self.definitions = set[str]().union(*self.rooms.values())

    def find_stale(self) -> list[str]:
        stale = {mention for mention, names in self.mentions if not self.exists(mention.name, names)}
        where = [(mention.file.relative_to(self.root).as_posix(), mention.line, mention.name) for mention in stale]
        return [f"{file}:{line}: `{name}` does not exist" for file, line, name in sorted(where)]

    def exists(self, name: str, names: Names | None) -> bool:
        """Whether a name exists for the Python file that has it, or for a page."""
        if name in self.quoted or name in self.foreign:
            return True
        as_path = name.replace(".", "/")
        if PLACEHOLDER.search(name) or self.places & {name, as_path, f"{as_path}.py"}:
            return True
        owner, _, last = name.rpartition(".")
        if "." in owner and not self.exists(owner, names):
            return False
        return self._has_member(owner, last) if owner else self._has_word(name, names)

    def _has_word(self, name: str, names: Names | None) -> bool:
        if name in LANGUAGE:
            return True
        if names is None:
            return name in self.words
        if name in names.words or name in self.rooms[names.room]:
            return True
        return name in self.definitions and (not name.islower() or "_" in name)

    def _has_member(self, owner: str, last: str) -> bool:
        if f"{owner.rpartition('.')[2]}.{last}" in self.pairs:
            return True
        for dotted, names in self.modules.items():
            if (dotted == owner or dotted.endswith(f".{owner}")) and last in names.top | names.imported:
                return True
        return last in self._members_of(owner.rpartition(".")[2])

    def _members_of(self, name: str) -> set[str]:
        """Return the members of a class and of its bases."""
        found, waiting = set[str](), [name]
        while waiting:
            new = self.members.get(waiting.pop(), set()) - found
            found |= new
            waiting += new & self.members.keys()
        return found
