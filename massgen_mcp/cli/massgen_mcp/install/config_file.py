"""A client's settings file with our entry in it, or without: every other character stays, a copy is kept, and what
cannot be done safely is refused.

The new text counts only if it says what the old one said, apart from our entry.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from massgen_mcp.cli.massgen_mcp.install import jsonc, toml_tables, yaml_blocks
from massgen_mcp.cli.massgen_mcp.install.clients import ServerEntry, is_ours
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import sync_directory, written_beside

COPY_ENDING = ".before-massgen"
MAX_BYTES = 32 * 1024 * 1024
_BOM = "\ufeff"
_LANGUAGES = {".toml": toml_tables, ".yaml": yaml_blocks}
"""By the end of a file's name; any other is JSON with comments."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a file. `copy`: what it was before, if this call kept that."""

    file: Path
    changed: bool
    copy: Path | None = None


def put_entry(file: Path, section: str, name: str, entry: ServerEntry, *, within: Path | None = None) -> Change:
    """Write the entry, in place of an earlier one of ours. `within`: the project that the file has to lie in.

    Raises `MassgenError` invalid_arguments for a file that we do not understand, may not write, whose entry of this
    name is not ours, or that a link leads to out of the project.
    """
    return _change(file, section, name, entry, within)


def take_entry(file: Path, section: str, name: str, *, within: Path | None = None) -> Change:
    """Remove the entry; a file in which nothing else was changed since `put_entry` becomes what it was before, or is
    gone again. Raises as `put_entry` does.
    """
    return _change(file, section, name, None, within) if file.exists() or file.is_symlink() else Change(file, False)


def read(file: Path, text: str) -> object:
    """What a text says that is the file's. Raises `ValueError` with the line where it is wrong."""
    return _LANGUAGES.get(file.suffix, jsonc).loads(text.removeprefix(_BOM))


def shown(file: Path, section: str, name: str, entry: ServerEntry) -> str:
    """The entry alone, as it would stand in the file."""
    return _with_entry(file, "" if file.suffix in _LANGUAGES else "{}\n", section, name, entry)


def _change(link: Path, section: str, name: str, entry: ServerEntry | None, within: Path | None) -> Change:
    try:
        file = link.resolve()  # what a link means is changed, the link stays
        if within is not None:
            _check_within(link, file, within.resolve())
        before = read_text(file)
        text = _edit_text(file, before, section, name, entry)
        if text == before:
            return Change(link, False)
        if entry is None and (earlier := _earlier(file, before, section, name)) is not None:
            text = earlier
            if not text and not _copy_of(file).exists():
                file.unlink()
                return Change(link, True)
        return Change(link, True, write_text(file, before, text))
    except RuntimeError as error:
        raise refuse_change(link, "its symbolic links form a loop") from error
    except OSError as error:
        raise refuse_change(link, error.strerror or type(error).__name__) from error


def _check_within(link: Path, file: Path, project: Path) -> None:
    """The links of a project may be anybody's."""
    if not file.is_relative_to(project):
        raise refuse_change(link, f"a link points outside the project, to {file}; remove the link, or use --scope user")
    if ".git" in file.relative_to(project).parts:
        raise refuse_change(link, f"a link points into the .git directory, to {file}; remove the link")


def _earlier(file: Path, now: str, section: str, name: str) -> str | None:
    """What the file was before we put the entry there; None where that is not known, or more was changed since."""
    copy = _copy_of(file)
    earlier = read_text(copy)
    entry = cast("ServerEntry", _parse_text(file, now)[section][name])
    try:
        return earlier if _edit_text(file, earlier, section, name, entry) == now else None
    except MassgenError:
        return None


