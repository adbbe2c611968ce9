"""What a call of a runner runs in turn: recipes of `make`, `just` and `task`, scripts of `package.json` and
`composer.json`, commands of `tox` and `nox`. Pure.

Files of a base may be hostile: every pattern takes time in proportion to what it reads.
"""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import ConfigParser, Error
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from posixpath import join, normpath
from shlex import quote
from typing import TypeAlias, cast

from massgen_mcp.checks.scripts import INTERPRETERS, SHELLS, ProgramCall
from massgen_mcp.config.yaml_reader import read_yaml
from massgen_mcp.errors import MassgenError

Read: TypeAlias = Callable[[str], str | None]
"""The text of a file by its path; None where there is none."""

MAKES = ("make", "gmake")
PHONY = ".PHONY"
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", ".justfile", "Justfile")
TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
PACKAGE_RUNNERS = ("npm", "pnpm", "yarn", "bun")
SEVERAL_SCRIPTS = ("run-s", "run-p", "npm-run-all")
MAX_INCLUDED = 20
_MAX_SUBSTITUTIONS = 5
_MAX_CHARACTERS = 10_000
"""Of one line."""
_MAX_TARGETS = 100
"""Of one rule."""

_RULE = re.compile(r"([^\s:#=][^:=#]*)::?(?![=:])([^;]*)(?:;(.*))?")
_SET = re.compile(r"(?:export\s+|override\s+)*([\w.-]+)\s*[:?+]{0,3}=\s*(.*)")
_INCLUDED = re.compile(r"[-s]?include\s+(.*)")
_VARIABLE = re.compile(r"\$[({]([\w.-]+)[)}]|\{\{\s*([\w-]+)\s*\}\}")
_FUNCTION = re.compile(r"\$\([^()]*\)|\{\{[^{}]*\}\}")
_RECIPE = re.compile(r"@?([A-Za-z_][\w-]*+)[^:=]*:(?!=)(.*)")


@dataclass(slots=True)
class Recipe:
    """`needs`: recipes that run before or with it."""

    commands: list[str] = field(default_factory=list[str])
    needs: list[str] = field(default_factory=list[str])


def run_by(call: ProgramCall, read: Read) -> Iterator[tuple[str, str]]:
    """Commands that this call runs, each with the directory that it begins in."""
    arguments = call.words[1:]
    match call.program:
        case program if program in MAKES:
            place, texts = _makefiles(call, read)
            yield from _chosen(_of_makefile("\n".join(texts.values())), _target_names(arguments), place)
        case "just":
            place = _call_directory(call, "-d", "--working-directory")
            text = _project_text(place, _value(arguments, "-f", "--justfile") or _first(place, JUSTFILES, read), read)
            yield from _chosen(_of_justfile(text), _target_names(arguments), place)
        case "task":
            place = _call_directory(call, "-d", "--dir")
            text = _project_text(place, _value(arguments, "-t", "--taskfile") or _first(place, TASKFILES, read), read)
            yield from _chosen(_of_taskfile(text), _target_names(arguments) or ["default"], place)
        case program if program in PACKAGE_RUNNERS or program in SEVERAL_SCRIPTS:
            place = _call_directory(call, "-C", "--prefix", "--cwd", "--dir")
            names = [{"t": "test", "tst": "test"}.get(name, name) for name in _target_names(arguments)]
            recipes = _of_package(_project_text(place, "package.json", read))
            wanted = [kind + name for name in names for kind in ("pre", "", "post") if name in recipes]
            yield from _chosen(recipes, [name for name in wanted if name in recipes], place, default=False)
        case "composer":
            recipes = _of_composer(_project_text(_call_directory(call, "-d", "--working-dir"), "composer.json", read))
            yield from _chosen(
                recipes, _target_names(arguments), _call_directory(call, "-d", "--working-dir"), default=False
            )
        case "tox":
            text = _project_text(call.directory, _value(arguments, "-c", "--conf") or "tox.ini", read)
            yield from ((call.directory, command) for command in _of_tox(text))
        case "nox":
            text = _project_text(call.directory, _value(arguments, "-f", "--noxfile") or "noxfile.py", read)
            yield from ((call.directory, command) for command in _of_nox(text))
        case _:
            return


