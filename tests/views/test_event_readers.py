"""Seven readers of the event log read some events and ignore the rest. `READERS` says for every event which of them
read it, so that a new event can't be forgotten by one of them: whoever adds an event decides here for each reader.
(The type checker asks the same of the readers that have a case for every event, such as `views/sentences.py`.)
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest

import massgen_mcp
from massgen_mcp.events.record import AnyEvent

PACKAGE = Path(massgen_mcp.__file__).parent

PLACES = {
    "state": ("run_state/state.py", "_apply"),
    "resume": ("run_state/resume_point.py", "apply"),
    "rules": ("coordination/state.py", "after"),
    "page": ("page/history.py", "_add"),
    "redaction": ("page/left_out.py", "_event"),
    "spans": ("views/spans.py", "heard"),
    "nlip": ("views/nlip.py", "nlip_messages"),
}
"""The readers, with the file and the function that has their cases."""

READERS: Mapping[str, str] = {
    "RunStarted": "state page redaction spans nlip",
    "BaseTaken": "state rules page redaction",
    "SetupFinished": "state redaction",
    "AttemptStarted": "state resume rules page",
    "ServerLost": "state redaction",
    "FinishRequested": "rules",
    "TimeReturned": "",
    "BudgetMark": "state",
    "BudgetReached": "state rules",
    "BudgetRaised": "state rules",
    "ReservationExceeded": "",
    "RunResumed": "state resume",
    "CallerMessage": "state nlip",
    "InputRequired": "state nlip",
    "InputGiven": "state nlip",
    "NestedRunStarted": "state page redaction",
    "NestedRunEnded": "state page",
    "RunCompleted": "state redaction spans nlip",
    "RunFailed": "state spans",
    "RunCancelled": "state spans",
    "RunTimedOut": "state spans",
    "RoundStarted": "state resume rules page spans",
    "ModelCallStarted": "state resume page spans",
    "ModelCallWaiting": "state resume",
    "ModelCallAdmitted": "resume",
    "TextDelta": "",
    "ModelCallRetried": "state page spans",
    "ModelReplied": "state resume page spans nlip",
    "ModelCallFailed": "state resume page spans",
    "ModelCallAborted": "state resume page spans",
    "ToolStarted": "resume page",
    "ToolFinished": "resume page spans nlip",
    "BallotChanged": "state resume rules page",
    "MessagesShown": "resume page",
    "RuleViolated": "resume",
    "ConversationShortened": "resume",
    "ConversationCondensed": "resume",
    "AnswerSubmitted": "state resume rules page spans nlip",
    "VoteCast": "state resume rules page spans nlip",
    "StageOpened": "state rules",
    "WrittenTestsSubmitted": "state resume rules",
    "CheckFinished": "state rules page redaction",
    "FilesChecked": "state rules page redaction",
    "FirstAnswersClosed": "rules",
    "AgentDropped": "state resume rules page spans",
    "ModelReplaced": "state rules",
    "WinnerChosen": "resume rules page",
    "PresentationStarted": "state resume page spans",
    "AnswerPresented": "state resume spans",
    "AnswerEvaluated": "resume",
    "PresentationFailed": "state resume spans",
}
"""The readers of every event."""


def read_cases(source: str, function: str) -> Iterator[str]:
    """Yield the event classes of the cases of `function`'s first `match`, which has to end with a case for the rest."""
    (found,) = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    match = next(node for node in ast.walk(found) if isinstance(node, ast.Match))
    rest = match.cases[-1].pattern
    assert isinstance(rest, ast.MatchAs)
    assert rest.pattern is None
    for case in match.cases:
        patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
        for pattern in patterns:
            if isinstance(pattern, ast.MatchClass) and isinstance(pattern.cls, ast.Name):
                yield pattern.cls.id


@pytest.mark.parametrize("reader", PLACES)
def test_a_reader_reads_exactly_the_events_of_its_column(reader: str) -> None:
    file, function = PLACES[reader]
    read = set(read_cases((PACKAGE / file).read_text(encoding="utf-8"), function))
    assert read == {event for event, readers in READERS.items() if reader in readers.split()}


def test_every_event_has_its_readers_named_even_if_there_are_none() -> None:
    """A new event needs its row here before anything else passes."""
    assert list(READERS) == [event.__name__ for event in get_args(get_args(AnyEvent)[0])]
    assert {reader for readers in READERS.values() for reader in readers.split()} == set(PLACES)


def test_a_case_that_the_table_does_not_know_is_noticed() -> None:
    cases = ("    case Known() | Added(agent=str()):", "        pass", "    case _:", "        pass")
    source = "\n    ".join(("def read(event):", "match event:", *cases))
    assert list(read_cases(source, "read")) == ["Known", "Added"]
    with pytest.raises(AssertionError):
        list(read_cases(source.replace("case _", "case Last()"), "read"))
