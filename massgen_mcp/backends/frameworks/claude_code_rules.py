"""What the Claude Code CLI may do by itself: five file tools, inside one directory. A pure decision per tool call.

The CLI has many more tools, commands among them; those are not offered, and refused here should it try.
"""

from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.claude_code_agents import READING, WRITING

_PATHS = ("file_path", "path", "notebook_path")
_PATTERNS = {"Glob": ("pattern",), "Grep": ("glob",)}
"""Arguments that hold a pattern of file names."""


def refusal(tool: str, arguments: Mapping[str, object], workspace: Path, *, may_write: bool) -> str | None:
    """Why the CLI may not do this, in words for the model; None if it may.

    `workspace` is a real path. Links are followed before a path is judged; none of the five tools can make one.
    """
    if tool not in (*READING, *(WRITING if may_write else ())):
        return f"{tool} is not available here."
    for name in _PATHS:
        path = arguments.get(name)
        if path is not None and not _inside(path, workspace):
            return f"{name}: only files in your working directory {workspace} can be reached with {tool}."
    for name in _PATTERNS.get(tool, ()):
        pattern = arguments.get(name)
        if pattern is not None and not _harmless(pattern):
            return f"{name}: a pattern is relative to your working directory, without '..'."
    return None


def _inside(path: object, workspace: Path) -> bool:
    if not isinstance(path, str) or path.startswith("~") or "\0" in path:
        return False
    try:
        return (workspace / path).resolve().is_relative_to(workspace)
    except (OSError, RuntimeError):
        return False


def _harmless(pattern: object) -> bool:
    if not isinstance(pattern, str) or pattern.startswith(("/", "~")):
        return False
    return ".." not in pattern.replace("\\", "/").replace("{", "/").replace(",", "/").replace("}", "/").split("/")
