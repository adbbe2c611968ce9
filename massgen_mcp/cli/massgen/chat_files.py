"""`@path` in a question: the agents may read that file or directory in this turn."""

from pathlib import Path

from massgen_mcp.cli.massgen.chat_input import MENTION
from massgen_mcp.config.models import Config, ContextPath
from massgen_mcp.errors import MassgenError

_TRAILING = ".,;:!?)]}'\""


def with_mentioned_files(question: str, config: Config, cwd: Path) -> Config:
    """The config with every path that the question names as `@path` among its context paths.

    An @ before something that is no path stays a word. Raises `MassgenError` invalid_action if the agents have no file
    tools, or if there are more paths than a config takes.
    """
    known = {context.path for context in config.orchestrator.context_paths}
    found = [str(path) for word in MENTION.findall(question) if (path := _path(word, cwd))]
    new = [path for path in dict.fromkeys(found) if path not in known]
    if not new:
        return config
    if not config.orchestrator.enable_filesystem:
        raise MassgenError("invalid_action", f"@{new[0]}: these agents have no file tools (enable_filesystem: false)")
    paths = (*config.orchestrator.context_paths, *(ContextPath(path=path) for path in new))
    if len(paths) > MAX_PATHS:
        raise MassgenError("invalid_action", f"a turn takes at most {MAX_PATHS} context paths, not {len(paths)}")
    orchestrator = config.orchestrator.model_copy(update={"context_paths": paths})
    return config.model_copy(update={"orchestrator": orchestrator})


MAX_PATHS = 20
"""As in `OrchestratorConfig.context_paths`."""


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
