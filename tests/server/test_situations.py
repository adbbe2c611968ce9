"""What a model reads in the situations in which it has to decide what to do next, over MCP.

`pytest -s tests/server/test_situations.py` prints every text.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.changes.conftest import Repository, repository
from tests.harness import TempHome, agent, events_of, home, text_of, wait_until
from tests.server.test_asking import Person, dear, waited

__all__ = ["home", "repository"]

DEAR = {"input_usd_per_million": 1_000, "output_usd_per_million": 1_000}
CODE = "".join(f"line {number}\n" for number in range(1, 21))
WANTED = CODE.replace("line 10\n", "line ten\n")
WRITES = {"call": "write_file", "arguments": {"path": "project/code", "content": WANTED}}
HANG = {"hang": True}


@dataclass(frozen=True)
class Parent:
    """A model that works through one client, and reads texts."""

    client: Client
    home: TempHome
    repository: Repository

    async def reads(self, tool: str, **arguments: Any) -> str:
        return text_of(await self.client.call_tool(tool, arguments))

    async def run(self, *agents: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any) -> str:
        """The id of a run of this team."""
        team = self.home.config("team", *agents, **(config or {}))
        started = await self.client.call_tool("start_run", {"question": "q", "team": team, **arguments})
        assert not started.is_error, text_of(started)
        assert started.structured_content is not None
        return str(started.structured_content["run_id"])

    async def changes(self, permission: str, **arguments: Any) -> str:
        """The id of a run that has changed a file of the repository."""
        self.repository.commit(code=CODE)
        paths = [{"path": str(self.repository.path), "permission": permission}]
        solo = agent("solo", WRITES, {"answer": "done"})
        return await self.run(solo, context_paths=paths, wait_seconds=50, **arguments)


async def cap_below_the_first_call(parent: Parent) -> str:
    team = [agent(name, price=DEAR) for name in ("ada", "bo", "cleo")]
    told = await parent.reads("get_result", run_id=await parent.run(*team, max_usd=0.3, wait_seconds=50))
    (enough,) = re.findall(r"max_usd (\d+) would do", told)
    again = await parent.run(*team, max_usd=float(enough), wait_seconds=50)
    assert "completed" in await parent.reads("get_status", run_id=again), "the amount that it names is enough"
    return told


async def three_refused_keys(parent: Parent) -> str:
    run_id = await parent.run(*(agent(name, {"fail": "auth"}) for name in ("ada", "bo", "cleo")), wait_seconds=50)
    return await parent.reads("get_result", run_id=run_id)


async def no_key_for_three_agents(parent: Parent) -> str:
    return await parent.reads("start_run", question="q", models=["openai/one", "openai/two", "openai/three"])


async def time_limit_of_the_call(parent: Parent) -> str:
    run_id = await parent.run(agent("ada", HANG), max_seconds=1, wait_seconds=50)
    return await parent.reads("get_result", run_id=run_id)


async def same_lines_edited(parent: Parent) -> str:
    run_id = await parent.changes("write")
    parent.repository.put(code=CODE.replace("line 10\n", "my line ten\n"))
    return await parent.reads("apply_result", run_id=run_id, dry_run=False)


async def result_with_a_patch(parent: Parent) -> str:
    return await parent.reads("get_result", run_id=await parent.changes("write"))


async def patch_that_was_read(parent: Parent) -> str:
    return await parent.reads("get_result", run_id=await parent.changes("write"), view="diff")


async def patch_of_what_is_only_read(parent: Parent) -> str:
    return await parent.reads("get_result", run_id=await parent.changes("read"), view="diff")


async def list_with_unapplied_changes(parent: Parent) -> str:
    await parent.changes("write")
    return await parent.reads("list_runs")


async def list_after_apply(parent: Parent) -> str:
    await parent.reads("apply_result", run_id=await parent.changes("write"), dry_run=False)
    return await parent.reads("list_runs")


async def apply_to_what_is_only_read(parent: Parent) -> str:
    return await parent.reads("apply_result", run_id=await parent.changes("read"))


async def check_that_failed_before(parent: Parent) -> str:
    return await parent.reads("get_result", run_id=await parent.changes("write", checks=["grep -q 'line ten' code"]))


async def check_that_fails_as_before(parent: Parent) -> str:
    return await parent.reads("get_result", run_id=await parent.changes("write", checks=["grep -q 'line 99' code"]))


async def going_on(parent: Parent) -> str:
    run_id = await parent.run(agent("ada", HANG))
    return await parent.reads("get_status", run_id=run_id)


async def cancelled(parent: Parent) -> str:
    run_id = await parent.run(agent("ada", HANG))
    run = parent.home.run_directory(run_id)
    await wait_until(lambda: any(event["type"] == "model_call_started" for event in events_of(run)))
    return await parent.reads("control_run", run_id=run_id, action="cancel")


async def cut_off(parent: Parent) -> str:
    run_id = await parent.run(*(agent(name, HANG) for name in ("ada", "bo")))
    run = parent.home.run_directory(run_id)
    await wait_until(lambda: sum(event["type"] == "model_call_started" for event in events_of(run)) == 2)
    await parent.client.call_tool("control_run", {"run_id": run_id, "action": "cancel"})
    return await parent.reads("wait_run", run_id=run_id)


async def beyond_the_end(parent: Parent) -> str:
    run_id = await parent.run(agent("ada"), wait_seconds=50)
    return await parent.reads("get_result", run_id=run_id, offset=100_000)


async def tokens_run_out_first(parent: Parent) -> str:
    run_id = await parent.run(agent("one"), agent("two"), config={"budget": {"max_tokens": 1_000}}, wait_seconds=50)
    return await parent.reads("get_result", run_id=run_id)


async def unknown_team(parent: Parent) -> str:
    return await parent.reads("start_run", question="q", team="scriptd")


async def the_budget_is_asked_for(parent: Parent) -> str:
    team = (agent("one", price=DEAR), agent("two", price=DEAR))
    run_id = await parent.run(*team, config={"budget": {"max_usd": 0.5, "at_cap": "ask"}})
    return await parent.reads("wait_run", run_id=run_id)


@dataclass(frozen=True)
class Situation:
    """What a model reads there: what it has to find, and what would mislead it."""

    brought_about: Callable[[Parent], Awaitable[str]]
    told: Sequence[str]
    not_told: Sequence[str] = ()
    once: str = ""
    """A cause that several agents share."""


SITUATIONS = [
    Situation(
        cap_below_the_first_call,
        ["max_usd 37 would do", "dropped cleo (budget)", "Start a new run with a larger max_usd."],
        once="does not fit into the budget",
    ),
    Situation(
        tokens_run_out_first,
        ["reached its budget: 0 tokens of max_tokens 1,000", "Start a new run with a larger max_tokens."],
        ["larger max_usd"],
    ),
    Situation(
        three_refused_keys, ["no agent is left: ada, bo, cleo: ", "dropped cleo (auth)"], once="scripted failure: auth"
    ),
    Situation(no_key_for_three_agents, ["OPENAI_API_KEY"], once="OPENAI_API_KEY"),
    Situation(
        time_limit_of_the_call, ["longer than 1 s", "larger max_seconds"], ["timeout_settings", "timeout_seconds"]
    ),
    Situation(
        same_lines_edited,
        [
            "project/code: you and the run",
            "Merge the diff from get_result view=diff by hand",
        ],
    ),
    Situation(result_with_a_patch, ["view=diff has the patch. To apply it: apply_result."]),
    Situation(
        patch_that_was_read,
        ["+line ten", "The diff is complete. To apply it: apply_result."],
        ["votes", "team:", "cost_usd", "run_directory", "view=full"],
    ),
    Situation(patch_of_what_is_only_read, ["by hand: git -C ", "apply -p2"], ["apply_result"]),
    Situation(
        apply_to_what_is_only_read,
        [
            "ERROR invalid_action",
            "the run had no write permission",
            "by hand: git -C ",
        ],
    ),
    Situation(check_that_failed_before, ["final): passed: ", "failed before"], ["either"]),
    Situation(check_that_fails_as_before, ["final): failed: ", "also failed before"]),
    Situation(going_on, ["before your turn ends, call wait_run until the run ends"], ["poll"]),
    Situation(cancelled, ["wait_run returns the best answer so far"], ["Continue with other work"]),
    Situation(cut_off, ["2 calls, 2 of them incomplete", "Start a new run."], [" 0 calls, "]),
    Situation(beyond_the_end, ["There is no text at this offset: the text has 23 characters."], ["is whole"]),
    Situation(
        the_budget_is_asked_for, ["would do for short replies", "action=raise_budget and value"], ["finish_now by"]
    ),
]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.brought_about.__name__)
async def test_a_model_reads_what_to_do_next(home: TempHome, repository: Repository, situation: Situation) -> None:
    async with home.client() as client:
        text = await situation.brought_about(Parent(client, home, repository))
    print(f"\n== {situation.brought_about.__name__}\n{text}")
    assert [phrase for phrase in situation.told if phrase not in text] == [], text
    assert [phrase for phrase in situation.not_told if phrase in text] == [], text
    assert not situation.once or text.count(situation.once) == 1, text


async def test_the_command_that_is_told_by_hand_brings_the_patch_in(home: TempHome, repository: Repository) -> None:
    async with home.client() as client:
        text = await patch_of_what_is_only_read(Parent(client, home, repository))
    await anyio.run_process(shlex.split(text.rpartition("by hand: ")[2]))
    assert (repository.path / "code").read_text() == WANTED


async def test_the_form_for_the_budget_speaks_to_a_person_and_proposes_an_amount(home: TempHome) -> None:
    person = Person("accept", decision="finish_now")
    async with home.client(elicitation_callback=person.asked) as client:
        await waited(client, dear(home))
    form = person.forms[0]
    assert "finish_now" not in form.message
    fields = form.requested_schema["properties"]
    assert fields["max_usd"]["default"] == 1.0, "twice the cap"
    assert fields["decision"]["enumNames"][0] == "Continue with a larger budget"
