"""What is read out of a reply's text: calls and thoughts, and nothing that only looks like one."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massgen_mcp.backends.base import ReasoningPart, UserMessage
from massgen_mcp.backends.thoughts import ThoughtsApart, thoughts_apart
from massgen_mcp.events.parts import WrittenForm
from massgen_mcp.markers import marked
from massgen_mcp.orchestration.prompts import caller_block, question_block
from massgen_mcp.orchestration.written_actions import WrittenCall, read_calls, shown_texts

NONCE = "0123456789abcdef"
NAMES = ("new_answer", "vote", "read_file", "list_files")
Write = Callable[[str, dict[str, Any]], str]


def _json(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _parameters(name: str, arguments: dict[str, Any]) -> str:
    given = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{given}</function>\n</tool_call>"


FORMS: dict[str, tuple[WrittenForm, Write]] = {
    "object": ("json", _json),
    "object over lines": ("json", lambda n, a: json.dumps({"name": n, "parameters": a}, indent=2)),
    "arguments as text": ("json", lambda n, a: json.dumps({"name": n, "arguments": json.dumps(a)})),
    "OpenAI's message": (
        "json",
        lambda n, a: json.dumps({"tool_calls": [{"type": "function", "function": {"name": n, "arguments": a}}]}),
    ),
    "named by its key": ("json", lambda n, a: json.dumps({n: a})),
    "flat": ("json", lambda n, a: json.dumps({"action": n, **a})),
    "list": ("json", lambda n, a: f"[{_json(n, a)}]"),
    "fenced": ("fenced_json", lambda n, a: f"```json\n{_json(n, a)}\n```"),
    "fenced, not closed": ("fenced_json", lambda n, a: f"```\n{_json(n, a)}"),
    "Hermes": ("tool_call_tag", lambda n, a: f"<tool_call>\n{_json(n, a)}\n</tool_call>"),
    "Hermes, not closed": ("tool_call_tag", lambda n, a: f"<tool_call>\n{_json(n, a)}<|im_end|>"),
    "Mistral": ("tool_call_tag", lambda n, a: f"[TOOL_CALLS][{_json(n, a)}]</s>"),
    "Llama 3": ("function_tag", lambda n, a: f"<function={n}>{json.dumps(a)}</function>"),
    "Llama 3.1": ("python_tag", lambda n, a: f"<|python_tag|>{_json(n, a)}<|eom_id|>"),
    "functions": ("function_call", lambda n, a: f"functions.{n}({json.dumps(a)})"),
}
TEXT_FORMS: dict[str, tuple[WrittenForm, Write]] = {
    "Qwen's parameters": ("tool_call_tag", _parameters),
    "keywords": ("function_call", lambda n, a: f"{n}({', '.join(f'{k}={json.dumps(v)}' for k, v in a.items())})"),
    "Llama 4": ("python_tag", lambda n, a: f"[{n}({', '.join(f'{k}={json.dumps(v)}' for k, v in a.items())})]"),
}
"""Whose arguments are texts."""

words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)
plain = st.text("abc ,.äß0", min_size=1, max_size=40).map(str.strip).filter(bool)
values = st.one_of(words, st.integers(), st.booleans(), st.none(), st.lists(words, max_size=2))


@given(
    form=st.sampled_from(sorted(FORMS)),
    name=st.sampled_from(NAMES),
    arguments=st.dictionaries(plain.map(lambda key: f"k{key}"), values, max_size=3),
    before=st.sampled_from(["", "Let me decide.\n\n", "I read `{x}` and [y].\n"]),
)
@settings(deadline=None, max_examples=300)
def test_a_call_is_read_in_every_form_at_the_end_of_a_text(
    form: str, name: str, arguments: dict[str, Any], before: str
) -> None:
    kind, write = FORMS[form]
    text = before + write(name, arguments)
    assert read_calls(text, NAMES).calls == (WrittenCall(name, json.dumps(arguments, ensure_ascii=False), kind),)
    assert read_calls(f"{text}\n\nThat is my decision.", NAMES).calls == () or form == "fenced, not closed"
    assert read_calls(text, ("other",)).calls == ()


@pytest.mark.parametrize("form", sorted(TEXT_FORMS))
@given(arguments=st.dictionaries(st.sampled_from(["agent_id", "reason", "path"]), plain, min_size=1))
@settings(deadline=None, max_examples=50)
def test_a_call_whose_arguments_are_texts_is_read(form: str, arguments: dict[str, str]) -> None:
    kind, write = TEXT_FORMS[form]
    ((call),) = read_calls(f"So:\n{write('vote', arguments)}", NAMES).calls
    assert (call.name, json.loads(call.arguments), call.form) == ("vote", arguments, kind)


def test_several_calls_in_a_row_are_all_read() -> None:
    text = "".join(f"<tool_call>{_json('read_file', {'path': path})}</tool_call>\n" for path in ("a", "b"))
    assert [json.loads(call.arguments) for call in read_calls(text, NAMES).calls] == [{"path": "a"}, {"path": "b"}]


VOTE = _json("vote", {"agent_id": "agent2", "reason": "It is right about everything that matters here."})


@pytest.mark.parametrize(
    "text",
    [
        f"> {VOTE}",
        f"The others would write {VOTE}",
        f"```python\nprint('x')\n{VOTE}\n```",
        f"~~~\nsome code\n{VOTE}",
        f"{VOTE}\nbut I will not do that.",
        '{"name": "Alice", "arguments": {"age": 7}}',
        '{"vote": "agent2"}',
        "vote",
        "",
    ],
)
def test_what_is_quoted_or_is_followed_by_more_or_names_no_tool_is_no_call(text: str) -> None:
    assert read_calls(text, NAMES).calls == ()


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_call_that_stands_in_an_answer_of_the_ballot_is_no_call_in_whatever_form(form: str) -> None:
    shown = f"My answer ends so:\n{VOTE}\n"
    text = FORMS[form][1]("vote", json.loads(VOTE)["arguments"])
    assert read_calls(text, NAMES, [shown]).calls == ()
    assert read_calls(text, NAMES, ["Another answer about the vote of agent2."]).calls


def test_a_call_that_the_caller_asks_for_is_no_quotation_of_the_caller() -> None:
    for asked in (question_block(VOTE, NONCE), caller_block([VOTE], NONCE)):
        assert read_calls(VOTE, NAMES, shown_texts([UserMessage(asked)])).calls
    result = marked("result", VOTE, NONCE)
    assert not read_calls(VOTE, NAMES, shown_texts([UserMessage(result)])).calls, "the words of a tool"


@pytest.mark.parametrize(
    "text",
    ['{"name": "new_answer", "arguments": {"content": "half', '<tool_call>{"name": "vote", oops}</tool_call>',
     'functions.vote({"agent_id": )', '<function=vote>{"agent_id": }</function>'],
)  # fmt: skip
def test_what_is_meant_as_a_call_and_cannot_be_read_is_told_as_such(text: str) -> None:
    writing = read_calls(text, NAMES)
    assert (writing.calls, writing.unreadable) == ((), True)


@given(st.text(st.sampled_from("{}[]()<>`\"':,=\\ \n|/abvotename_."), max_size=200))
@settings(deadline=None, max_examples=400)
def test_no_text_breaks_the_reader(text: str) -> None:
    read_calls(text, NAMES, [text])
    read_calls(text, NAMES)
    thoughts_apart(text)


@pytest.mark.parametrize(
    "piece", ["{", "[", '{"name":', "<tool_call>", "```\n", "\n{", " \n", "vote(", "functions.vote({"]
)
def test_a_long_text_is_read_in_no_time(piece: str) -> None:
    read_calls(piece * 100_000, NAMES)


# -- thoughts ---------------------------------------------------------------------------------------------------------


@given(
    thought=st.text("ab <>/thinkäİ\n", max_size=30),
    reply=st.text("ab <>/think\n", max_size=30),
    tags=st.sampled_from([("<think>", "</think>"), ("<THINKING>", "</thinking>"), ("[THINK]", "[/THINK]")]),
    size=st.integers(1, 7),
)
@settings(deadline=None, max_examples=300)
def test_thoughts_come_apart_however_a_text_is_cut_into_pieces(
    thought: str, reply: str, tags: tuple[str, str], size: int
) -> None:
    text = f"{tags[0]}{thought}{tags[1]}{reply}"
    split, parts = ThoughtsApart(), list[Any]()
    for at in range(0, len(text), size):
        parts += split.add(text[at : at + size])
    parts += split.end()
    told = "".join(part.text for part in parts if isinstance(part, ReasoningPart))
    said = "".join(part.text for part in parts if not isinstance(part, ReasoningPart))
    assert told.startswith(thought.partition(tags[1].lower())[0])
    assert (told.strip(), said) == thoughts_apart(text)


@pytest.mark.parametrize(
    ("text", "thoughts", "reply"),
    [
        ("<think>hm</think>\n\nParis", "hm", "Paris"),
        ("\n<think>hm</think><think>so</think>Paris", "hmso", "Paris"),
        ("hm, let me see\n</think>\n\nParis", "hm, let me see", "Paris"),
        ("<think>never closed", "never closed", ""),
        ("Use <think>tags</think> so", "", "Use <think>tags</think> so"),
        ("A template:\n```\n</think>\n```", "", "A template:\n```\n</think>\n```"),
        ("<thin ice>", "", "<thin ice>"),
    ],
)
def test_only_what_comes_first_is_a_thought(text: str, thoughts: str, reply: str) -> None:
    assert thoughts_apart(text) == (thoughts, reply)
