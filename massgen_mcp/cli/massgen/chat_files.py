"""`@path` in a question: the agents may read that file or directory in this turn."""

from pathlib import Path

from massgen_mcp.cli.massgen.chat_input import MENTION
from massgen_mcp.config.models import Config, ContextPath
from massgen_mcp.errors import MassgenError

_TRAILING = ".,;:!?)]}'\""


def mentioned_paths(question: str, config: Config, cwd: Path) -> tuple[ContextPath, ...]:
    """Every path that the question names as `@path`, besides the config's own.

    An @ before something that is no path stays a word. Raises `MassgenError` invalid_action if the agents have no file
    tools.
    """
    known = {context.path for context in config.orchestrator.context_paths}
    found = [str(path) for word in MENTION.findall(question) if (path := _path(word, cwd))]
    new = [path for path in dict.fromkeys(found) if path not in known]
    if new and not config.orchestrator.enable_filesystem:
        raise MassgenError("invalid_action", f"@{new[0]}: these agents have no file tools (enable_filesystem: false)")
    return tuple(ContextPath(path=path) for path in new)


def _path(word: str, cwd: Path) -> Path | None:
    """The existing path that a word means, also if punctuation follows it."""
    for name in dict.fromkeys((word, word.rstrip(_TRAILING))):
        try:
            path = (cwd / Path(name).expanduser()).resolve() if name else None
            if path is not None and path.exists():
                return path
        except (OSError, ValueError, RuntimeError):
            continue
    return None
