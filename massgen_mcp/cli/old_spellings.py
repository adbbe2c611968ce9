"""Earlier spellings, which keep working without a message, and words of other programs. All of them stand here."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

OPTIONS_TO_VERBS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--background": ("start",),
        "--batch": ("batch",),
        "--init": ("init",),
        "--list-sessions": ("runs", "--sessions"),
        "--resume": ("resume", "--here"),
        "--validate": ("validate",),
    }
)
"""Options of a question that are verbs now."""
VERBS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "chat": ("ask",),
        "report": ("result", "--page"),
        "trust": ("validate", "--trust"),
        "version": ("ask", "--version"),
    }
)
_OUTPUT, _SESSION, _MODEL = {"--output-file": "--output"}, {"--session-id": "--session"}, {"--models": "--model"}
OPTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "ask": {**_OUTPUT, **_SESSION, **_MODEL},
        "batch": {**_OUTPUT, **_MODEL},
        "eval": {"--budget": "--max-usd", "--results": "--output", "--html": "--page", "--teams": "--configs"},
        "export": {"--to": "--output"},
        "init": {**_OUTPUT, **_SESSION, **_MODEL},
        "install": {"--print": "--dry-run"},
        "resume": _OUTPUT,
        "review": {**_OUTPUT, **_MODEL},
        "start": {**_OUTPUT, **_SESSION, **_MODEL},
        "stats": {"--team": "--models"},
    }
)
"""By verb: the old name and the new one."""
WORDS_FROM_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "benchmark": "`massgen eval` measures teams against a single model",
        "bye": "there is no conversation to leave",
        "compare": "`massgen eval` measures teams against a single model",
        "completion": "`massgen --completion bash` prints the completion script",
        "config": "`massgen configs` lists ready-made teams, `massgen init` creates a config, `massgen validate` "
        "checks one",
        "continue": "`massgen resume` continues an interrupted run, `massgen --session ID` a conversation",
        "cost": "`massgen stats` shows what runs have cost",
        "costs": "`massgen stats` shows what runs have cost",
        "delete": "`massgen prune ID` deletes a run",
        "diff": "`massgen result --view diff` shows the newest run's patch",
        "examples": "`massgen configs` lists ready-made teams",
        "exit": "there is no conversation to leave",
        "history": "`massgen runs` lists runs, `massgen runs --sessions` conversations",
        "keys": "`massgen doctor` shows which keys are set",
        "kill": "`massgen cancel ID` stops a run and keeps its best answer",
        "list": "`massgen runs` lists runs",
        "login": "there is nothing to log in to; `massgen doctor` shows which keys are set",
        "logs": "`massgen watch ID` follows a run, `massgen result ID --view full` shows all its answers",
        "ls": "`massgen runs` lists runs",
        "mcp": "`massgen serve` runs the MCP server; `massgen install CLIENT` adds it to a client",
        "models": "`massgen doctor` shows which models are available",
        "new": "`massgen` alone starts a conversation, `massgen init` creates a config",
        "open": "`massgen result --open` opens the newest run in your browser",
        "page": "`massgen result --page` writes the newest run as a web page",
        "ps": "`massgen runs --state running` lists running runs",
        "quit": "there is no conversation to leave",
        "retry": "`massgen resume` continues an interrupted run",
        "rm": "`massgen prune ID` deletes a run",
        "run": 'to start a run: massgen "your question"',
        "server": "`massgen serve` runs the MCP server",
        "sessions": "`massgen runs --sessions` lists them",
        "settings": "`massgen init` creates a config, `massgen validate` shows the current one",
        "setup": "`massgen init` creates a config",
        "show": "`massgen result` shows the newest run in this directory",
        "stop": "`massgen cancel ID` stops a run and keeps its best answer",
        "team": "`massgen configs` lists ready-made teams, `massgen validate` shows the current one",
        "teams": "`massgen configs` lists ready-made teams",
        "ui": "`massgen web` shows runs in a browser",
        "undo": "`massgen apply ID --undo` undoes a run's applied changes",
        "update": "`uv tool upgrade massgen-mcp`, or `pip install -U massgen-mcp`, installs the newest version",
        "upgrade": "`uv tool upgrade massgen-mcp`, or `pip install -U massgen-mcp`, installs the newest version",
        "usage": "`massgen stats` shows what runs have cost",
        "votes": "`massgen result --view votes` shows the newest run's votes",
    }
)
"""Words of other programs, with the command that does the same here."""


def modernize(verb: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the verb and its words as they are spelled today."""
    end = words.index("--") if "--" in words else len(words)
    if verb in VERBS:
        verb, *more = VERBS[verb]
        words, end = [*more, *words], end + len(more)
    place = next((at for at in range(end) if words[at].partition("=")[0] in OPTIONS_TO_VERBS), None)
    if verb == "ask" and place is not None:
        option, _, value = words[place].partition("=")
        verb, *more = OPTIONS_TO_VERBS[option]
        words = [*more, *words[:place], *([value] if value else []), *words[place + 1 :]]
        end = words.index("--") if "--" in words else len(words)
    renamed = OPTIONS.get(verb, {})
    return verb, [_rename(word, renamed) if at < end else word for at, word in enumerate(words)]


def _rename(word: str, renamed: Mapping[str, str]) -> str:
    name, equals, value = word.partition("=")
    return f"{renamed.get(name, name)}{equals}{value}"
