"""The code of checks besides the scripts that commands name: modules which such a script loads, as far as its text says
so and their directory serves checks alone. Pure.

Code under test is none of it: a directory that a package is built from, or that other code imports, is left alone.
"""

import ast
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from posixpath import basename, dirname, join, normpath, splitext
from typing import cast

from massgen_mcp.checks.patterns import CODE
from massgen_mcp.checks.recipes import Read

CHECK_DIRECTORIES = frozenset(
    {
        *(
            "ci",
            ".ci",
            "tools",
            "tool",
            "scripts",
            "script",
            "dev",
            "devtools",
            "dev-tools",
            "build-tools",
            "buildtools",
        ),
        *("build-support", "build_support", "hack", "qa", "check", "checks", "maintenance", "contrib-ci", "test-tools"),
    }
)
"""Names of directories that may hold nothing but what checks, builds and maintainers run."""
MAX_LOADED = 500
MAX_SEARCHED = 3_000
"""Files of code in which it is looked up whether they import a module."""
_ENDINGS = (*CODE, ".sh", ".bash", ".rb", ".pl", ".pm", ".php", ".lua", ".mk")
_CODE = frozenset(ending for ending in _ENDINGS if ending not in ("", ".json", ".node", ".so", ".pyd", ".pyc"))
_INDEXES = ("/__init__.py", *(f"/index{ending}" for ending in (".js", ".mjs", ".cjs", ".ts")))
_QUOTED = re.compile(r"""["'`]([\w./@+-]{1,200})["'`]""")
_LOADED = re.compile(
    r"""\b(?:require(?:_relative)?|import|from|include(?:_once)?|require_once|dofile|load)\s*\(?\s*["'`]([^"'`\n]{1,200})["'`]"""
)
_BARE_PATH = re.compile(r"[\w.+-]*(?:/[\w.+-]+)+|[\w+-]+\.(?:sh|bash|py|[cm]?[jt]s|rb|pl|php|lua|mk|json)\b")
_COMPUTED = {
    "py": re.compile(r"\b(?:import_module|__import__|run_path|run_module|exec|eval)\(\s*(?!\s*[rbuf]{0,2}[\"'])"),
    "js": re.compile(r"\b(?:require|import)\(\s*(?![\s\"'`]|__dirname)|\beval\("),
    "sh": re.compile(r"^\s*(?:source|\.)\s+\"?\$\{?\w+\}?\"?\s*(?:$|;|&)|^\s*eval\s", re.MULTILINE),
}
_LOADERS = ("import_module", "__import__", "run_module")
_KINDS = {
    **dict.fromkeys((".py",), "py"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"), "js"),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh"), "sh"),
}
_SHEBANGS = (("python", "py"), ("node", "js"), ("deno", "js"), ("bun", "js"), ("sh", "sh"))


@dataclass(frozen=True, slots=True)
class OwnCode:
    """`files`: modules of the base that the scripts of checks load, in directories that may serve checks alone.
    `unfollowed`: what of it is not known, or is judged as an answer has it, in words.
    """

    files: frozenset[str]
    unfollowed: tuple[str, ...]


def find_own_code(scripts: Iterable[str], names: Collection[str], read: Read) -> OwnCode:
    """Return what these scripts load. `names`: all files of the base."""
    areas = {name: area for name in names if (area := _find_area(name)) is not None}
    product = {area for area in set(areas.values()) if is_packaged(area, names, read)}
    pending = sorted({one for one in scripts if one in names and one.rpartition(".")[2] not in ("json", "toml")})
    seen, found, unfollowed = set(pending), set[str](), list[str]()
    while pending and len(seen) < MAX_LOADED:
        script = pending.pop(0)
        text = read(script) or ""
        loaded = [one for one in _find_loaded(script, text, names) if one not in seen]
        own = {one for one in loaded if areas.get(one) not in (None, *product)}
        if outside := [one for one in loaded if one not in own and splitext(one)[1] in _CODE]:
            unfollowed.append(f"{script} loads code that the answer may have changed: {', '.join(outside[:5])}")
        computed = _COMPUTED.get(_detect_kind(script, text))
        if computed is not None and computed.search(text):
            unfollowed.append(f"{script} decides at run time which code to load")
        seen |= own
        found |= own
        pending += sorted(own)
    return OwnCode(frozenset(found), tuple(dict.fromkeys(unfollowed)))


def is_used_elsewhere(module: str, names: Collection[str], read: Read) -> bool:
    """Tell whether code outside of the directories of checks imports this module, tests included."""
    stem = splitext(basename(module))[0]
    word = basename(dirname(module)) if stem in ("__init__", "index") else stem
    others = (one for one in sorted(names) if splitext(one)[1] in _CODE and _find_area(one) is None)
    for place, other in enumerate(others):
        if place == MAX_SEARCHED:
            break
        text = read(other) or ""
        if word in text and module in _find_loaded(other, text, names):
            return True
    return False


