"""What people and clients' models read has ever fewer banned words and forms, and readers can judge a random sample."""

from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.words.forms import FORMS, count_forms, find_forms, find_more, read_counts
from tests.words.sentences import (
    MOST_READ,
    Sentence,
    draw_sentences,
    find_sentences,
    read_texts,
    split_markdown,
    split_text,
)

CLEAN = {"README", "help", "action", *(f"docs/{name}" for name in MOST_READ)}
"""Places without a banned form."""
BAD_TWINS = {
    "name the actor": "Nobody has voted so far.",
    "name the thing": "There is no such run here.",
    "use a word that readers know": "Each voter sees the ballot first.",
    "say it with a usual verb": "The team is told about it.",
    "say what changes or counts": "An answer that no vote stands for.",
    "begin with a noun or a verb": "What each agent was shown.",
    "put also or too elsewhere": "It stops the others, too.",
}
PAGE = """\
# How the team finds a winner

Agents vote. The answer with the most votes wins: ties go to a run-off
of the two best answers.

- `max_usd` is the most that it costs
- Every run has a file `runs/<run_id>/events.jsonl`<br>

| key | meaning |
|---|---|
| a | [Read this page first](x.md#a) if you can. |

```sh
no sentence of this block counts
```
"""


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return find_sentences(ROOT)


def test_no_place_has_more_banned_forms_than_before(sentences: list[Sentence]) -> None:
    assert list(find_more(read_counts(), count_forms(sentences))) == []


def test_the_pages_most_read_have_none(sentences: list[Sentence]) -> None:
    assert [(one.file, one.text, advice) for one, advice in find_forms(sentences) if one.place in CLEAN] == []


def test_every_place_is_found(sentences: list[Sentence]) -> None:
    counts = count_forms(sentences)
    assert {"README", "help", "errors", "command line", "run pages", "tools", "action"} < counts.keys()
    assert read_counts().keys() == counts.keys()
    assert len(sentences) > 3_000


@pytest.mark.parametrize("advice", [*FORMS])
def test_a_sentence_with_a_banned_form_is_more_than_before(advice: str) -> None:
    bad = Sentence(BAD_TWINS[advice], "help", "help.py")
    good = Sentence("The run ends when all agents have voted.", "help", "help.py")
    assert [found.partition(": ")[2] for _, found in find_forms([good, bad])] == [advice]
    assert list(find_more({"help": 1}, count_forms([good, bad]))) == []
    (told,) = find_more({"help": 0}, count_forms([good, bad]))
    assert told.startswith("help: 1 sentences")


def test_names_in_backticks_are_no_words() -> None:
    assert list(find_forms([Sentence("Correct `told`, `nobody` and `lot` in the file.", "help", "a.py")])) == []


def test_the_sentences_of_a_page_are_those_of_its_text_its_list_and_its_tables() -> None:
    assert list(split_markdown(PAGE)) == [
        "How the team finds a winner",
        "The answer with the most votes wins: ties go to a run-off of the two best answers.",
        "`max_usd` is the most that it costs",
        "Every run has a file `runs/<run_id>/events.jsonl`",
        "Read this page first if you can.",
    ]


def test_messages_of_the_code_are_found_with_their_gaps(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    module.write_text(
        '"""A docstring of a module."""\n\n@server.tool\ndef f(x):\n    """Do it."""\n    return f"no run {x} here"\n'
    )
    assert list(read_texts(module.read_text())) == ["no run … here"]
    assert list(read_texts(module.read_text(), with_docstrings=True)) == ["Do it.", "no run … here"]


def test_a_message_is_joined_from_its_parts() -> None:
    source = """
def describe(name, count, reason):
    hint = "did you mean it?" if name else "there are none"
    text = f"no run {name}; {hint}"
    if count:
        text += f", and {'none' if reason else 'one'} more"
    return "Sorry: " + reason + TEMPLATE
TEMPLATE = "the run {name} failed"
"""
    assert [*read_texts(source)] == [
        "no run …; did you mean it?",
        "no run …; there are none",
        "no run …; did you mean it?, and none more",
        "no run …; did you mean it?, and one more",
        "Sorry: …the run … failed",
    ]


def test_a_fragment_loses_the_punctuation_that_joins_it_to_others() -> None:
    assert [*split_text("; … … wait for the quota")] == ["… wait for the quota"]


def test_the_same_seed_draws_the_same_sentences_of_the_places_asked_for(sentences: list[Sentence]) -> None:
    first = draw_sentences(sentences, "a", 40, ["docs/", "help"])
    assert first == draw_sentences(list(reversed(sentences)), "a", 40, ["docs/", "help"])
    assert first != draw_sentences(sentences, "b", 40, ["docs/", "help"])
    assert len(set(first)) == 40
    assert {one.place.partition("/")[0] for one in first} <= {"docs", "help"}
