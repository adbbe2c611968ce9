"""`action.yml`: what a pull request says reaches nobody's key, and of its own job nothing is believed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import yaml

from release.check import workflows_to_copy
from tests.cli.reviewers import Reviewer, finding, reviewing
from tests.commands import ROOT
from tests.harness import TempHome, home
from tests.test_workflows import PINNED

__all__ = ["home"]

ACTION = ROOT / "action.yml"
SHA = "0123456789012345678901234567890123456789"
BASE = SHA[::-1]
DIFF = "diff --git a/shop.py b/shop.py\n--- a/shop.py\n+++ b/shop.py\n@@ -1 +1,2 @@\n import re\n+total = 1\n"
GH = """\
#!/usr/bin/env bash
# GitHub, as far as the action asks for it: what is posted is kept.
echo "$*" >> calls.txt
case "$*" in
    *"/compare/$BASE...$HEAD_SHA -H Accept: application/vnd.github.diff"*) cat "$GITHUB/diff" ;;
    *"repos/o/r/pulls "*) jq -r "${@: -1}" "$GITHUB/pulls" ;;
    *check-runs*) cat > "$GITHUB/check.json" ;;
    *"-F body=@"*)
        cp comment.md "$GITHUB/comment.md"
        jq -Rs '[{user: {login: env.LOGIN}, body: .}]' < comment.md > "$GITHUB/comments" ;;
    *comments*) jq -r "${@: -1}" "$GITHUB/comments" ;;
    *) exit 1 ;;
esac
"""


def script(name: str, place: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    programs = f"{place / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "RUNNER_TEMP": str(place), **variables, "PATH": programs}
    command = [str(ROOT / "action" / name)]
    return subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def github(home: TempHome) -> Path:
    """What GitHub knows of the pull request, and a `gh` that tells it."""
    place = home.work / "runner"
    (place / "bin").mkdir(parents=True)
    (place / "bin/gh").write_text(GH)
    (place / "bin/gh").chmod(0o700)
    (place / "github").mkdir()
    for name, text in {"diff": DIFF, "comments": "[]"}.items():
        (place / "github" / name).write_text(text)
    opened(place, pull(7))
    return place


def pull(number: int, *, repository: str = "ann/fork", branch: str = "fix", sha: str = SHA) -> dict[str, Any]:
    return {
        "number": number,
        "head": {"repo": {"full_name": repository}, "ref": branch, "sha": sha},
        "base": {"sha": BASE},
    }


def opened(place: Path, *pulls: dict[str, Any]) -> None:
    """Let these be the open pull requests that GitHub finds."""
    (place / "github/pulls").write_text(json.dumps(pulls))


async def review(home: TempHome, place: Path, config: str, code: int, **variables: str) -> str:
    """What the job's log shows."""
    given = {
        "GITHUB": str(place / "github"), "GITHUB_REPOSITORY": "o/r", "GITHUB_STEP_SUMMARY": str(place / "summary"),
        "HEAD_REPOSITORY": "ann/fork", "HEAD_BRANCH": "fix", "HEAD_SHA": SHA, "BASE": BASE,
        "CONFIG": config, "MODELS": "", "MAX_USD": "2", "FAIL_ON": "blocker", "DRY_RUN": "false",
        "LOGIN": "github-actions[bot]", **home.environ, **variables,
    }  # fmt: skip
    done = await anyio.to_thread.run_sync(lambda: script("review.sh", place, **given))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def collected(place: Path, check: str = "") -> None:
    done = script("collect.sh", place, CHECK=check)
    assert done.returncode == 0, done.stderr


async def test_a_pull_request_gets_a_comment_and_a_check_and_the_next_push_only_what_is_new(
    home: TempHome, github: Path
) -> None:
    collected(github, check="echo 2 passed; exit 3")
    ada = Reviewer([finding("Total is wrong", severity="blocker"), finding("Elsewhere", 1, "../x", severity="minor")])
    async with reviewing(home, ada=ada, bo=Reviewer()) as (config, _):
        log = await review(home, github, config, 1)
        assert "Total" not in log, "no word of a model is in the log"
        assert "echo 2 passed; exit 3: exit code 3\n2 passed\n" in ada.asked[0]
        comment = (github / "github/comment.md").read_text()
        assert "### Total is wrong" in comment
        check = json.loads((github / "github/check.json").read_text())
        assert (check["name"], check["head_sha"], check["status"], check["conclusion"]) == (
            "massgen review", SHA, "completed", "failure",
        )  # fmt: skip
        (annotation,) = check["output"]["annotations"]
        assert (annotation["path"], annotation["start_line"], annotation["annotation_level"]) == (
            "shop.py",
            2,
            "failure",
        )
        (github / "github/comment.md").unlink()
        await review(home, github, config, 1)
        assert not (github / "github/comment.md").exists(), "all of it was said"
        forged = [{"user": {"login": "somebody"}, "body": comment}]
        (github / "github/comments").write_text(json.dumps(forged))
        await review(home, github, config, 1)
        assert "### Total is wrong" in (github / "github/comment.md").read_text(), "only what we said was said"


