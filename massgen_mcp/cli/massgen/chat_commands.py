"""The slash commands of the interactive mode: their names, and which one a line means."""

import re
from dataclasses import dataclass
from typing import Literal

from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import nearest

Action = Literal["help", "status", "config", "reset", "resume", "change", "quit", "history"]


@dataclass(frozen=True, slots=True)
class ChatCommand:
    names: tuple[str, ...]
    action: Action
    meaning: str
    argument: bool = False
    """Whether one word may follow the name."""


COMMANDS = (
    ChatCommand(("/help", "/h"), "help", "show the commands"),
    ChatCommand(("/status",), "status", "show agents, mode, conversation and config"),
    ChatCommand(("/config",), "config", "open the config in your editor, then take it over"),
    ChatCommand(("/clear", "/reset"), "reset", "forget the conversation and start afresh"),
    ChatCommand(("/resume",), "resume", "go on with an interrupted run: the newest here, or /resume ID", argument=True),
    ChatCommand(
        ("/change",), "change", "begin the next turn with what the winner, or /change AGENT, changed", argument=True
    ),
    ChatCommand(("/quit", "/exit", "/q"), "quit", "leave"),
)
KEYS = (
    ("r", "the coordination history: while a turn goes on, or of the last one"),
    ("Ctrl+C", "while a turn goes on: cancel it, again: leave; at the prompt: leave"),
    ("Alt+Enter", "a new line in the question"),
    ("@path", "lets the agents read a file or a directory"),
)
MEANINGS = {name: command.meaning for command in COMMANDS for name in command.names}


def order_of(text: str) -> tuple[Action, str] | None:
    """What a line asks for, and the word after it; None if it is a question.

    Raises `MassgenError` invalid_action for an unknown command.
    """
    if text == "r":
        return "history", ""
    name, _, argument = text.partition(" ")
    for command in COMMANDS:
        if name.lower() in command.names and (not argument or (command.argument and len(argument.split()) == 1)):
            return command.action, argument.strip()
    if not re.fullmatch(r"/[A-Za-z_?-]*", text):
        return None
    begun = (name for name in MEANINGS if len(text) > 1 and name.startswith(text.lower()))
    near = next(begun, None) or nearest(text, MEANINGS)
    hint = f"did you mean {near}?" if near else "/help lists them"
    raise MassgenError("invalid_action", f"no command {text}; {hint}")
