"""The tools of other agents, by the names and arguments that models have learned there, as calls of ours. Pure.

Only what says the same is taken for it. Everything else stays as it was called, and is answered with what there is.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import cast

from massgen_mcp.backends.base import RUN_COMMAND, JsonObject, JsonValue, ToolSpec

APPLY_PATCH = "apply_patch"
UNLISTED = (APPLY_PATCH,)
"""Tools that can be called and are not offered: every request would be longer for the models that know them anyway."""
PATCH_BEGINS = "*** Begin Patch"
PATCH_ENDS = "*** End Patch"
MILLISECONDS_FROM = 1_000
"""A time limit of so much or more is one in milliseconds: nobody waits as many seconds for a command."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    RUN_COMMAND: (
        *("bash", "shell", "sh", "terminal", "exec", "exec_command", "execute_command", "execute_bash", "local_shell"),
        *("run_terminal_cmd", "run_shell_command", "run_in_terminal", "run_bash", "container_exec", "unified_exec"),
    ),
    "read_file": ("read", "view", "cat", "open_file", "view_file", "read_text_file", "readfile", "view_file_contents"),
    "write_file": ("write", "create_file", "create", "write_to_file", "save_file", "create_new_file"),
    "edit_file": ("edit", "str_replace", "replace", "search_replace", "replace_in_file", "edit_existing_file"),
    "list_files": ("ls", "glob", "list_dir", "list_directory", "find_files", "file_search", "list_directory_contents"),
    "search_files": ("grep", "search", "rg", "ripgrep", "grep_search", "search_file_content", "search_in_files"),
    "delete_file": ("rm", "delete", "remove_file", "remove"),
    "move_file": ("mv", "move", "rename", "rename_file"),
    APPLY_PATCH: ("patch", "applypatch"),
}
_TOOL_OF = {_other: name for name, others in _NAMES.items() for _other in others}
_EDITORS = ("str_replace_editor", "str_replace_based_edit_tool", "text_editor")
_EDITOR_COMMANDS = {"view": "read_file", "create": "write_file", "str_replace": "edit_file"}

_PATH = (
    *("file_path", "filepath", "filename", "file", "target_file", "absolute_path", "relative_path", "file_name"),
    *("dir_path", "directory", "directory_path", "dir", "folder", "target_directory", "relative_workspace_path"),
)
_ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    RUN_COMMAND: {
        "command": ("cmd", "commands", "script", "bash_command", "shell_command", "input"),
        "background": ("run_in_background", "is_background", "isBackground"),
    },
    "read_file": {"path": _PATH, "offset": ("start_line", "line_start", "start"), "limit": ("num_lines", "line_count")},
    "write_file": {"path": _PATH, "content": ("contents", "text", "file_text", "new_content", "data", "file_content")},
    "edit_file": {
        "path": _PATH,
        "old": ("old_string", "old_str", "old_text", "oldText", "search", "find"),
        "new": ("new_string", "new_str", "new_text", "newText", "replace", "replacement"),
        "replace_all": ("all", "expected_all"),
    },
    "list_files": {"path": _PATH, "glob": ("pattern", "glob_pattern", "query", "file_pattern")},
    "search_files": {
        "pattern": ("query", "regex", "search_pattern", "search_term"),
        "path": _PATH,
        "glob": ("include", "include_pattern", "file_pattern", "file_glob", "includes"),
        "ignore_case": ("-i", "case_insensitive"),
    },
    "delete_file": {"path": _PATH},
    "move_file": {
        "path": (*_PATH, "source", "source_path", "src", "from", "old_path"),
        "to": ("destination", "destination_path", "dest", "dst", "target", "new_path"),
    },
    APPLY_PATCH: {"patch": ("input", "patch_text", "diff", "content")},
}


def resolve_call(name: str, arguments: JsonObject, offered: Mapping[str, ToolSpec]) -> tuple[str, JsonObject]:
    """Return the call of a tool of ours that this one means, with its arguments; the same call where it means none."""
    called = name.lower().replace("-", "_").replace(".", "_")
    target = name
    if name not in offered:
        target = _TOOL_OF.get(called, name)
        if called in _EDITORS:
            target = _EDITOR_COMMANDS.get(str(arguments.get("command")), name)
            arguments = {key: value for key, value in arguments.items() if key != "command"}
    if target not in _ARGUMENTS or (target not in offered and target not in UNLISTED):
        return name, arguments
    mapped = _with_own_names(target, arguments)
    if shape := _SHAPES.get(target):
        mapped = shape(mapped)
    if target == "list_files" and mapped.get("glob"):
        mapped["recursive"] = True
    if target == RUN_COMMAND and (patch := extract_patch(mapped.get("command"))) is not None and "edit_file" in offered:
        return APPLY_PATCH, {"patch": patch}
    return target, mapped