def included_by(call: ProgramCall, read: Read) -> Iterator[str]:
    """The makefiles that those of a call of `make` include."""
    if call.program in MAKES:
        place, texts = _makefiles(call, read)
        yield from (normpath(join(place, name)) for name in [*texts][1:])


def made_by(call: ProgramCall, read: Read) -> Iterator[str]:
    """The targets of a call of `make` that it takes for made where something is: those that are not phony."""
    if call.program in MAKES:
        place, texts = _makefiles(call, read)
        recipes = _of_makefile("\n".join(texts.values()))
        targets = {*_wanted(recipes, _target_names(call.words[1:]))} - {*recipes.get(PHONY, Recipe()).needs}
        yield from (normpath(join(place, target)) for target in targets)


def _chosen(
    recipes: dict[str, Recipe], names: Iterable[str], place: str, *, default: bool = True
) -> Iterator[tuple[str, str]]:
    """The commands of the recipes that are wanted."""
    for name in _wanted(recipes, names, default=default):
        yield from ((place, command) for command in recipes[name].commands)


def _wanted(recipes: Mapping[str, Recipe], names: Iterable[str], *, default: bool = True) -> Iterator[str]:
    """These recipes, else the first one, and all that they need."""
    pending = [name for name in names if name in recipes]
    if not pending and default:
        pending = [name for name in recipes if name != PHONY][:1]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in seen and name in recipes:
            seen.add(name)
            pending += recipes[name].needs
            yield name


# -- where, and what of it --------------------------------------------------------------------------------------------


def _call_directory(call: ProgramCall, *options: str) -> str:
    return normpath(join(call.directory, _value(call.words[1:], *options) or "."))


def _value(arguments: Iterable[str], *options: str) -> str | None:
    for word, following in pairwise([*arguments, ""]):
        name, equals, value = word.partition("=")
        if name in options:
            return value if equals else following
        if name[:2] in options and len(name) > 2 and not name.startswith("--"):
            return word[2:]
    return None


def _target_names(arguments: Iterable[str]) -> list[str]:
    return [word for word in arguments if not word.startswith("-") and "=" not in word]


def _first(place: str, names: Iterable[str], read: Read) -> str:
    return next((name for name in names if read(normpath(join(place, name))) is not None), "")


def _project_text(place: str, name: str, read: Read) -> str:
    return (read(normpath(join(place, name))) or "") if name else ""


def _makefiles(call: ProgramCall, read: Read) -> tuple[str, dict[str, str]]:
    """Where a call of `make` begins, and by name the makefile with those that it includes, as far as they are named."""
    place = _call_directory(call, "-C", "--directory")
    pending = [_value(call.words[1:], "-f", "--file", "--makefile") or _first(place, MAKEFILES, read)]
    texts: dict[str, str] = {}
    while pending and len(texts) < MAX_INCLUDED:
        if (name := pending.pop()) not in texts:
            text = texts[name] = _project_text(place, name, read).replace("\\\n", " ")
            lines = filter(None, map(_INCLUDED.match, text.splitlines()))
            pending += [one for found in lines for one in found[1].partition("#")[0].split()]
    return place, texts