def is_packaged(area: str, names: Collection[str], read: Read) -> bool:
    """Tell whether a manifest above a directory builds a package from it."""
    place = dirname(area)
    while True:
        below = area.removeprefix(f"{place}/") if place else area
        for manifest in ("package.json", "pyproject.toml", "setup.cfg", "setup.py"):
            path = join(place, manifest)
            if path in names and is_included(manifest, read(path) or "", below):
                return True
        if not place:
            return False
        place = dirname(place)


def is_included(manifest: str, text: str, below: str) -> bool:
    dotted = below.replace("/", ".")
    found = (
        re.split(r"[=\s]+", one.strip())[-1].removeprefix("./").strip("/") for one in _read_manifest(manifest, text)
    )
    return any(re.match(rf"(?:{re.escape(below)}|{re.escape(dotted)})(?:[/.:*]|$)", one) for one in found)


def _read_manifest(manifest: str, text: str) -> Iterator[str]:
    """Yield the texts of a manifest that say what a package consists of."""
    with suppress(ValueError, RecursionError):
        match manifest:
            case "package.json":
                document = cast("object", json.loads(text))
                fields = cast("dict[str, object]", document) if isinstance(document, dict) else {}
                for name in ("main", "module", "browser", "types", "bin", "exports", "files", "workspaces"):
                    yield from _collect_texts(fields.get(name))
            case "pyproject.toml":
                document = tomllib.loads(text)
                yield from _collect_texts(document.get("project"))
                tools = cast("dict[str, object]", document.get("tool", {}))
                for name in ("setuptools", "hatch", "poetry", "flit", "pdm", "maturin"):
                    yield from _collect_texts(tools.get(name))
            case _:
                for line in re.findall(r"(?:packages|py_modules|scripts|entry_points|console_scripts)[^\n]*", text):
                    yield from re.findall(r"[\w./-]+", line)


def _collect_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            yield name
            yield from _collect_texts(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _collect_texts(item)


def _find_area(path: str) -> str | None:
    """Return the outermost directory on the way to a file that may serve checks alone."""
    parts = path.split("/")[:-1]
    depth = next((depth for depth, part in enumerate(parts, start=1) if part in CHECK_DIRECTORIES), None)
    return None if depth is None else "/".join(parts[:depth])


def _detect_kind(path: str, text: str) -> str:
    if kind := _KINDS.get(splitext(path)[1]):
        return kind
    first = text.partition("\n")[0]
    return next((kind for program, kind in _SHEBANGS if first.startswith("#!") and program in first), "")


def _find_loaded(path: str, text: str, names: Collection[str]) -> list[str]:
    """Return the files of the base that a file names as something to load."""
    if _detect_kind(path, text) == "py":
        named = [*_parse_imports(text)]
    else:
        paths = [one for one in _QUOTED.findall(text) if "/" in one or splitext(one)[1] in _ENDINGS[1:]]
        named = [*_LOADED.findall(text), *paths, *_BARE_PATH.findall(text)]
    found = (one for name in dict.fromkeys(named) for one in _resolve(path, name, names))
    return [one for one in dict.fromkeys(found) if one != path]


def _parse_imports(text: str) -> Iterator[str]:
    """Yield the modules that a Python file imports, as paths, and the paths that it names."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for one in node.names:
                    yield from _split_module(one.name)
            case ast.ImportFrom():
                above = "../" * max(0, node.level - 1)
                module = (node.module or "").replace(".", "/")
                yield from (f"{above}{one}" for one in _split_module(node.module or ""))
                yield from (f"{above}{join(module, one.name)}" for one in node.names)
            case ast.Constant(value=str(value)) if len(value) <= 200 and ("/" in value or value.endswith(_ENDINGS[1:])):
                yield value
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(value)), *_]
            ) if called in _LOADERS:
                yield value.replace(".", "/")
            case _:
                pass


def _split_module(module: str) -> Iterator[str]:
    parts = module.split(".") if module else []
    yield from ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def _resolve(path: str, name: str, names: Collection[str]) -> Iterator[str]:
    """Yield the files that a name may mean: from where the file lies, and from where checks begin."""
    plain = name.strip().lstrip("/")
    for place in dict.fromkeys((dirname(path), "")):
        whole = normpath(join(place, plain))
        if found := next((whole + ending for ending in (*_ENDINGS, *_INDEXES) if whole + ending in names), None):
            yield found
            return
    if "/" not in plain and splitext(plain)[1] in _ENDINGS[1:] and (area := _find_area(path)) is not None:
        # a path that the script puts together: `path.join(__dirname, "lib", "x.js")`
        yield from (one for one in names if one.startswith(f"{area}/") and basename(one) == plain)
