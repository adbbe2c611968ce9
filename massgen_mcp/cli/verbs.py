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
        "prune": "delete what is older than the limits (workspaces first, results later), or the named runs",
        "hook": "for the hooks of the Claude Code plugin",
    }
)
