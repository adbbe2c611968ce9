"""What models of real clients read of us (`tests/clients/texts/`, written by `python -m tests.clients texts`): it is
what the server says today, and nothing that is false for that client.
"""

import re

import pytest

from massgen_mcp.server.front import first_answers
from massgen_mcp.server.results.words import NOT_WOKEN, STILL_RUNNING, STILL_RUNNING_WOKEN, WOKEN
from tests.commands import ROOT

TEXTS = sorted((ROOT / "tests" / "clients" / "texts").glob("*.md"))
CLIENTS = ("claude-code", "claude-code-plugin", "codex", "codex-plugin", "copilot", "gemini", "goose", "opencode")
PLAYED = ("start_run", "wait_run", "get_status", "get_result", "control_run")


def test_every_client_that_is_driven_has_its_file() -> None:
    assert {path.stem for path in TEXTS} == {*CLIENTS}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_descriptions_are_those_of_today(client: str) -> None:
    text = next(path for path in TEXTS if path.stem == client).read_text()
    *_, newest = first_answers().values()
    tools: list[dict[str, str]] = newest["tools/list"]["tools"]  # pyright: ignore[reportAssignmentType] - as it is sent
    for tool in tools:
        if tool["name"] in PLAYED:
            assert tool["description"] in text, f"{tool['name']}: run python -m tests.clients texts"


@pytest.mark.parametrize("client", CLIENTS)
def test_who_is_promised_to_be_woken_is_woken(client: str) -> None:
    """Headless and without a trusted hook nothing wakes them, but for the hook of Claude Code's plugin."""
    text = next(path for path in TEXTS if path.stem == client).read_text()
    replies = text.partition("## Reply to")[2]
    first = replies.partition("## Reply to")[0]
    assert NOT_WOKEN in first, "a hook that has not run counts for nothing"
    woken = client == "claude-code-plugin"
    assert (WOKEN in replies, STILL_RUNNING_WOKEN in replies, STILL_RUNNING in replies) == (woken, woken, not woken)
    assert not re.search(r"\bpoll", replies)