async def test_the_pull_request_is_the_open_one_of_this_repository_branch_and_commit(
    home: TempHome, github: Path
) -> None:
    collected(github)
    (github / "massgen-review/number").write_text("9")  # the collecting job may say what it likes
    others = [
        pull(1, repository="o/r"),
        pull(2, branch="other"),
        pull(3, sha=SHA.replace("0", "1")),
        pull(4) | {"head": {"repo": None, "ref": "fix", "sha": SHA}},  # its repository was deleted
    ]
    opened(github, *others)
    assert "nothing is reviewed" in await review(home, github, "", 2)
    opened(github, pull(7), *others, pull(8))
    assert "Pull requests 7 8 have the commit" in await review(home, github, "", 2)
    assert not (github / "github/check.json").exists()
    opened(github, *others, pull(7))
    async with reviewing(home, ada=Reviewer(), bo=Reviewer()) as (config, _):
        await review(home, github, config, 0)
    calls = (github / "massgen-report/calls.txt").read_text()
    assert "issues/7/comments" in calls
    assert not re.search("/(1|2|3|4|8|9)/comments", calls)


async def test_evidence_is_read_to_a_bound_and_only_from_a_file(home: TempHome, github: Path) -> None:
    collected(github, check="echo first; exit 3")
    evidence = github / "massgen-review/evidence"
    with evidence.open("ab") as file:
        file.truncate(3 * 2**30)  # sparse
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    ada = Reviewer()
    async with reviewing(home, ada=ada, bo=Reviewer()) as (config, _):
        await review(home, github, config, 0)
        assert "\nlast\n" in ada.asked[0]
        assert len(ada.asked[0]) < 100_000
        evidence.unlink()
        os.mkfifo(evidence)
        await review(home, github, config, 0)
        evidence.unlink()
        (github / "secret").write_text("PLANTED")
        evidence.symlink_to(github / "secret")
        await review(home, github, config, 0)
        assert "PLANTED" not in "".join(ada.asked)


async def test_without_keys_a_dry_run_says_what_would_be_done_and_posts_nothing(home: TempHome, github: Path) -> None:
    collected(github)
    log = await review(home, github, "", 0, DRY_RUN="true")
    assert "1 file, +1 -0 lines" in log
    assert "No agent can review the change" in (github / "summary").read_text()
    assert not (github / "github/comment.md").exists()
    unclear = await review(home, github, "", 2)
    assert "ERROR no_default_team" in unclear
    assert json.loads((github / "github/check.json").read_text())["conclusion"] == "action_required"


async def test_an_unclear_review_is_no_check_that_passes(home: TempHome, github: Path) -> None:
    collected(github)
    async with reviewing(home, ada=Reviewer(), bo=Reviewer()) as (config, _):
        await review(home, github, config, 0)
        assert json.loads((github / "github/check.json").read_text())["conclusion"] == "success"
        hidden = "diff --git a/b.py b/b.py\nindex 1..2 100644\nBinary files a/b.py and b/b.py differ\n"
        for diff in (DIFF + hidden, "", DIFF.removesuffix("+total = 1\n")):
            (github / "github/diff").write_text(diff)
            await review(home, github, config, 2)
            check = json.loads((github / "github/check.json").read_text())
            assert check["conclusion"] == "action_required"
            assert check["output"]["title"] == "unclear"
            assert "Unclear: the" in check["output"]["summary"]


# -- the files --------------------------------------------------------------------------------------------------------


def test_no_job_that_runs_code_of_a_pull_request_has_a_secret_or_a_right_to_write() -> None:
    first, second = workflows_to_copy()
    collect, review_it = (cast("dict[Any, Any]", yaml.safe_load(text)) for text in (first, second))
    assert collect[True] == "pull_request"
    assert "secrets." not in first
    assert collect["jobs"]["collect"]["permissions"] == {"contents": "read"}
    assert [*review_it[True]] == ["workflow_run"]
    steps = review_it["jobs"]["review"]["steps"]
    assert [step["uses"].partition("@")[0] for step in steps] == ["massgen-mcp/massgen-mcp"]
    steps = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    assert all(re.match(r"inputs.mode == '(collect|review)'", step["if"]) for step in steps)
    assert "checkout" not in ACTION.read_text() + (ROOT / "action/review.sh").read_text().partition("\nset -")[2]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
    used = [line.split("uses:", 1)[1].strip() for line in ACTION.read_text().splitlines() if "uses:" in line]
    assert [one for one in used if not PINNED.fullmatch(one)] == []
