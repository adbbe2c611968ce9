"""What GitHub runs for us is pinned, has as few rights as can be, and nothing that may publish runs code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
Step = dict[str, Any]


def jobs_of(workflow: Path) -> dict[str, dict[str, Any]]:
    return yaml.safe_load(workflow.read_text())["jobs"]


def steps_of(workflow: Path) -> Iterator[tuple[str, Step]]:
    for name, job in jobs_of(workflow).items():
        for step in job["steps"]:
            yield name, step


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(workflow: Path) -> None:
    used = [line.split("uses:", 1)[1].strip() for line in workflow.read_text().splitlines() if "uses:" in line]
    assert used
    assert [one for one in used if not PINNED.fullmatch(one)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_has_no_right_that_it_does_not_name_and_an_end(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {}
    for name, job in jobs_of(workflow).items():
        assert {"permissions", "timeout-minutes"} <= job.keys(), name


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_no_checkout_leaves_a_token_behind_and_no_script_takes_in_what_others_wrote(workflow: Path) -> None:
    for name, step in steps_of(workflow):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False, name
        assert "${{" not in step.get("run", ""), f"{name}: an expression in a script is pasted into it"
    assert "pull_request_target" not in workflow.read_text()


def test_what_may_publish_runs_nothing_of_the_repository() -> None:
    """Neither its Makefile nor its Python: a publishing job gets files that another one built and tried."""
    release = ROOT / ".github/workflows/release.yml"
    publishing = {name for name, job in jobs_of(release).items() if "write" in job["permissions"].values()}
    assert publishing == {"pypi", "image", "registry", "site", "github"}
    ran = [step["run"] for name, step in steps_of(release) if name in publishing and "run" in step]
    assert [one for one in ran if re.search(r"\bmake\b|python|\.ci/|npm|pip ", one)] == []
    assert all(jobs_of(release)[name]["if"] == "github.ref_type == 'tag'" for name in publishing)


def test_ci_runs_the_same_script_as_everybody_weekly_the_real_clients_too_and_no_release_is_without_coverage() -> None:
    ran = {path.stem: [step.get("run", "") for _, step in steps_of(path)] for path in WORKFLOWS}
    assert ".ci/run" in ran["ci"]
    assert {".ci/run", "make coverage", "make clients"} <= set(ran["weekly"])
    assert {"make release-check", "make coverage"} <= set(ran["release"])
    release = jobs_of(ROOT / ".github/workflows/release.yml")
    assert all("coverage" in release[name]["needs"] for name in ("pypi", "image"))
    assert "make release-check" in (ROOT / ".ci/run").read_text()