def _replace_variables(text: str, known: dict[str, str]) -> str:
    """With the values of variables. One that is not known is taken for a program of its name: `$(PYTHON)`."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        usual = name.lower()
        is_program = usual in ("make", "npm", "npx", "yarn") or INTERPRETERS.fullmatch(usual) or SHELLS.fullmatch(usual)
        return known.get(name, usual if is_program else "")[:1000]

    text = text[:_MAX_CHARACTERS]
    for _ in range(_MAX_SUBSTITUTIONS):
        if (replaced := _VARIABLE.sub(value, text)) == text:
            break
        text = replaced[:_MAX_CHARACTERS]
    return _FUNCTION.sub("", text).replace("$$", "$")


# -- the files --------------------------------------------------------------------------------------------------------


def _of_makefile(text: str) -> dict[str, Recipe]:
    known = {found[1]: found[2].strip() for line in text.splitlines() if (found := _SET.match(line))}
    recipes: dict[str, Recipe] = defaultdict(Recipe)
    targets: list[str] = []
    for line in text.splitlines():
        commands: list[str] = []
        needs: list[str] = []
        if line.startswith("\t"):
            commands = [line.strip()]
        elif not _SET.match(line) and (rule := _RULE.match(line)):
            named = _replace_variables(rule[1], known).split()
            targets = [one for one in named if one == PHONY or not one.startswith(".")][:_MAX_TARGETS]
            needs = _replace_variables(rule[2], known).replace("|", " ").split()
            commands = [rule[3].strip()] if rule[3] else []
        commands = [_replace_variables(command.lstrip("@-+ "), known) for command in commands]
        for target in targets:
            recipes[target].commands += commands
            recipes[target].needs += needs
    return dict(recipes)


def _of_justfile(text: str) -> dict[str, Recipe]:
    known = {found[1]: found[2].strip("\"' ") for line in text.splitlines() if (found := _SET.match(line))}
    recipes: dict[str, Recipe] = {}
    name = ""
    for line in text.splitlines():
        if name and line[:1] in (" ", "\t") and line.strip():
            recipes[name].commands.append(_replace_variables(line.strip().lstrip("@-"), known))
        elif not _SET.match(line) and (found := _RECIPE.match(line)):
            name = found[1]
            recipes[name] = Recipe(needs=re.findall(r"[A-Za-z_][\w-]*", found[2]))
        elif line.strip() and not line.startswith("#"):
            name = ""
    return recipes


def _of_taskfile(text: str) -> dict[str, Recipe]:
    document: object = None
    with suppress(MassgenError):
        document = read_yaml(text, "Taskfile").data
    tasks = get_member(document, "tasks")
    return {name: _task(tasks[name]) for name in tasks}


def _task(task: object) -> Recipe:
    members = cast("dict[str, object]", task) if isinstance(task, dict) else {"cmds": task}
    run = [one for key in ("cmds", "cmd") for one in _as_list(members.get(key))]
    commands = [one if isinstance(one, str) else _member_text(one, "cmd") for one in run]
    needs = [one for one in _as_list(members.get("deps")) if isinstance(one, str)]
    needs += [_member_text(one, "task") for one in (*run, *_as_list(members.get("deps")))]
    return Recipe([_FUNCTION.sub("", command) for command in commands], needs)


def _of_package(text: str) -> dict[str, Recipe]:
    return {name: Recipe([one]) for name, one in read_scripts(text).items() if isinstance(one, str)}


def _of_composer(text: str) -> dict[str, Recipe]:
    recipes: dict[str, Recipe] = {}
    for name, listed in read_scripts(text).items():
        run = [one for one in _as_list(listed) if isinstance(one, str)]
        commands = [one.removeprefix("@") for one in run if not one.startswith("@") or one.startswith("@php ")]
        needs = [one.removeprefix("@") for one in run if one.startswith("@")]
        recipes[name] = Recipe(commands, needs)
    return recipes


def _of_tox(text: str) -> Iterator[str]:
    parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    with suppress(Error):
        parser.read_string(text)
    for section in parser.values():
        for key, value in section.items():
            if key.startswith("commands"):
                plain = re.sub(r"\{(?:toxinidir|tox_root)\}/", "", str(value or "")).replace("\\\n", " ")
                yield from (re.sub(r"\{[^{}]*\}", "", line).strip().lstrip("-! ") for line in plain.splitlines())


def _of_nox(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("run"):
            words = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield " ".join(map(quote, words))


def read_scripts(text: str) -> dict[str, object]:
    """Return the scripts of a `package.json` or `composer.json` of this text; none where it cannot be read."""
    with suppress(ValueError, RecursionError):
        return get_member(json.loads(text), "scripts")
    return {}


def get_member(document: object, name: str) -> dict[str, object]:
    """Return the mapping of this name in a document; an empty one where there is none."""
    found = cast("dict[str, object]", document).get(name) if isinstance(document, dict) else None
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _member_text(document: object, name: str) -> str:
    found = cast("dict[str, object]", document).get(name) if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def _as_list(value: object) -> list[object]:
    if value is None:
        return []
    return cast("list[object]", value) if isinstance(value, list) else [value]
