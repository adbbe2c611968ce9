"""The search for false greens in a short form, and twins of the product with one rule removed, which must be caught."""

import json
from itertools import product
from typing import Any

import pytest

from massgen_mcp.cli.massgen.reviewing import review
from massgen_mcp.run_state import work_done
from massgen_mcp.run_state.facts import RunFacts
from massgen_mcp.runs import batch
from tests.harness import TempHome, home
from tests.needs import needs
from tests.soak.commands_here import run
from tests.soak.false_green import (
    FAULTS,
    NARROW,
    NARROW_LINE,
    TEAM,
    Case,
    Models,
    command_of,
    inject,
    list_cases,
    serving,
    spread,
)
from tests.soak.false_green_files import GIT_DIES, NOT_INJECTED, FileCase, inject_file_faults, list_file_cases
from tests.soak.figures import Figures

__all__ = ["home"]

pytestmark = [pytest.mark.long, pytest.mark.uncounted]

QUICK = ("401", "402", "quota", "empty", "schema", "filtered", "out_of_tokens", "window", NARROW, NARROW_LINE)
"""Faults after which a call is not made again, which takes its time."""
LATE = Case("review", "late", "answer", ("ada",))
ALONE = Case("run", "401", "answer", ("ada", "bo"))


def test_no_fault_in_any_phase_reads_as_full_success(home: TempHome) -> None:
    quick = [case for case in list_cases() if case.fault in QUICK]
    retried = [Case("run", "cut", "vote", ("ada",)), Case("review", "500", "answer", ("cleo",)), LATE]
    lost = [Case("run", "kill", "vote", TEAM), Case("review", "full_disk", "merge", TEAM)]
    figures = inject(home, [*spread(quick, 18), *retried, *lost])
    assert not figures.found
    assert figures.struck > 14


def test_each_kind_of_fault_is_injected_into_every_command_or_the_table_says_why_not() -> None:
    cases = list_cases()
    injected = {(case.door, case.phase) for case in list_file_cases() if case.phase != "apply"}
    injected |= {(case.door, "text") for case in cases if case.is_narrow}
    injected |= {(case.door, "model") for case in cases if case.fault in FAULTS}
    kinds = set(product(("run", "review", "batch", "eval", "apply"), ("check", "copy", "text", "model")))
    assert injected & kinds == kinds - NOT_INJECTED.keys()


@needs("bwrap")
def test_no_fault_of_files_reads_as_full_success(home: TempHome) -> None:
    chosen = {"the index is damaged", "it dies", "it always fails", "the same line was changed", "full disk"}
    at_doors = {GIT_DIES, "it dies"}
    cases = [case for case in list_file_cases() if case.fault in (chosen if case.door == "run" else at_doors)]
    figures = Figures()
    inject_file_faults(home, cases, figures)
    assert not figures.found
    assert figures.injected > 12


@pytest.mark.parametrize("door", ["run", "synthesis", "review", "batch"])
def test_without_a_fault_there_is_full_success(home: TempHome, door: Any) -> None:
    """Else no fault could be seen in what is said."""
    models = Models()
    with serving(models):
        said = run(home, *command_of(home, Case(door, "", "answer", ()), models))
    assert said.code == 0, said.err
    assert "weak" not in said.out.replace('"weak"', "")
    if door == "review":
        assert (said.document["verdict"], said.document["unclear"], said.document["notes"]) == ("pass", [], [])
    if door == "batch":
        lines = (home.work / "questions.results.jsonl").read_text().splitlines()
        assert [json.loads(line)["degraded"] for line in lines] == [[], []]


def test_an_agent_that_was_too_late_was_left_out_and_not_dropped(home: TempHome) -> None:
    models = Models(case=LATE)
    with serving(models):
        said = run(home, *command_of(home, LATE, models))
    assert said.document["notes"] == ["ada was left out (late)"]


def nothing(*_: object) -> None:
    """Find no reason."""


def never(*_: object) -> bool:
    return False


def none_of_them(*_: object) -> tuple[()]:
    return ()


def has_completed(line: dict[str, Any]) -> bool:
    return line["state"] == "completed"


def no_words(*_: object) -> str:
    return ""


TWINS: dict[str, tuple[Any, str, Any, Case]] = {
    "any completed run is a success": (work_done, "_find_failure", nothing, ALONE),
    "no answer needs a vote": (work_done, "_is_unreviewed", never, ALONE),
    "one answer is a synthesis": (
        work_done,
        "_is_of_one_answer",
        never,
        Case("synthesis", "late", "answer", ("ada", "bo")),
    ),
    "shortened texts are whole": (
        work_done,
        "_find_partly_read",
        none_of_them,
        Case("run", NARROW, "answer", ("ada",)),
    ),
    "a verdict on a shortened change counts": (
        work_done,
        "_find_partly_read",
        none_of_them,
        Case("review", NARROW, "refute", TEAM),
    ),
    "shortened answers are whole": (work_done, "_find_partly_read", none_of_them, Case("batch", NARROW, "vote", TEAM)),
    "who is late was there": (RunFacts, "late", (), LATE),
    "a review is always whole": (review, "_unclear", none_of_them, Case("review", "401", "answer", ("ada", "bo"))),
    "a batch judges by the state": (
        batch,
        "is_success",
        has_completed,
        Case("batch", "401", "answer", ("ada", "bo")),
    ),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_with_one_rule_removed_is_caught(home: TempHome, monkeypatch: pytest.MonkeyPatch, twin: str) -> None:
    place, name, removed, case = TWINS[twin]
    monkeypatch.setattr(place, name, removed)
    assert inject(home, [case]).found


def test_a_twin_that_keeps_to_itself_what_was_not_copied_is_caught(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_done.WorkDone, "not_copied", property(none_of_them, nothing))
    figures = Figures()
    cases = [case for case in list_file_cases() if case.fault == GIT_DIES and case.permission == "read"]
    inject_file_faults(home, [case for case in cases if case.door == "review"], figures)
    assert figures.found


@needs("bwrap")
def test_a_twin_for_which_checks_are_no_proof_is_caught(home: TempHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_done, "_explain_unproven", no_words)
    figures = Figures()
    inject_file_faults(home, [FileCase("check", "it always fails", check="sh -c 'exit 1'")], figures)
    assert figures.found
