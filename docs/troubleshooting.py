"""Writes docs/troubleshooting.md: what a person sees, why, and what to do.

Every message stands in the code as it stands here, with `…` for what differs each time; one that does not is an error,
so the page cannot go stale. What to do about reasons and codes is said by the code itself and by `docs.error_codes`.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

from docs.error_codes import codes_table
from docs.markdown import WRITTEN, table
from massgen_mcp.errors import DropReason, FailureReason
from massgen_mcp.views.ending import REMEDIES

PACKAGE = Path(__file__).parent.parent / "massgen_mcp"

HEAD = f"""\
# Troubleshooting

{WRITTEN}
This page lists messages that don't say what to do; `…` marks varying text. Errors begin with a code: look it up
[below](#codes-of-errors) first.

`massgen doctor` checks keys, model servers, agent programs, the sandbox, clients and the state directory, and
suggests fixes. `massgen --debug` shows more about a run, and `massgen.log` in the run's directory contains everything.
"""


class Entry(NamedTuple):
    seen: str
    why: str
    to_do: str


GROUPS: Mapping[str, tuple[Entry, ...]] = {
    "Keys and models": (
        Entry(
            "… doesn't contain a usable key: …",
            "The key contains a line break, white space or quotation marks, or is a placeholder.",
            "Copy the key from the provider and set it again ([keys](security.md#keys)).",
        ),
        Entry(
            "agent '…': … has no model '…'; …",
            "The provider or model server doesn't list this model. No run started.",
            "Correct `model`. For a gateway, use `type: chatcompletion` with its `base_url`: massgen then "
            "[only notes](cli.md#before-a-cent-is-spent) that the model isn't listed.",
        ),
        Entry(
            "Claude Code isn't logged in: …",
            "The Claude Code CLI found neither a key nor a token.",
            "Set a variable that the message names, or allow your own login ([Claude Code](claude-code.md)).",
        ),
    ),
    "Configs": (
        Entry(
            "came with this directory",
            "The directory's own config requests something that could do harm.",
            "Read the requests, then run `massgen validate --trust PATH` or add `--trust` "
            "([trust](security.md#configs)).",
        ),
        Entry(
            "came from an agent",
            "The config, which an agent named over MCP, requests something harmful or more than the call allows.",
            "Read the requests, then run `massgen validate --trust PATH`. If it requests only paths, you can "
            "list them in the call's `context_paths` instead.",
        ),
        Entry(
            "You can't accept this config yet: …",
            "The config's skills have too many files, are too large, or contain something other than files.",
            "Remove what the message names from the skills directory, or remove `use_skills` from the config.",
        ),
    ),
    "When an agent fails": (
        Entry(
            "… answered …: …",
            "The call failed at the provider. 401 and 403: a wrong key or region; 402: no credit; 404: a wrong model "
            "or address; 429: too many calls; 5xx: an error on the provider's side.",
            "Find the reason [below](#why-an-agent-was-dropped).",
        ),
        Entry(
            "… answered with … instead of an event stream; is base_url right?",
            "Another service, such as a login page or a proxy, answered at this address.",
            "Correct `base_url`; `/v1` is often missing.",
        ),
        Entry(
            "… with a web page, possibly from …",
            "A proxy, a firewall or the network's login page answered instead of the model's server.",
            "Log in to the network, or check the proxy with `massgen doctor`. Hosts in `NO_PROXY` bypass the proxy.",
        ),
        Entry(
            "… ended the reply early",
            "The connection or the model server failed. massgen retries the call.",
            "If this happens often, check the server's log and memory.",
        ),
        Entry(
            "circuit open: … failed … times in a row; massgen …; last failure: …",
            "massgen pauses calls after repeated failures ([circuit](providers-traffic.md#circuit)).",
            "Fix the problem described in the message.",
        ),
        Entry(
            "no accepted action in … attempts in a row",
            "The model's replies contained neither an answer nor a vote that massgen could read.",
            "Use another model, or raise `max_enforcement_retries`.",
        ),
        Entry(
            "… in … steps; raise max_steps_per_round in orchestrator",
            "The agent used its tools without finishing.",
            "Raise `max_steps_per_round`, or ask a narrower question.",
        ),
        Entry(
            "the final answer was cut off at the model's output limit",
            "The answer exceeded `max_output_tokens` or the model's own limit, so massgen used an earlier answer.",
            "Raise `max_output_tokens`.",
        ),
    ),
    "Changes to your files": (
        Entry(
            "run … has changed none of your files",
            "`context_paths` lists no directory, or the team changed nothing in the listed directories.",
            "Add the directory to `context_paths` with `permission: write`.",
        ),
    ),
    "The sandbox": (
        Entry(
            "no container is available for agents' commands: …",
            "Docker, Podman or the image that the config requests isn't available.",
            "Start Docker or Podman, or correct the image's name.",
        ),
    ),
    "The state directory": (
        Entry(
            "cannot open the run store: …",
            "`runs.sqlite3` is damaged or unreadable.",
            "Run `massgen doctor --rebuild` to recreate the list of runs ([runs](runs.md#when-the-machine-fails)).",
        ),
    ),
}
"""By where they come up."""

CLIENT_HEAD = """
## A client does not show the server or pass its keys

Clients word these problems differently.

"""
IN_CLIENTS = (
    Entry(
        "the server failed to start, `ENOENT`, command not found",
        "`massgen-mcp` isn't on the client's PATH, which is common for clients started from the desktop.",
        "Run `massgen install CLIENT`, which writes the full path into the entry.",
    ),
    Entry(
        "the server is not in the list",
        "The entry is in another scope's file, or the client wasn't restarted.",
        "Run `massgen doctor` to list the files with an entry, or run `massgen install CLIENT` again.",
    ),
    Entry(
        "`missing_key`, though the key is set in your shell",
        "The client was started without the key, or its entry doesn't pass the key.",
        "Start the client from that shell, or run `massgen install CLIENT` there.",
    ),
    Entry(
        "a call is cut off after a minute",
        "The client limits how long a call may take.",
        "Run `massgen install CLIENT`, which raises the limit if it can. `wait_run` waits at most 50 s.",
    ),
    Entry(
        "`massgen-mcp: command not found` in a shell",
        "The directory where the virtual environment, `uv tool` or `pipx` puts programs isn't on PATH.",
        "Run `uv tool update-shell` or `pipx ensurepath`, or activate the environment.",
    ),
)
"""Problems that clients report in their own words."""
REASONS_HEAD = """
## Why an agent was dropped

The reason is in `degraded` of `get_result`, `error.reason` of `status.json` and the event `agent_dropped`. The
other agents continue, and the dropped agent's answers are kept.

"""
ENDS_HEAD = """
## Why a run ended

The reason is in `reason` of `get_result` and in the event `run_failed`. If all agents failed, the reason is one of
those in the table above. massgen keeps the best answer.

"""
WHY: Mapping[FailureReason | DropReason, str] = {
    "auth": "The provider rejected the key.",
    "quota_exhausted": "The provider account has no credit left, or has reached its limit.",
    "rate_limited": "The provider's rate limit was exceeded, even after retries.",
    "model_not_found": "The provider or server has no model with this name.",
    "unreachable": "No server answered at the address.",
    "tools_unsupported": "The server doesn't accept tools, and the model failed without them.",
    "context_too_small": "The question, the answers and the files together exceed the model's context.",
    "content_filter": "The provider's content filter blocked the reply, or the model refused to reply.",
    "provider_error": "The provider failed repeatedly.",
    "bad_request": "The provider rejected the request.",
    "bad_reply": "The reply was too large, or invalid for this API.",
    "timeout": "A call, a round or the run took too long; the message names the limit.",
    "no_action": "The model's replies contained neither an answer nor a vote that massgen could read.",
    "budget": "The next call would exceed the remaining budget.",
    "cut_off": "When the run ended, the agent had changed files but hadn't answered.",
    "internal": "A bug in massgen.",
    "no_quorum": "Too few agents remained to decide.",
    "no_answer": "No agent gave an answer.",
    "sandbox_denied": "The run needs a sandbox, but none works on this machine.",
    "config_invalid": "The config can't run on this machine.",
    "runner_lost": "The run's processes died too many times.",
}
ENDS: Mapping[str, tuple[str, str]] = {
    "timed_out": ("The run reached its time limit.", REMEDIES["timeout"]),
    "cancelled": ("A user or client cancelled the run.", "Start a new run."),
    "interrupted": (
        "The run's process died.",
        "Continue it with `massgen resume ID`.",
    ),
    "input_required": (
        "The run is waiting for a decision.",
        "Run `massgen answer`, or make the call that `next_step` names.",
    ),
}
"""States that aren't failures."""

CODES_HEAD = """
## Codes of errors

Every interface reports rejected requests as `ERROR CODE:`; in Python, the code is the attribute `code` of
`MassgenError`. On the command line, see also the [exit codes](cli.md#exit-codes).

"""


def page() -> str:
    groups = [f"\n## {title}\n\n{_said(entries)}" for title, entries in GROUPS.items()]
    dropped = [[f"`{reason}`", WHY[reason], REMEDIES[reason]] for reason in get_args(DropReason)]
    failed = [
        [f"`{reason}`", WHY[reason], REMEDIES[reason]]
        for reason in get_args(FailureReason)
        if reason not in get_args(DropReason)
    ]
    others = [[f"`{state}`", why, to_do] for state, (why, to_do) in ENDS.items()]
    return "".join(
        [
            *(HEAD, *groups),
            *(CLIENT_HEAD, _table(IN_CLIENTS)),
            *(REASONS_HEAD, table(["reason", "meaning", "what to do"], dropped)),
            *(ENDS_HEAD, table(["reason or state", "meaning", "what to do"], [*failed, *others])),
            *(CODES_HEAD, codes_table()),
        ]
    )


def _said(entries: Iterable[Entry]) -> str:
    for entry in entries:
        if not is_said(entry.seen):
            raise ValueError(f"docs/troubleshooting.py: the code does not say {entry.seen!r} any more")
    return _table(entry._replace(seen=_verbatim(entry.seen)) for entry in entries)


def _verbatim(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _table(entries: Iterable[Entry]) -> str:
    return table(["what you see", "why", "what to do"], entries)


# -- what the code says -----------------------------------------------------------------------------------------------


def is_said(message: str) -> bool:
    """Whether some text in the code has the parts of `message`, in this order."""
    parts = [part.strip() for part in message.split("…") if part.strip()]
    return any(_has(text, parts) for text in _texts())


def _has(text: str, parts: list[str]) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return True


@cache
def _texts() -> tuple[str, ...]:
    """Every text in the sources of the package, docstrings excepted, with `…` for what is put in."""
    found: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                docstrings.add(node.value)
            elif node not in docstrings and (text := _text(node)):
                found.append(text)
    return tuple(found)


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in values)
        case _:
            return ""
