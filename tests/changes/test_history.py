"""The git of agents' commands: a repository in each copy that tells of the base, and that nothing outside reads."""

from pathlib import Path
from typing import Any

import pytest

import massgen_mcp as massgen
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.sandbox import LevelName
from tests.changes.conftest import Repository
from tests.harness import TempHome, agent, home
from tests.sandbox.table import LEVELS
from tests.teams import Ended, run_team

__all__ = ["home"]

CODE = "one\r\ntwo\r\n"


def run(command: str) -> dict[str, Any]:
    return {"call": "run_command", "arguments": {"command": command}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": content}}


def printed(ended: Ended) -> list[str]:
    return [event.result for event in ended.of(ToolFinished) if event.name == "run_command"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("versioned", [True, False])
async def test_git_tells_of_the_base_and_of_the_agent_s_own_changes_alone(
    tmp_path: Path, repository: Repository, level: LevelName, versioned: bool
) -> None:
    repository.commit(secret_past="planted\n")
    (repository.path / "secret_past").unlink()
    repository.commit(**{"code": CODE, ".gitattributes": "* text eol=lf\n", ".gitignore": "build*/\nmade\n"})
    repository.put(**{"code": f"{CODE}three\n", "build[1]/out": "x\n", "made": "x\n"})
    if not versioned:
        (repository.path / ".git").rename(tmp_path / "kept")
    before = repository.fingerprint()
    look = "cd project && git status --short && git log --format=%s && git rev-list --all --objects | wc -l"
    steps = [run(look), write("project/code", "one\n"), run(f"{look} && git diff --stat && git blame -s code")]
    data = {
        "agents": [{"backend": {"type": "scripted", "script": [*steps, {"answer": "done"}]}}],
        "orchestrator": {
            "context_paths": [{"path": str(repository.path)}],
            "commands": {"enabled": True, "sandbox": level},
        },
    }
    state = {"MASSGEN_MCP_HOME": str(tmp_path / "home")}
    ended = await run_team(tmp_path, config_from_data(data, "test", environ={}), environ=state)
    first, second = printed(ended)
    lines = first.splitlines()[1:]
    assert lines == ["The files as the run began", "5"]
    assert " M code" in second
    assert "code | 4 +---" in second
    assert "1) one" in second
    (answer,) = ended.of(AnswerSubmitted)
    assert answer.changes is not None
    assert [file.path for file in answer.changes.files] == ["project/code"]
    assert repository.fingerprint() == before


SETTINGS = """cd project && cat >>.git/config <<E
[core]
fsmonitor = touch $P/monitor
hooksPath = $P
worktree = $P
sshCommand = touch $P/ssh
[alias]
status = !touch $P/alias
diff-tree = !touch $P/alias
[filter "own"]
clean = touch $P/filter
smudge = touch $P/filter
process = touch $P/filter
[diff "own"]
textconv = touch $P/textconv
command = touch $P/command
[include]
path = $P/more
E
echo '* filter=own diff=own merge=own' | tee .gitattributes >.git/info/attributes
echo $P/.git/objects >.git/objects/info/alternates
mkdir -p .git/hooks
for name in post-checkout post-index-change pre-commit reference-transaction fsmonitor-watchman; do
printf '#!/bin/sh\\ntouch %s/hook\\n' $P >.git/hooks/$name; chmod +x .git/hooks/$name; done"""
INSIDE = """cd project && git init -q sub && cd sub && echo x >f && git add f && git commit -qm x; cd ..
git add sub; printf '[submodule "sub"]\\npath = sub\\nurl = %s\\nupdate = !touch %s/update\\n' $P $P >.gitmodules"""
ATTACKS: dict[str, tuple[str, list[str]]] = {
    "settings, hooks and objects of others": (SETTINGS, ["project/.gitattributes"]),
    "a repository inside": (INSIDE, ["project/.gitmodules"]),
    "a file in its place": ("cd project && rm -rf .git && echo gitdir: $P/.git >.git", []),
    "a link in its place": ("cd project && rm -rf .git && ln -s $P/.git .git", []),
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_whatever_an_agent_makes_of_its_repository_nothing_outside_runs_or_reads_it(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in home.environ.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(home.work)
    repository.commit(code=CODE)
    (place := home.work / "place").mkdir()
    outside = Repository(place)
    outside.git("init", "--quiet")
    outside.commit(other="of somebody else\n", more="[core]\nfsmonitor = touch more\n")
    before, of_repository = outside.fingerprint(), (repository.path / ".git/index").read_bytes()
    deed, changed = ATTACKS[name]
    steps = [run(f"P={place}\n{deed}"), write("project/code", "new\n"), run("cd project; git status"), {"answer": "d"}]
    config = home.config(
        "solo",
        agent("solo", *steps),
        orchestrator={
            "context_paths": [{"path": str(repository.path), "permission": "write"}],
            "commands": {"enabled": True, "sandbox": LEVELS[0]},
            "checks": ["! ls .git"],
        },
    )
    result = await massgen.run("q", config=config, enable_logging=True)
    assert result["applied"]["status"] == "applied", result["applied"]
    assert sorted(result["applied"]["files"]) == sorted([*changed, "project/code"])
    assert outside.fingerprint() == before, [*place.iterdir()]
    assert (repository.path / ".git/index").read_bytes() == of_repository
    assert (repository.path / "code").read_text() == "new\n"


async def test_a_copy_that_an_agent_makes_a_link_of_leads_no_repository_elsewhere(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(code=CODE)
    (place := tmp_path / "place").mkdir()
    deed = f"mv project old; ln -s {place} project"
    steps = [run(deed), run("echo still here; rm project; mv old project; rm -rf project/.git"), run("ls project/.git")]
    data = {
        "agents": [{"backend": {"type": "scripted", "script": [*steps, {"answer": "done"}]}}],
        "orchestrator": {"context_paths": [{"path": str(repository.path)}], "commands": {"enabled": True}},
    }
    state = {"MASSGEN_MCP_HOME": str(tmp_path / "home")}
    ended = await run_team(tmp_path, config_from_data(data, "test", environ={}), environ=state)
    assert ["still here" in one or "HEAD" in one for one in printed(ended)] == [False, True, True], printed(ended)
    assert [*place.iterdir()] == []
