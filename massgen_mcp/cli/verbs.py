"""The verbs of `massgen-mcp`, in the order in which they are told: to begin with, of one run, of all."""

from collections.abc import Mapping
from types import MappingProxyType

VERBS: Mapping[str, str] = MappingProxyType(
    {
        "demo": "see a whole run with scripted agents; needs no key",
        "doctor": "check keys, model servers, run store, runners and clients, and say what to fix",
        "install": "put this server into an MCP client",
        "uninstall": "take this server out of an MCP client",
        "acp": "be an agent of an editor, over the Agent Client Protocol; the editor starts it",
        "check-adapter": "play an installed adapter in the situations that a run brings",
        "configs": "list the ready-made teams, or show one",
        "trust": "show what a config asks for, and accept it as it is now",
        "start": "start a run in a store of several machines (--store), and upload the directories that it is given",
        "runs": "list runs, newest first",
        "status": "show what a run is doing now",
        "wait": "wait until a run has ended or needs an answer",
        "watch": "follow a run, on a terminal in the live view; leaving does not end the run",
        "result": "show a run's answer, winner and votes",
        "report": "write a run's report.html anew, and name it",
        "apply": "apply what a run changed to the directories that it was given with write: all of it, or nothing",
        "mark": "note that a run's answer proved right or wrong, for the statistics",
        "answer": "answer the question that a run has asked",
        "raise-budget": "set a new budget for a run, also one that waits for it",
        "resume": "continue an interrupted run, with the keys of this environment",
        "cancel": "stop a run and keep its best answer",
        "stats": "show figures over all ended runs: outcomes, money, wins and agreement of models",
        "web": "show runs in a browser of this machine: look at them, start, steer and apply them",
        "export": "write a run to one file, for import into another store; one that goes on leaves this store with it",
        "import": "take in the run of such a file, which goes on here if it had not ended",
        "audit": "show who of the people on a server started, steered or applied what, newest first",
        "prices": "show which price list is in use, or take in a newer one from a file or an address",
        "prune": "delete what is older than the limits (workspaces first, results later), or the named runs",
        "worker": "execute runs of a store of several machines (--store), with the keys of this environment",
        "store": "upgrade: bring such a store to this version",
        "hook": "for the hooks of the Claude Code plugin",
    }
)
WORDS_FROM_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "batch": "massgen batch QUESTIONS.jsonl asks all questions of a file",
        "chat": "`massgen` alone begins a conversation",
        "eval": "massgen eval says what a team is worth",
        "init": "massgen --init sets up a config",
        "kill": "massgen-mcp cancel ID stops a run and keeps its best answer",
        "list": "massgen-mcp runs lists runs",
        "login": "there is nothing to log in to; `massgen-mcp doctor` says which keys are set",
        "logs": "massgen-mcp watch ID follows a run, massgen-mcp result ID --view full shows all of it",
        "ls": "massgen-mcp runs lists runs",
        "models": "`massgen-mcp doctor` says which models are here",
        "review": "massgen review has a change reviewed",
        "serve": "`massgen-mcp` alone serves over stdio, --transport http over HTTP",
        "setup": "massgen --init sets up a config",
        "stop": "massgen-mcp cancel ID stops a run and keeps its best answer",
        "ui": "massgen-mcp web shows runs in a browser",
        "undo": "massgen-mcp apply ID --undo takes back what was applied",
        "validate": "massgen --validate FILE checks a config",
    }
)
"""What people type who know other programs, and what does that here."""
