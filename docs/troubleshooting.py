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
What you may see when something goes wrong, why, and what to do. Messages that say themselves what to do are not listed.
`…` stands for what differs each time. An error begins with its code: look that up [below](#codes-of-errors) first.

`massgen-mcp doctor` looks at keys, model servers, agent programs, the sandbox, clients and the state directory at once,
and says for each finding what to do. `massgen --debug` shows more of one run; `massgen.log` in its directory has all.
"""


class Entry(NamedTuple):
    seen: str
    why: str
    to_do: str


GROUPS: Mapping[str, tuple[Entry, ...]] = {
    "Keys and models": (
        Entry(
            "… holds no usable key: …",
            "It has a line break, white space or quotation marks, or is a placeholder.",
            "Set it again ([keys](security.md#keys)).",
        ),
        Entry(
            "agent '…': … has no model '…'; …",
            "The list of the provider, or of the model server, does not have it. No run was begun.",
            "Correct `model`. If the address is a gateway, write `type: chatcompletion` with its `base_url`: there a "
            "list does not decide ([what is looked at](cli.md#before-a-cent-is-spent)).",
        ),
        Entry(
            "claude_code is not logged in: …",
            "The Claude Code CLI has neither key nor token here.",
            "See [Claude Code](claude-code.md): set a variable, or allow your own login.",
        ),
    ),
    "Configs": (
        Entry(
            "came with this directory",
            "The directory's own config asks for what could harm.",
            "Read what it asks for, then `massgen-mcp trust PATH`, or `--trust` ([trust](security.md#configs)).",
        ),
        Entry(
            "was named by an agent",
            "An agent named this config over MCP, and it asks for what could harm, or for more than the call named.",
            "Read what it asks for, then `massgen-mcp trust PATH`. For paths it is enough that the call names them in "
            "`context_paths`.",
        ),
        Entry(
            "It cannot be accepted as it is: …",
            "Its skills are too many or too large to be checked, or something among them is no file.",
            "Take that out of the skills' directory, or leave `use_skills` out.",
        ),
    ),
    "When an agent fails": (
        Entry(
            "… answered …: …",
            "The provider refused the call: 401 and 403 are about the key (or its region), 402 about credit, 404 about "
            "the model or the address, 429 says too many calls, 5xx are its own faults.",
            "What the reason [below](#why-an-agent-was-dropped) says.",
        ),
        Entry(
            "… answered with … instead of an event stream; is base_url right?",
            "A login page, a proxy or something else is at this address.",
            "Correct `base_url`; often `/v1` is missing.",
        ),
        Entry(
            "… ended the reply before the model did",
            "The connection or the model server broke off. It is tried again.",
            "If it comes often, look at the server's log and memory.",
        ),
        Entry(
            "circuit open: … failed … times in a row and is tried again …; last failure: …",
            "No calls are sent for a while ([circuit](providers-traffic.md#circuit)).",
            "Fix the cause that it names.",
        ),
        Entry(
            "no accepted action in … attempts in a row",
            "The model neither answers nor votes in a form that can be read.",
            "Take another model; `max_enforcement_retries` allows more tries.",
        ),
        Entry(
            "… in … steps; raise max_steps_per_round in orchestrator",
            "The agent used its tools, and came to nothing.",
            "Raise the setting, or ask a smaller question.",
        ),
        Entry(
            "the final answer was cut off at the model's output limit",
            "`max_output_tokens`, or the model's own limit.",
            "Raise it; the winner's last answer is used meanwhile.",
        ),
    ),
    "What a run changed of your files": (
        Entry(
            "run … has changed no files of yours",
            "No directory was named in `context_paths`, or nothing in it was changed.",
            "Name it, with `permission: write`.",
        ),
    ),
    "The sandbox": (
        Entry(
            "agents' commands have no container: …",
            "The config asks for Docker, Podman or an image, and it is not to be had.",
            "Start the daemon, or correct the name of the image.",
        ),
    ),
    "The state directory": (
        Entry(
            "the run store cannot be opened: …",
            "`runs.sqlite3` is damaged or not readable.",
            "`massgen-mcp doctor --rebuild` makes the list of runs again ([runs](runs.md)).",
        ),
    ),
}
"""By where they come up."""

CLIENT_HEAD = """
## A client does not show the server, or its keys

The words are the clients' own, so only what they mean stands here.

"""
IN_CLIENTS = (
    Entry(
        "the server failed to start, `ENOENT`, command not found",
        "The client's PATH lacks the directory of `massgen-mcp`, as is usual when a desktop started it.",
        "`massgen-mcp install CLIENT` writes the whole path into its entry.",
    ),
    Entry(
        "the server is not in the list",
        "The entry stands in the file of another scope, or the client was not started anew.",
        "`massgen-mcp doctor` says which files know it; `massgen-mcp install CLIENT` says what is left to you.",
    ),
    Entry(
        "`missing_key`, though the key is set in your shell",
        "The client was started where it is not set, or its entry does not pass it on.",
        "Start it from that shell, or run `massgen-mcp install CLIENT` where the key is set.",
    ),
    Entry(
        "a call is cut off after a minute",
        "The client has a limit of its own for a call.",
        "`wait_run` waits at most 50 s for that reason; `install` raises the limit where a client lets it.",
    ),
    Entry(
        "`massgen-mcp: command not found` in a shell",
        "The directory of the virtual environment, of `uv tool` or of `pipx` is not on PATH.",
        "`uv tool update-shell`, `pipx ensurepath`, or activate the environment.",
    ),
)
"""Not in our words."""
REASONS_HEAD = """
## Why an agent was dropped

The word is in `degraded` of `get_result`, `error.reason` of `status.json` and the event `agent_dropped`. The others go
on; the agent's answers stay.

"""
ENDS_HEAD = """
## Why a run ended

The word is in `reason` of `get_result` and the event `run_failed`; one of those above if all agents failed for it. The
best answer is kept.

"""
WHY: Mapping[FailureReason | DropReason, str] = {
    "auth": "The provider refuses the key.",
    "quota_exhausted": "The account at the provider has no credit left, or has reached its limit.",
    "rate_limited": "The provider allows no more calls at the moment, and did not after all tries.",
    "model_not_found": "The provider or server has no model of this name.",
    "unreachable": "Nobody answers at the address.",
    "tools_unsupported": "The server refuses tools, and the model could not do without.",
    "context_too_small": "Question, answers and files do not fit into the model.",
    "content_filter": "A content filter of the provider, or the model itself, refuses to reply.",
    "provider_error": "The provider failed, again and again.",
    "bad_request": "The provider refuses the request itself.",
    "bad_reply": "What came is nothing that the API allows, or too large.",
    "timeout": "A call, a round or the run took too long; the message names the limit.",
    "no_action": "The model neither answered nor voted in a form that can be read.",
    "budget": "The next call does not fit into what is left of the budget.",
    "cut_off": "The run ended, or was decided, before it answered, and it had changed files.",
    "internal": "A fault of this program.",
    "no_quorum": "Too few agents were left to decide.",
    "no_answer": "Nobody gave an answer.",
    "sandbox_denied": "Something has to run in a sandbox, and none holds on this machine.",
    "config_invalid": "The config cannot be carried out here.",
    "runner_lost": "The process that worked on the run was lost too often.",
}
ENDS: Mapping[str, tuple[str, str]] = {
    "timed_out": ("The run's own time limit passed.", REMEDIES["timeout"]),
    "cancelled": ("Somebody cancelled it.", "Start a new run."),
    "interrupted": ("Its process was lost.", "Continue it with `massgen --resume ID` or `massgen-mcp resume ID`."),
    "input_required": (
        "It waits for a decision.",
        "`next_step` says which call decides; `massgen-mcp answer` does, too.",
    ),
}
"""States that are no failure."""

CODES_HEAD = """
## Codes of errors

Every refusal begins with `ERROR CODE:`, at every door; Python has it as `code` of `MassgenError`. Exit codes are in
[cli.md](cli.md#exit-codes-of-a-question).

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
