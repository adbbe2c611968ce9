"""What takes keys out of text: every form, wherever a stream splits it, and never a word of honest text."""

import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.redaction import NO_KEYS, Redactor

PLAIN = "sk-proj-AbCdEf0123456789ghijKLMN"
ODD = 'k3\'y+with/odd=chars&"quotes"\\%41 ~~~>>>???>>>~~~'
KEYS = {"OPENAI_API_KEY": PLAIN, "ODD_API_KEY": ODD}
REDACTOR = Redactor(KEYS)

FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "json": lambda key: json.dumps(key)[1:-1],
    "json in json": lambda key: json.dumps(json.dumps(key))[1:-1],
    "shell": shlex.quote,
    "html": html.escape,
    "url": lambda key: quote(key, safe=""),
    "url, slashes kept": quote,
    "form": quote_plus,
    "url, lower case": lambda key: re.sub("%..", lambda code: code[0].lower(), quote(key, safe="")),
    "hex": lambda key: key.encode().hex(),
    "HEX": lambda key: key.encode().hex().upper(),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64, one before": lambda key: base64.b64encode(b":" + key.encode() + b"!").decode(),
    "base64, two before": lambda key: base64.b64encode(b"u:" + key.encode()).decode(),
    "base64, urlsafe": lambda key: base64.urlsafe_b64encode(b"user:" + key.encode() + b"???").decode(),
}

every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
every_key = pytest.mark.parametrize("name", KEYS)


def streamed(text: str, cuts: list[int], redactor: Redactor = REDACTOR) -> str:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    stream = redactor.stream()
    pieces = [stream.add(text[start:end]) for start, end in pairwise(places)]
    return "".join((*pieces, stream.end()))


@every_form
@every_key
def test_a_key_is_replaced_by_the_name_of_its_variable_in_every_form(name: str, form: Callable[[str], str]) -> None:
    text = REDACTOR.text(f"Before {form(KEYS[name])} after.")
    assert f"[key {name}]" in text
    assert text.startswith("Before ")
    assert text.endswith(" after.")
    assert not any(form(KEYS[name])[start : start + 12] in text for start in range(4, len(form(KEYS[name])) - 16))


@every_form
@every_key
def test_a_stream_may_split_a_key_anywhere(name: str, form: Callable[[str], str]) -> None:
    text = f"It is {form(KEYS[name])}, I think."
    for cut in range(len(text)):
        assert streamed(text, [cut]) == REDACTOR.text(text)
    assert streamed(text, list(range(len(text)))) == REDACTOR.text(text)


@given(
    st.lists(st.sampled_from([PLAIN, ODD, PLAIN[:9], PLAIN[:-1], ODD[:5], "sk-", "k3", "c2s", " text "]), max_size=6),
    st.lists(st.integers(0, 300), max_size=12),
)
def test_a_stream_says_what_the_whole_text_says(parts: list[str], cuts: list[int]) -> None:
    assert streamed("".join(parts), cuts) == REDACTOR.text("".join(parts))


@given(st.text(alphabet="abAB", max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_keys_that_begin_and_end_alike_are_told_apart_wherever_they_are_split(text: str, cuts: list[int]) -> None:
    begins_alike = Redactor({"SHORT": "abcdefghABCDEFGH", "LONG": "abcdefghABCDEFGHabcdefgh"})
    text = text.replace("a", "abcdefgh").replace("A", "ABCDEFGH")
    assert streamed(text, cuts, begins_alike) == begins_alike.text(text)


def test_only_what_may_become_a_key_is_held_back_and_only_until_that_is_decided() -> None:
    stream = REDACTOR.stream()
    assert stream.add("An answer, ") == "An answer, "
    assert stream.add(f"and {PLAIN[:12]}") == "and "
    assert stream.add("?") == f"{PLAIN[:12]}?"
    assert stream.end() == ""


@given(st.text())
def test_text_without_keys_stays_as_it_is(text: str) -> None:
    assert REDACTOR.text(text) == text
    assert streamed(text, [3, 7]) == text
    assert NO_KEYS.text(text) == text


@pytest.mark.parametrize(
    "value",
    [
        "", "EMPTY", "none", "dummy", "sk-short-key-15", "not-needed", "not-needed-for-a-local-server",
        "YOUR_OPENAI_API_KEY_HERE", "xxxxxxxxxxxxxxxxxxxxxxxx", "0000000000000000000000", "your-api-key-here",
    ],
)  # fmt: skip
def test_placeholders_and_short_values_are_no_keys(value: str) -> None:
    text = f"Set it to {value}, which is not-needed-for-a-local-server; an EMPTY one, none, or a dummy will do."
    assert Redactor({"OPENAI_API_KEY": value}).text(text) == text


def test_a_value_with_a_line_break_in_it_is_kept_out_whole_and_in_its_parts() -> None:
    redactor = Redactor({"K": f"{PLAIN}\nsecond-part-0123456789\n"})
    assert redactor.text(f"header {PLAIN}") == "header [key K]"
    assert redactor.text("second-part-0123456789") == "[key K]"
    assert PLAIN not in redactor.text(repr(f"{PLAIN}\nsecond-part-0123456789"))


def test_json_text_is_cleaned_where_an_escape_hides_a_key_and_kept_to_the_letter_elsewhere() -> None:
    hidden = '{"content": "\\u0073' + PLAIN[1:] + '"}'
    assert json.loads(REDACTOR.json(hidden)) == {"content": "[key OPENAI_API_KEY]"}
    for honest in ('{"content":  "tab\\t"}', '{"broken": "\\', "", '{"a": "\\u00e9"}'):
        assert REDACTOR.json(honest) == honest


@every_form
@every_key
def test_keys_of_mappings_are_redacted_as_values_are(name: str, form: Callable[[str], str]) -> None:
    data = {"plain": [({form(KEYS[name]): {f"x {form(KEYS[name])}": 1}},)], form(KEYS[name]): [form(KEYS[name])]}
    mark = f"[key {name}]"
    clean = REDACTOR.value(data)
    assert not REDACTOR.finds(json.dumps(clean))
    assert set(clean) == {"plain", mark} or form(KEYS[name]) != KEYS[name]
    assert list(json.loads(REDACTOR.json(json.dumps({KEYS[name]: 1})))) == [mark]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEYS[name])
    assert list(json.loads(REDACTOR.json(f'{{"{escaped}": {{"deep": 1}}}}'))) == [mark], "also where escapes hide it"
