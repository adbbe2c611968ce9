"""A part of a patch, or another agent's, comes back to the person's directory; what runs by itself only by name."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import massgen_mcp as massgen
from massgen_mcp.changes.apply import merged
from massgen_mcp.changes.base import BaseDirectory
from massgen_mcp.changes.choosing import Patch, choose
from massgen_mcp.changes.files import EXECUTABLE, LINK, REGULAR, TreeFile
from massgen_mcp.changes.repository import PrivateRepository, TreeId
from massgen_mcp.changes.tool_files import find_tool
from massgen_mcp.errors import MassgenError
from tests.changes.conftest import Repository
from tests.changes.test_apply import CODE, changed_by_a_run, config_of, verb, write
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, call, expect_error, home
from tests.server.reply_check import check_reply

__all__ = ["home"]

FIRST = CODE.replace("line 2\n", "line two\n")
SECOND = CODE.replace("line 18\n", "line eighteen\n")
BOTH = FIRST.replace("line 18\n", "line eighteen\n")


async def apply(client: Client, run_id: str, *paths: str, **arguments: Any) -> dict[str, Any]:
    given = {"run_id": run_id, "dry_run": False, "paths": list(paths), **arguments}
    return check_reply(await client.call_tool("apply_result", given))


# -- hunks ------------------------------------------------------------------------------------------------------------


async def test_hunks_are_numbered_in_the_diff_applied_one_after_the_other_and_taken_back(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE, other="o\n")
    before = repository.fingerprint()
    async with home.client() as client:
        run_id = await changed_by_a_run(
            client, home, repository, write("project/code", BOTH), write("project/other", "p\n")
        )
        shown = (await call(client, "get_result", run_id=run_id, view="diff"))["answer"]
        assert [line for line in shown.splitlines() if line.startswith("@@")] == [
            "@@ -1,5 +1,5 @@ #1",
            "@@ -15,6 +15,6 @@ #2 line 14",
            "@@ -1 +1 @@ #1",
        ]
        part = await apply(client, run_id, "project/code#2")
        assert part["status"] == "applied"
        assert [one["path"] for one in part["left_out"]] == ["project/code#1", "project/other"]
        assert (repository.path / "code").read_text() == SECOND
        await apply(client, run_id, "project/code#1")
        assert (repository.path / "code").read_text() == BOTH, "as if both had been applied together"
        assert (repository.path / "other").read_text() == "o\n"
    assert verb(home, "--undo", run_id)[0] == 0
    assert (repository.path / "code").read_text() == SECOND
    assert verb(home, "--undo", run_id)[0] == 0
    assert repository.fingerprint() == before
    code, whole = verb(home, run_id, "--paths", "project/code#1", "project/code#2")
    assert (code, [one["path"] for one in whole["left_out"]]) == (0, ["project/other"])
    assert (repository.path / "code").read_text() == BOTH
    (repository.path / "code").write_text(CODE)
    shown = run_command(home, SERVER_MODULE, "result", run_id, "--view", "diff").stdout
    (home.path / "shown.patch").write_text(shown[: shown.index("\n\n") + 1])
    repository.git("apply", "-p2", "--include=code", str(home.path / "shown.patch"))
    assert (repository.path / "code").read_text() == BOTH, "git takes the shown diff"


async def test_what_is_no_hunk_is_refused_with_what_there_is(home: TempHome, repository: Repository) -> None:
    repository.commit(code=CODE)
    async with home.client() as client:
        steps = write("project/code", BOTH), write("project/new", "n\n")
        run_id = await changed_by_a_run(client, home, repository, *steps)
        before = repository.fingerprint()
        for paths, told in (
            (["project/code#3"], "project/code has no hunk #3; it has #1 to #2"),
            (["project/code#0"], "it has #1 to #2"),
            (["project/new#1"], "project/new is added, so massgen can apply it only as a whole"),
            (["project/absent#1"], "it changed: project/code, project/new"),
            (["project", "project/code#1"], "you named both"),
        ):
            code, message = await expect_error(client, "apply_result", run_id=run_id, dry_run=False, paths=paths)
            assert (code, told in message) == ("invalid_arguments", True), message
        assert repository.fingerprint() == before


async def test_a_file_is_named_as_it_is_shown_also_where_its_name_is_no_text(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(**{"a\u2028b": CODE})
    async with home.client() as client:
        steps = write("project/a\u2028b", BOTH), write("project/c\u2028d", "n\n"), write("project/other", "o\n")
        run_id = await changed_by_a_run(client, home, repository, *steps)
        shown = [one["path"] for one in (await call(client, "get_result", run_id=run_id))["files"]["listed"]]
        assert shown == ["project/a\\u2028b", "project/c\\u2028d", "project/other"]
        part = await apply(client, run_id, f"{shown[0]}#2", shown[1])
    assert [one["path"] for one in part["left_out"]] == [f"{shown[0]}#1", shown[2]]
    assert (repository.path / "a\u2028b").read_text() == SECOND


# -- trees of a private repository, where no run is needed ------------------------------------------------------------

Files = Mapping[str, tuple[str, bytes]]


@pytest.fixture
def private(tmp_path: Path) -> PrivateRepository:
    return PrivateRepository.create(tmp_path / "objects.git")


def tree(private: PrivateRepository, files: Files) -> TreeId:
    return private.tree_of(
        {f"project/{path}".encode(): TreeFile(mode, private.put(content)) for path, (mode, content) in files.items()}
    )


def patch(private: PrivateRepository, before: Files, after: Files) -> Patch:
    place = BaseDirectory(name="project", path="/absent/project", writable=True, files=len(before))
    return Patch((place,), tree(private, before), tree(private, after))


def left_out(private: PrivateRepository, made: Patch, *paths: str) -> dict[str, str]:
    return {one.path.removeprefix("project/"): one.reason for one in choose(private, made, paths).left_out}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param((REGULAR, b"\0one"), (REGULAR, b"\0two"), id="binary"),
        pytest.param((REGULAR, b"one\n"), (EXECUTABLE, b"two\n"), id="mode"),
        pytest.param((LINK, b"one"), (LINK, b"two"), id="link"),
        pytest.param((REGULAR, b"one"), (LINK, b"two"), id="type"),
        pytest.param((REGULAR, b"one\n"), None, id="deleted"),
    ],
)
def test_what_is_no_plain_change_of_a_text_has_no_hunks(
    private: PrivateRepository, before: tuple[str, bytes], after: tuple[str, bytes] | None
) -> None:
    made = patch(private, {"it": before}, {"it": after} if after else {"other": before, "another": (REGULAR, b"x")})
    assert left_out(private, made, "project/it") is not None
    with pytest.raises(MassgenError, match="as a whole"):
        choose(private, made, ["project/it#1"])


def test_hunks_one_after_the_other_come_to_the_same_as_all_together(private: PrivateRepository) -> None:
    chance = random.Random(7)
    for _ in range(12):
        lines = [f"{chance.randrange(40)}\r\n".encode() for _ in range(80)]
        after = list(lines)
        for at in sorted(chance.sample(range(0, 80, 10), 4), reverse=True):
            after[at : at + chance.randrange(3)] = [b"new %d\n" % at] * chance.randrange(1, 3)
        after[-1:] = [chance.choice([b"last", b"last\n"])]
        made = patch(private, {"it": (REGULAR, b"".join(lines))}, {"it": (REGULAR, b"".join(after))})
        (change,) = private.changes(made.base, made.theirs)
        assert change.before is not None
        assert change.after is not None
        numbers = list(range(1, len(private.hunks(change.before, change.after)) + 1))
        chance.shuffle(numbers)
        now = made.base
        for number in numbers:
            found = merged(private, now, choose(private, made, [f"project/it#{number}"]))
            assert not found.refused
            now = found.after
        assert now == made.theirs
        *most, last = [f"project/it#{number}" for number in numbers]
        assert choose(private, made, [*most, last]).theirs == made.theirs
        most_of_it = merged(private, made.base, choose(private, made, most)).after
        assert merged(private, most_of_it, choose(private, made, [last])).after == made.theirs


# -- what runs by itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "tool"),
    [
        (".claude/settings.json", "Claude Code"),
        ("packages/x/.vscode/tasks.json", "VS Code"),
        (".GitHub/Workflows/ci.yml", "GitHub Actions"),
        (".cl\u200baude/hooks/x", "Claude Code"),
        (".Mcp.JSON", "MCP clients"),
        (".husky/pre-commit", "git hooks"),
        ("sub/.envrc", "direnv"),
        (".massgen/config.yaml", "MassGen"),
        (".idea/runConfigurations/x.xml", "JetBrains IDEs"),
        ("docs/CLAUDE.md", "Claude Code"),
        (".devcontainer/devcontainer.json", "dev containers"),
        (".pre-commit-config.yaml", "pre-commit"),
    ],
)
def test_a_new_file_that_runs_by_itself_is_left_out_unless_it_is_named(
    private: PrivateRepository, path: str, tool: str
) -> None:
    made = patch(private, {}, {path: (REGULAR, b"x"), "plain": (REGULAR, b"y")})
    assert list(left_out(private, made)) == [path]
    assert f"{tool} may run this file without asking" in left_out(private, made)[path]
    assert path in left_out(private, made, "project"), "a directory around it is no name of it"
    assert choose(private, made, [f"project/{path}", "project/plain"]).theirs == made.theirs


@pytest.mark.parametrize("path", ["src/claude.py", ".github/README.md", "vscode/tasks.json", "agents/a.py", "hooks/x"])
def test_a_file_of_a_like_name_is_applied(private: PrivateRepository, path: str) -> None:
    assert left_out(private, patch(private, {}, {path: (REGULAR, b"x")})) == {}


LISTS = Path(__file__).parent
RUNNING = (LISTS / "self_running_files.txt").read_text().splitlines()
"""Settings of editors and agents, hooks, CI of every service, start files of tools and shells, version control."""
ORDINARY = (LISTS / "ordinary_files.txt").read_text().splitlines()
"""Files of 18 public repositories, drawn at random."""


def test_whatever_kind_of_file_runs_by_itself_it_is_left_out_and_named_and_can_be_applied_by_name(
    private: PrivateRepository,
) -> None:
    made = patch(private, {}, dict.fromkeys((*RUNNING, "src/a.py"), (REGULAR, b"x")))
    assert len(RUNNING) > 240
    assert set(RUNNING) - left_out(private, made).keys() == set()
    assert "src/a.py" not in left_out(private, made)
    named = left_out(private, made, "project/.hg/hgrc", "project/.amp", "project/src")
    assert {".hg/hgrc", ".amp/settings.json", "src/a.py"}.isdisjoint(named)
    assert ".jj/repo/config.toml" in named


def test_at_most_two_of_two_hundred_files_of_real_repositories_are_left_out(private: PrivateRepository) -> None:
    assert len(ORDINARY) == 200
    assert len(left_out(private, patch(private, {}, dict.fromkeys(ORDINARY, (REGULAR, b"x"))))) <= 2


def test_a_name_with_a_dot_that_nobody_knows_is_left_out_but_for_data_of_tests_and_the_directory_itself() -> None:
    for path in ("p/.agent-of-next-year/tools.json", "p/sub/.unheard.yml", "p/.UNHEARD/x", "p/tests/.claude/hooks/x"):
        assert find_tool(path), path
    for path in ("p/tests/.hidden/x", "p/fixtures/.a.yml", ".dotfiles/a.txt", "p/.prettierrc.json", "p/a/.gitignore"):
        assert find_tool(path) is None, path
    assert find_tool("p/.eslintrc", link=True), "whatever it leads to would lie below it"


def test_links_and_renames_are_no_way_around(private: PrivateRepository) -> None:
    script = (REGULAR, b"a script that is long enough to be known again\n")
    chain = {".claude": (LINK, b"a"), "a": (LINK, b"b")}
    for before, after, expected in (
        ({}, {"ours/settings.json": script, ".claude": (LINK, b"ours")}, {"ours/settings.json", ".claude"}),
        ({}, {"x/workflows/ci.yml": script, ".github": (LINK, b"x")}, {"x/workflows/ci.yml", ".github"}),
        (chain, {**chain, "b/c": script}, {"b/c"}),
        ({"lib": (LINK, b"/absent/project/in")}, {"in/x": script, "lib": (LINK, b"/absent/project/in")}, set[str]()),
        ({"plain": script}, {".husky/pre-commit": script}, {".husky/pre-commit"}),
        ({".husky/pre-commit": script}, {"plain": script}, {"plain"}),
        ({".github/workflows/ci.yml": script}, {}, {".github/workflows/ci.yml"}),
    ):
        assert set(left_out(private, patch(private, before, after))) == expected


async def test_what_runs_by_itself_is_named_wherever_changes_are_told_and_taken_only_by_name(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    steps = write("project/code", BOTH), write("project/.claude/settings.json", "{}\n")
    async with home.client() as client:
        run_id = await changed_by_a_run(client, home, repository, *steps)
        result = await call(client, "get_result", run_id=run_id)
        assert [one.get("runs_in") for one in result["files"]["listed"]] == ["Claude Code", None]
        shown = (await call(client, "get_result", run_id=run_id, view="diff"))["answer"]
        assert shown.startswith(
            "# The next file runs by itself: Claude Code\ndiff --git a/project/.claude/settings.json"
        )
        looked = await call(client, "apply_result", run_id=run_id)
        applied = await apply(client, run_id)
        again = await apply(client, run_id)
    for reply in (looked, applied, again):
        (out,) = reply["left_out"]
        assert out["path"] == "project/.claude/settings.json"
        assert "Claude Code" in out["reason"]
        assert "paths" in out["reason"]
    assert [looked["status"], applied["status"], again["status"]] == ["clean", "applied", "unchanged"]
    assert not (repository.path / ".claude").exists()
    told = run_command(home, SERVER_MODULE, "apply", run_id, "--paths", "project/.claude/settings.json")
    assert "added project/.claude/settings.json +1 -0 (runs automatically: Claude Code)" in told.stdout
    assert (repository.path / ".claude" / "settings.json").read_text() == "{}\n"
    assert [verb(home, "--undo", run_id)[0] for _ in range(2)] == [0, 0]
    assert repository.fingerprint() == before


async def test_at_the_end_of_a_run_what_runs_by_itself_is_left_out(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    repository.commit(code=CODE)
    config = config_of(home, repository, write("project/.github/workflows/ci.yml", "on: push\n"))
    done = run_command(home, COMMAND_MODULE, "--config", config, "--automation", "q")
    assert (
        "APPLIED: 0 files; left out: project/.github/workflows/ci.yml: GitHub Actions may run this file" in done.stdout
    )
    applied = (await massgen.run("q", config=config))["applied"]
    assert [one["path"] for one in applied["left_out"]] == ["project/.github/workflows/ci.yml"]
    assert not (repository.path / ".github").exists()


# -- another agent's --------------------------------------------------------------------------------------------------


async def test_what_another_agent_changed_is_applied_also_of_one_that_was_dropped(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    before = repository.fingerprint()
    config = home.config(
        "two",
        agent("ada", *[write("project/code", BOTH)] * 3, model="m-1"),
        agent("bo", write("project/code", CODE + "bo\n"), {"answer": "done"}, model="m-1"),
        orchestrator={"max_steps_per_round": 2},
    )
    paths = [{"path": str(repository.path), "permission": "write"}]
    given = {"config": config, "context_paths": paths, "checks": ["true"], "wait_seconds": 50}
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", **given))["run_id"]
        diff = await call(client, "get_result", run_id=run_id, view="diff", agent="ada")
        assert "apply_result agent=ada" in diff["next_step"]
        part = await apply(client, run_id, "project/code#2", agent="ada")
        assert part["status"] == "applied"
        no = "The checks did not run on exactly these changes, only on all changes of the agent"
        own = "The unfinished files of ada pass the checks"
        assert part["checks"] == f"{no}. {own}"
        assert (repository.path / "code").read_text() == SECOND
        whole = await apply(client, run_id, dry_run=True)
        assert whole["checks"] == "The final files pass the checks"
        code, told = await expect_error(client, "apply_result", run_id=run_id, agent="eve")
        assert (code, told) == ("invalid_arguments", "`agent` must be one of: ada, bo")
    assert verb(home, "--undo", run_id)[0] == 0
    assert repository.fingerprint() == before
    code, applied = verb(home, run_id, "--agent", "ada")
    assert (code, applied["status"]) == (0, "applied")
    assert (repository.path / "code").read_text() == BOTH


async def test_each_agents_changes_go_to_a_branch_of_its_own_or_none_is_made(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(code=CODE)
    repository.put(mine="not committed\n")
    before = repository.git("status", "--porcelain"), (repository.path / ".git" / "index").read_bytes()
    config = home.config(
        "three",
        agent("ada", *[write("project/code", FIRST)] * 3, model="m-1"),
        agent("bo", write("project/code", SECOND), {"answer": "done"}, model="m-1"),
        agent("cy", {"answer": "nothing to do"}, {"vote": "agent1"}, model="m-1"),
        orchestrator={"max_steps_per_round": 2},
    )
    paths = [{"path": str(repository.path), "permission": "write"}]
    async with home.client() as client:
        given = {"config": config, "context_paths": paths, "wait_seconds": 50}
        run_id = (await call(client, "start_run", question="q", **given))["run_id"]
    wanted = (run_id, "--all", "--branch")
    repository.git("branch", "taken/bo")
    repository.git("branch", "in/bo/its/way")
    repository.git("branch", "above")
    for prefix, told in (
        ("taken", "the branch 'taken/bo' already exists"),
        ("in", "the branch 'in/bo/its/way' already exists"),
        ("above", "the branch 'above' already exists"),
        ("-d", "'-d/ada' isn't a valid branch name"),
        ("../x", "isn't a valid branch name"),
    ):
        code, refused = verb(home, *wanted[:2], f"--branch={prefix}")
        assert (code, told in refused["error"]) == (1, True), refused
    assert repository.git("branch", "--list", "*ada*") == "", "nothing was made"
    assert verb(home, *wanted, "try", "--dry-run")[0] == 0
    assert repository.git("branch", "--list", "try/*") == ""
    done = run_command(home, SERVER_MODULE, "apply", *wanted, "try", "--json")
    made = [(one["status"], one["branch"]) for one in json.loads(done.stdout)]
    assert (done.returncode, made) == (0, [("applied", "try/ada"), ("applied", "try/bo")]), "cy changed nothing"
    assert [repository.git("show", f"try/{name}:code") for name in ("ada", "bo")] == [FIRST, SECOND]
    assert repository.git("log", "--format=%s", "try/ada").splitlines()[1:] == ["a commit"]
    assert (repository.git("status", "--porcelain"), (repository.path / ".git" / "index").read_bytes()) == before
    told = run_command(home, SERVER_MODULE, "apply", *wanted, "more")
    assert "applied on branch more/bo: " in told.stdout


async def test_there_are_no_branches_without_git_and_none_of_a_run_that_changed_nothing(
    home: TempHome, tmp_path: Path
) -> None:
    plain = Repository(tmp_path / "plain")
    plain.put(code=CODE)
    async with home.client() as client:
        changed = await changed_by_a_run(client, home, plain, write("plain/code", FIRST))
        nothing = await changed_by_a_run(client, home, plain)
    for run_id, told in (
        (changed, "to create a branch, a single SHA-1 git repository"),
        (nothing, "has changed none of your files"),
    ):
        code, refused = verb(home, run_id, "--all", "--branch", "try")
        assert (code, told in refused["error"]) == (1, True), refused
