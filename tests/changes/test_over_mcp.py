"""What an MCP client and a command line are told of the files that a run's answer changes."""

import re
from pathlib import Path

from massgen_mcp.server.results.reply import MAX_BYTES, json_bytes
from tests.changes.conftest import Repository
from tests.commands import run_command
from tests.harness import TempHome, agent, call, expect_error, home, whole_answer

__all__ = ["home"]

MANY = 60


def config_of(home: TempHome) -> str:
    edits = [
        {
            "call": "write_file",
            "arguments": {"path": f"project/file-{n:02}", "content": "".join(f"{n} {line}\n" for line in range(40))},
        }
        for n in range(MANY)
    ]
    return home.config(
        "makers", agent("ada", *edits, {"answer": "made"}, model="m-1"), orchestrator={"max_steps_per_round": 100}
    )


async def test_a_result_lists_the_changed_files_and_its_diff_is_paged(home: TempHome, repository: Repository) -> None:
    repository.commit(**{"file-00": "old\n"})
    before = repository.fingerprint()
    paths = [{"path": str(repository.path), "permission": "write"}]
    async with home.client() as client:
        started = await call(
            client, "start_run", question="q", config=config_of(home), context_paths=paths, wait_seconds=50
        )
        run_id = started["run_id"]
        result = await call(client, "get_result", run_id=run_id)
        files = result["files"]
        assert files["of_files"] == MANY
        assert (files["added"], files["removed"]) == (MANY * 40, 1)
        assert files["listed"][0] == {"path": "project/file-00", "change": "modified", "added": 40, "removed": 1}
        assert len(files["listed"]) < MANY
        assert result["truncated"]
        assert "view=diff" in result["next_step"]
        patch = Path(result["paths"]["patch"]).read_text()
        shown = re.sub(r"^(@@ .* @@)", r"\1 #1", patch, flags=re.MULTILINE)

        page = await call(client, "get_result", run_id=run_id, view="diff")
        assert json_bytes(page) <= MAX_BYTES
        assert await whole_answer(client, run_id, view="diff") == shown
        assert patch.count("diff --git a/project/file-") == MANY
        own = await call(client, "get_result", run_id=run_id, view="diff", agent="ada")
        assert own["answer"].startswith("diff --git")
        address = f"massgen://runs/{run_id}/artifacts/final/agent_a/changes.patch"
        (resource,) = (await client.read_resource(address)).contents
        assert getattr(resource, "text", "") == patch
    assert repository.fingerprint() == before
    done = run_command(home, "massgen_mcp.cli.massgen_mcp.main", "result", run_id, "--view", "diff")
    assert shown in done.stdout


async def test_what_a_dropped_agent_had_changed_is_kept_and_shown(home: TempHome, repository: Repository) -> None:
    repository.commit(**{"file-00": "old\n"})
    write = {"call": "write_file", "arguments": {"path": "project/file-00", "content": "half done\n"}}
    config = home.config(
        "slow",
        agent("ada", *[write] * 3, model="m-1"),
        agent("bo", {"answer": "done"}, model="m-1"),
        orchestrator={"max_steps_per_round": 2},
    )
    paths = [{"path": str(repository.path), "permission": "write"}]
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, context_paths=paths, wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
        assert (result["answer"], result["winner"]) == ("done", "bo")
        (dropped,) = result["degraded"]
        assert (dropped["agent"], dropped["unfinished"]) == ("ada", "1 file changed, +1 -1 lines")
        own = await call(client, "get_result", run_id=started["run_id"], view="diff", agent="ada")
        assert "+half done" in own["answer"]
    options = ["result", started["run_id"], "--view", "diff", "--agent", "ada"]
    done = run_command(home, "massgen_mcp.cli.massgen_mcp.main", *options)
    assert "+half done" in done.stdout
    done = run_command(home, "massgen_mcp.cli.massgen_mcp.main", "result", started["run_id"])
    assert "ada left 1 file changed, +1 -1 lines; see --view diff --agent ada" in done.stdout


async def test_where_nobody_answered_the_result_is_what_was_left_unfinished(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(**{"file-00": "old\n"})
    write = {"call": "write_file", "arguments": {"path": "project/file-00", "content": "half done\n"}}
    config = home.config(
        "slow", agent("ada", *[write] * 3, model="m-1"), orchestrator={"max_steps_per_round": 2, "checks": ["true"]}
    )
    paths = [{"path": str(repository.path), "permission": "write"}]
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, context_paths=paths, wait_seconds=50)
        run_id = started["run_id"]
        result = await call(client, "get_result", run_id=run_id)
        assert (result["status"], result["outcome"], result["files"]["of_files"]) == ("failed", "unfinished", 1)
        left = "1 file changed, +1 -1 lines"
        assert result["answer"] == f"Unfinished: ada gave no answer (no_action). Its changes: {left}."
        assert "No agent answered. These are the unfinished files of ada." in result["note"]
        assert [(one["of"], one["agent"], one["result"]) for one in result["checks"][:1]] == [
            ("unfinished", "ada", "passed")
        ]
        assert result["next_step"].startswith("No agent answered; this is unfinished work.")
        diff = await call(client, "get_result", run_id=run_id, view="diff")
        assert "+half done" in diff["answer"]
        applied = await call(client, "apply_result", run_id=run_id, dry_run=False)
        assert applied["checks"] == "The unfinished files of ada pass the checks"
    assert (repository.path / "file-00").read_text() == "half done\n"


async def test_a_run_without_a_directory_has_no_patch_and_says_so(home: TempHome) -> None:
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config="scripted", wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
        assert "files" not in result
        code, message = await expect_error(client, "get_result", run_id=started["run_id"], view="diff")
    assert code == "invalid_arguments"
    assert "has no patch" in message