def extract_patch(command: JsonValue) -> str | None:
    """Return the patch that a command would give to the program `apply_patch`; None if it does something else."""
    if not isinstance(command, str) or PATCH_BEGINS not in command:
        return None
    before, _, rest = command.partition(PATCH_BEGINS)
    body, ended, after = rest.partition(PATCH_ENDS)
    words = before.split()
    is_alone = len(after.strip().splitlines()) <= 1 and not set(after) & set(";&|<>")
    if not ended or not is_alone or not words or words[0] != APPLY_PATCH or len(words) > 2:
        return None
    return f"{PATCH_BEGINS}{body}{PATCH_ENDS}"


def _with_own_names(tool: str, arguments: JsonObject) -> JsonObject:
    mapped = dict(arguments)
    for own, others in _ARGUMENTS[tool].items():
        given = [other for other in others if other in mapped]
        if own not in mapped and len(given) == 1:
            mapped[own] = mapped.pop(given[0])
    return mapped


def _shape_command(arguments: JsonObject) -> JsonObject:
    shaped = dict(arguments)
    command = shaped.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        shaped["command"] = _command_line(cast("list[str]", command))
    directory = next((shaped.pop(key) for key in _DIRECTORIES if key in shaped), None)
    if isinstance(directory, str) and directory.strip(" ./") and isinstance(shaped.get("command"), str):
        shaped["command"] = f"cd -- {shlex.quote(directory)} || exit 1\n{shaped['command']}"
    for key in ("timeout", "timeout_ms", "timeout_millis", "timeoutMs", "yield_time_ms"):
        if key in shaped and "timeout_seconds" not in shaped:
            shaped["timeout_seconds"] = _seconds(shaped.pop(key), milliseconds=key not in ("timeout",))
    return {key: value for key, value in shaped.items() if key not in ("shell", "login", "justification")}


def _command_line(words: list[str]) -> str:
    """Return the command of `["bash", "-lc", "ls"]`, or of a list of words."""
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc", "-cl"):
        return words[2]
    if len(words) == 2 and words[0] == APPLY_PATCH:
        return "\n".join(words)
    return shlex.join(words)


def _seconds(value: JsonValue, *, milliseconds: bool) -> JsonValue:
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError):
        return value
    return number / 1000 if milliseconds or number >= MILLISECONDS_FROM else number


def _shape_reading(arguments: JsonObject) -> JsonObject:
    shaped = dict(arguments)
    lines = shaped.pop("view_range", None)
    if isinstance(lines, list) and len(lines) == 2:
        shaped["offset"], end = lines[0], lines[1]
    else:
        end = next((shaped.pop(key) for key in ("end_line", "line_end", "end") if key in shaped), None)
    if shaped.get("offset") == 0:
        shaped["offset"] = 1
    first = shaped.get("offset", 1)
    if isinstance(end, int) and isinstance(first, int) and end >= first and "limit" not in shaped:
        shaped["limit"] = end - first + 1
    return shaped


def _shape_search(arguments: JsonObject) -> JsonObject:
    shaped = dict(arguments)
    if (kind := str(shaped.get("type", ""))) in _ENDINGS and "glob" not in shaped:
        shaped["glob"] = _ENDINGS[kind]
        del shaped["type"]
    sensitive = shaped.pop("case_sensitive", None)
    if isinstance(sensitive, bool) and "ignore_case" not in shaped:
        shaped["ignore_case"] = not sensitive
    return {key: value for key, value in shaped.items() if key not in _LAYOUT}


_DIRECTORIES = ("cwd", "workdir", "working_directory", "dir_path", "directory")
_ENDINGS: Mapping[str, str] = {
    **{kind: f"*.{kind}" for kind in ("c", "cpp", "cs", "css", "go", "html", "java", "js", "json", "md", "php", "py")},
    **{kind: f"*.{kind}" for kind in ("rb", "rs", "sh", "sql", "toml", "ts", "tsx", "txt", "xml", "yaml", "yml")},
    "javascript": "*.js",
    "markdown": "*.md",
    "python": "*.py",
    "ruby": "*.rb",
    "rust": "*.rs",
    "typescript": "*.ts",
}
"""Types of files as ripgrep names them."""
_LAYOUT = frozenset({"-n", "-A", "-B", "-C", "output_mode", "head_limit", "multiline"})
"""How results of a search look elsewhere; here they are bounded and numbered anyway."""
_SHAPES: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    RUN_COMMAND: _shape_command,
    "read_file": _shape_reading,
    "search_files": _shape_search,
}
