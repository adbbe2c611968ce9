"""Skills: directories with a SKILL.md that tells an agent how to do something well, read when it is needed.

A skill is text and nothing of it is run.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from massgen_mcp.config.yaml_reader import read_yaml
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest
from massgen_mcp.threads import abandonable
from massgen_mcp.tools.base import Arguments, CheckedTool, Tool, ToolRefused, ToolResult, tool_spec
from massgen_mcp.workspace.guard import PathMissing, PathRefused, Root, parts_of, safe_id, shown

SKILL_FILE = "SKILL.md"
MAX_FILE_BYTES = 256 * 1024
MAX_DESCRIPTION = 200
"""Of what the system prompt says of a skill, in characters."""
MAX_LISTED = 50

_BUILTIN = Path(__file__).parent.parent / "skills"
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t\r]*$", re.DOTALL | re.MULTILINE)


class ReadSkill(Arguments):
    name: str
    file: str = SKILL_FILE


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill found in `folder`, relative to the host directory `base`."""

    name: str
    description: str
    base: Path
    folder: str


def discover_skills(directories: Sequence[Path], *, notes: list[str] | None = None) -> tuple[Skill, ...]:
    """The skills one or two levels below these directories, in their order; of two with one name the first.

    Never raises for what lies there: what cannot be used is left out, with the reason added to `notes`.
    """
    remarks = [] if notes is None else notes
    skills: dict[str, Skill] = {}
    for directory in directories:
        try:
            base = directory.resolve(strict=True)
            root = _skills_root(base, directory.name)
        except (OSError, PathRefused) as error:
            remarks.append(f"{shown(directory.name)}: cannot be opened ({type(error).__name__})")
            continue
        with root:
            for folder in _folders(root, remarks):
                try:
                    skill = _read_skill(root, base, folder)
                except (MassgenError, PathRefused, ToolRefused) as error:
                    remarks.append(f"skill {shown(folder)} is left out: {error}")
                    continue
                if skills.setdefault(skill.name, skill) is not skill:
                    remarks.append(f"skill {shown(folder)} is left out: there is one named {skill.name} already")
    return tuple(skills.values())


def builtin_skills(names: Sequence[str]) -> tuple[Skill, ...]:
    """Skills that ship with the package. Raises `MassgenError("config_invalid")` with the nearest name."""
    known = {skill.name: skill for skill in discover_skills([_BUILTIN])}
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"there is {', '.join(known)}"
            raise MassgenError("config_invalid", f"no built-in skill {shown(name)}; {hint}")
    return tuple(known[name] for name in dict.fromkeys(names))


def skills_note(skills: Sequence[Skill]) -> str:
    """What the system prompt says of the skills: a line for each of the first fifty; "" when there is none."""
    if not skills:
        return ""
    lines = [f"- {skill.name}: {_one_line(skill.description)}" for skill in skills[:MAX_LISTED]]
    return "\n".join(["Skills; call `read_skill` before you do what one is for:", *lines])


def skill_tools(skills: Sequence[Skill]) -> tuple[Tool, ...]:
    """The tool that reads these skills; none without skills."""
    if not skills:
        return ()

    async def read(wanted: ReadSkill) -> ToolResult:
        return ToolResult(await abandonable(partial(_chosen_text, skills, wanted)))

    return (CheckedTool(tool_spec("read_skill", "Read a skill, or another file of it.", ReadSkill), ReadSkill, read),)


def _chosen_text(skills: Sequence[Skill], wanted: ReadSkill) -> str:
    skill = next((skill for skill in skills if skill.name == wanted.name), None)
    if skill is None:
        names = [skill.name for skill in skills]
        near = nearest(wanted.name, names)
        raise ToolRefused(f"no skill {wanted.name[:64]!a}; there is {near or ', '.join(names[:20])}")
    rel = "/".join(parts_of(wanted.file))
    with _skills_root(skill.base, "skills") as root:
        try:
            return _skill_text(root, f"{skill.folder}/{rel}")
        except PathMissing:
            entries = root.walk(skill.folder, MAX_LISTED).entries
    files = [entry.path.removeprefix(f"{skill.folder}/") for entry in entries if entry.kind == "file"]
    raise ToolRefused(f"{skill.name} has no file {shown(wanted.file)}; there is {', '.join(files) or 'none'}")


def _skills_root(base: Path, name: str) -> Root:
    """A directory of skills; wherever the package is installed, its own ones are no secret."""
    return Root.open(base, name, above=() if base == _BUILTIN.resolve() else base.parts)


def _folders(root: Root, remarks: list[str]) -> Iterator[str]:
    """Directories with a SKILL.md, one level below the root; or two, below a directory that has none."""
    for first in _below(root, ".", remarks):
        if _has_skill(root, first):
            yield first
            continue
        yield from (second for second in _below(root, first, remarks) if _has_skill(root, second))


def _below(root: Root, folder: str, remarks: list[str]) -> list[str]:
    """The directories in a directory. A link is not followed, but may be a skill that somebody misses."""
    try:
        entries = root.list_dir(folder).entries
    except PathRefused as refused:
        remarks.append(str(refused))
        return []
    remarks += [f"{shown(entry.path)}: is a link, these are not followed" for entry in entries if entry.kind == "link"]
    return [entry.path for entry in entries if entry.kind == "directory"]


def _has_skill(root: Root, folder: str) -> bool:
    try:
        root.stat(f"{folder}/{SKILL_FILE}")
    except PathRefused:
        return False
    return True


def _read_skill(root: Root, base: Path, folder: str) -> Skill:
    """Raises `PathRefused`, `ToolRefused` or `MassgenError` for what is no skill."""
    front = _FRONT_MATTER.match(_skill_text(root, f"{folder}/{SKILL_FILE}"))
    if front is None:
        raise ToolRefused(f"{SKILL_FILE} does not begin with front matter between two lines of ---")
    fields = read_yaml(f"\n{front[1]}", SKILL_FILE).data  # the line of the first --- counts
    values = [fields.get(key) if isinstance(fields, dict) else None for key in ("name", "description")]
    if not all(isinstance(value, str) and value.strip() for value in values):
        raise ToolRefused(f"the front matter of {SKILL_FILE} needs a name and a description, both text")
    name, description = cast("list[str]", values)
    return Skill(safe_id(name, "the name"), description, base, folder)


def _skill_text(root: Root, rel: str) -> str:
    try:
        return root.read_bytes(rel, MAX_FILE_BYTES).decode()
    except UnicodeDecodeError:
        raise ToolRefused(f"{shown(rel)}: is not a text file") from None


def _one_line(text: str) -> str:
    line = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return line if len(line) <= MAX_DESCRIPTION else f"{line[: MAX_DESCRIPTION - 1]}…"
