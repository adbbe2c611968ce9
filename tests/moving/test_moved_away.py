"""What the old store shows of a run that was moved: where it is, and nothing to do with it that would be refused."""

from typing import Any

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, agent, call, home, poll_until
from tests.interrupted import killed, the_only_run
from tests.moving.stores import Stored
from tests.moving.test_moving import homes
from tests.people.test_over_http import OPERATOR, ask, bearer, serving
from tests.terminal import terminal
from tests.web.test_access import visitor
from tests.web.test_streams import streamed

__all__ = ["home", "homes"]

ASK: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}


async def test_everybody_who_shows_a_moved_run_says_where_it_is_and_offers_nothing_that_is_refused(
    homes: tuple[Stored, Stored],
) -> None:
    here, there = homes
    file = here.home.work / "run.tar.gz"
    config = here.home.config("asking", agent("solo", ASK, {"answer": "42"}), orchestrator={"allow_questions": True})
    run_id = here.start(config)
    poll_until(lambda: here.told("status", run_id)["status"] == "input_required")
    here.verb("export", run_id, "--to", file)
    assert f"(moved to {file}" in here.verb("runs")
    for verb, code in (("status", 0), ("wait", 4), ("result", 2)):
        told = here.verb(verb, run_id, code=code)
        assert f"moved to {file}" in told, verb
        assert "Metres or feet?" not in told, "there its caller is asked"
    assert f"moved to {file}" in here.verb("watch", run_id, "--plain", code=4)
    async with visitor(here.home) as http:
        (line,) = (await http.get("/api/runs")).json()["runs"]
        assert line["reason"].startswith("moved to ")
        (_, page), *_ = await streamed(http, run_id)
        assert (page["actions"], page["headline"], page["reason"]) == ([], "moved", None)
        assert page["story"].startswith(f"The run was moved to {file}")
        assert page["notes"] == []
    async with serving(here.home.with_variables(MASSGEN_MCP_HTTP_TOKEN=OPERATOR)) as url:
        assert "massgen_runs{" not in (await ask(url, "GET", "/metrics", headers=bearer(OPERATOR))).text
    async with here.home.client() as client:
        told = await call(client, "get_status", run_id=run_id)
        assert told["reason"].startswith(f"moved to {file}")
        assert "control_run" not in told["next_step"]
        refused = await client.call_tool("control_run", {"run_id": run_id, "action": "resume"})
        assert (refused.is_error, "moved to" in str(refused.content)) == (True, True)
    there.verb("import", file)
    poll_until(lambda: there.told("status", run_id)["status"] == "input_required")
    assert "Metres or feet?" in there.verb("status", run_id)
    there.verb("answer", run_id, "Metres.")
    there.verb("wait", run_id)
    assert there.told("result", run_id)["answer"] == "42"


def test_the_chat_offers_no_run_that_was_moved_and_says_where_it_is(homes: tuple[Stored, Stored]) -> None:
    here, _ = homes
    killed(here.home, "answer_submitted")
    run_id, file = str(the_only_run(here.home)["run_id"]), here.home.work / "run.tar.gz"
    here.verb("export", run_id, "--to", file)
    with terminal(here.home, "--config", "@examples/scripted") as window:
        window.say("/resume")
        window.wait_for("this directory has no interrupted run")
        assert "was interrupted" not in window.everything
    resumed = run_command(here.home, COMMAND_MODULE, "--resume", run_id)
    assert (resumed.returncode, f"run {run_id} was moved to {file}" in resumed.stderr) == (1, True), resumed.stderr