def _edit_text(file: Path, before: str, section: str, name: str, entry: ServerEntry | None) -> str:
    document = _parse_text(file, before)
    if not isinstance(entries := document.get(section, {}), dict):
        raise refuse_change(file, f"{section} isn't a table of servers")
    old = cast("dict[str, ServerEntry]", entries).get(name)
    if old is not None and not is_ours(old):
        raise refuse_change(file, f"it already has another server named {name!r}; choose another name with --name")
    if entry is not None and old is not None:
        entry = _renew_entry(old, entry)
    if old == entry:
        return before
    wanted = deepcopy(document)
    if entry is None:
        del wanted[section][name]
    else:
        wanted.setdefault(section, {})[name] = entry
    text = _with_entry(file, before.removeprefix(_BOM), section, name, entry)
    if before.startswith(_BOM):
        text = _BOM + text
    if not _is_right(file, text, wanted, section):
        raise refuse_change(file, "its servers are written in a way that massgen can't edit safely")
    return text


def _renew_entry(old: ServerEntry, new: ServerEntry) -> ServerEntry:
    """The new entry, with what somebody added to the old one or set differently there."""
    started = {field: new[field] for field in ("command", "cmd", "args") if field in new}
    renewed = {**new, **old, **started}
    kept, now = old.get("env"), new.get("env")
    if isinstance(kept, dict) and isinstance(now, dict):
        renewed["env"] = {**cast("ServerEntry", now), **cast("ServerEntry", kept)}
    for field in ("env_vars", "env_keys"):
        kept, now = old.get(field), new.get(field)
        if isinstance(kept, list) and isinstance(now, list):
            names = cast("list[object]", kept)
            renewed[field] = [*names, *(name for name in cast("list[object]", now) if name not in names)]
    return renewed


def _with_entry(file: Path, text: str, section: str, name: str, entry: ServerEntry | None) -> str:
    language = _LANGUAGES.get(file.suffix, jsonc)
    try:
        if entry is None:
            return language.without_member(text, section, name)
        return language.with_member(text, section, name, entry)
    except toml_tables.NotToml:
        return text


def _is_right(file: Path, text: str, wanted: dict[str, Any], section: str) -> bool:
    """Check that the text has the wanted settings. An empty section counts as none."""
    try:
        document = _parse_text(file, text)
    except MassgenError:
        return False
    return {**document, section: document.get(section) or {}} == {**wanted, section: wanted.get(section) or {}}


def _parse_text(file: Path, text: str) -> dict[str, Any]:
    try:
        document = read(file, text)
    except ValueError as error:
        raise refuse_change(file, str(error)) from error
    if not isinstance(document, dict):
        raise refuse_change(file, "it isn't a JSON object")
    return cast("dict[str, Any]", document)


def read_text(file: Path) -> str:
    """Return what is in a file; nothing of one that is not there. Raises `MassgenError` where it is no text."""
    if not file.exists():
        return ""
    if not file.is_file():
        raise refuse_change(file, "it isn't a file")
    if file.stat().st_size > MAX_BYTES:
        raise refuse_change(file, f"it is larger than {MAX_BYTES} bytes")
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise refuse_change(file, "it is not UTF-8") from error


def write_text(file: Path, before: str, text: str) -> Path | None:
    """Replace the file, durably; the copy, if there was a file and it has none yet."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(file, text, 0o600)
        return None
    mode = file.stat().st_mode & 0o777
    if not mode & 0o222:
        raise refuse_change(file, "it is read-only")
    copy = _copy_of(file)
    if kept := not copy.exists():
        _replace(copy, before, mode)
    if read_text(file) != before:
        raise refuse_change(file, "another program has just changed it; run the command again")
    _replace(file, text, mode)
    return copy if kept else None


def _copy_of(file: Path) -> Path:
    return file.with_name(f"{file.name}{COPY_ENDING}")


def _replace(file: Path, text: str, mode: int) -> None:
    with written_beside(file, text.encode(), mode) as fresh:
        fresh.replace(file)
    sync_directory(file.parent)


def refuse_change(file: Path, why: str) -> MassgenError:
    """Return the error of a file that was left as it is."""
    return MassgenError("invalid_arguments", f"{file} was not changed: {why}")
