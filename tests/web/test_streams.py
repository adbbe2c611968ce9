"""What the stream of a run holds, asked without a browser, when the run stands still."""

import json
from dataclasses import replace
from typing import Any

import httpx2

from tests.harness import TempHome, agent, poll_until
from tests.page.test_report import data_of
from tests.web.test_access import visitor

KEY = "sk-own-4Wq8Zr2Kx7Lm5Tv9Bc3N"


async def started(http: httpx2.AsyncClient, **arguments: Any) -> str:
    """The id of a run that has ended."""
    reply = await http.post("/api/tools/start_run", json={"question": "q", "wait_seconds": 50, **arguments})
    assert reply.status_code == 200, reply.text
    return reply.json()["run_id"]


async def streamed(http: httpx2.AsyncClient, run_id: str) -> list[tuple[str, dict[str, Any]]]:
    told = (await http.get(f"/api/runs/{run_id}")).text.split("\n\n")[:-1]
    events = [one.split("\n") for one in told]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in events]


async def test_a_key_that_an_agent_took_out_of_a_file_is_in_no_page(home: TempHome) -> None:
    home = replace(home, extra={"OWN_API_KEY": KEY})  # not searched for in the end: the patch itself holds it
    (home.work / "project").mkdir()
    (home.work / "project" / "conf.py").write_text(f"A = 1\nKEY = '{KEY}'\nB = 2\n")
    write = {"path": "project/conf.py", "content": "A = 1\nB = 2\n"}
    config = home.config("taking", agent("ada", {"call": "write_file", "arguments": write}, {"answer": "Gone."}))
    async with visitor(home) as http:
        paths = [{"path": str(home.work / "project"), "permission": "write"}]
        run_id = await started(http, config=config, context_paths=paths)
        (_, page), *_ = await streamed(http, run_id)
    report = home.run_directory(run_id) / "report.html"
    poll_until(report.exists)
    for data in (page, data_of(report)):
        (patch,) = data["patches"].values()
        assert "-KEY = '[key OWN_API_KEY]'" in patch["text"]
        assert (patch["left_out"], KEY in json.dumps(data)) == (0, False)


async def test_runs_are_listed_that_were_begun_from_one_moment_on_and_before_another(home: TempHome) -> None:
    async with visitor(home) as http:
        run_id = await started(http, config=home.config("one", agent("ada", {"answer": "Fine."})))
        (run,) = (await http.get("/api/runs")).json()["runs"]
        created: float = run["started"]
        for bounds, listed in (
            ({"before": created + 60}, [run_id]),
            ({"before": created - 60}, []),
            ({"since": created - 60}, [run_id]),
            ({"since": created + 60}, []),
        ):
            found = (await http.get("/api/runs", params=bounds)).json()["runs"]
            assert [one["run_id"] for one in found] == listed, bounds


async def test_a_run_whose_record_is_damaged_or_cut_off_is_drawn_as_far_as_it_is_whole_and_says_so(
    home: TempHome,
) -> None:
    def changed(lines: list[bytes]) -> list[bytes]:
        return [*lines[:2], lines[2].replace(b'"', b"'", 1), *lines[3:]]

    def cut(lines: list[bytes]) -> list[bytes]:
        return lines[:-3]

    config = home.config("one", agent("ada", {"answer": "Fine."}))
    async with visitor(home) as http:
        for harm, told in ((changed, "is damaged from event 3 on"), (cut, "ends after event")):
            run_id = await started(http, config=config)
            journal = home.run_directory(run_id) / "events.jsonl"
            journal.write_bytes(b"".join(harm(journal.read_bytes().splitlines(keepends=True))))
            (kind, page), (after, _) = await streamed(http, run_id)
            assert (kind, after, page["run_id"]) == ("page", "end", run_id)
            assert told in " ".join(page["notes"])


async def test_a_person_who_raises_the_budget_on_the_page_is_not_asked_again(home: TempHome) -> None:
    price = {"input_usd_per_million": 1_000, "output_usd_per_million": 1_000}
    config = home.config("dear", agent("ada", price=price), budget={"max_usd": 0.1, "at_cap": "ask"})
    async with visitor(home) as http:
        run_id = await started(http, config=config)
        raised = {"run_id": run_id, "action": "raise_budget", "value": 500}
        assert (await http.post("/api/tools/control_run", json=raised)).status_code == 200
        done = (await http.post("/api/tools/wait_run", json={"run_id": run_id, "timeout_seconds": 45})).json()
    assert done["status"] == "completed"
