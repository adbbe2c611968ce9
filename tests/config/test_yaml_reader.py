"""What configuration text is read as, and what is refused with its line number."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.config.yaml_reader import MAX_BYTES, MAX_DEPTH, MAX_NODES, read_yaml
from massgen_mcp.errors import MassgenError

ALIAS_BOMB = (
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
    "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
    "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
    "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
    "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"
    "h: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n"
    "i: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]\n"
    "agents: [*i,*i,*i,*i,*i,*i,*i,*i,*i]\n"
)


def refusal(text: str | bytes) -> str:
    with pytest.raises(MassgenError) as caught:
        read_yaml(text, "team.yaml")
    assert caught.value.code == "config_invalid"
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALIAS_BOMB, "team.yaml:1: anchors"),
        ("a: 1\nb: &x [1]\n", "team.yaml:2: anchors"),
        ("a: &x [*x]\n", "team.yaml:1: anchors"),
        ("a: 1\nb:\n  - *nobody\n", "team.yaml:3: aliases"),
        ("a: 1\nb:\n  <<: {c: 1}\n", "team.yaml:3: merge keys"),
        ("a: 1\nb: 2\na: 3\n", "team.yaml:3: duplicate key a; it is already on line 1"),
        ('{"a": {"b": 1,\n "b": 2}}', "team.yaml:2: duplicate key b; it is already on line 1"),
        ("a: 1\nb: !python/object:os.system x\n", "team.yaml:2: tags"),
        ("a: !!binary aGk=\n", "team.yaml:1: tags"),
        ("a: 1\n---\nb: 2\n", "team.yaml:2: a config must be one document"),
        ("a: 1\n1: 2\n", "team.yaml:2: a key must be text"),
        ("true: 2\n", "team.yaml:1: a key must be text"),
        ("? [a, b]\n: 1\n", "team.yaml:1: a key must be text"),
        ("a: 1\nb: [1\n", "team.yaml:3: not valid YAML"),
        ("a: 1\n\tb: 2\n", "team.yaml:2: not valid YAML"),
        ("a: 1\nb: x\0y\n", "team.yaml:2: a NUL character"),
        ("a: 1\nb: x\x07y\n", "team.yaml:2: a control character"),
        (b"a: 1\nb: \xff\xfe\n", "team.yaml:2: not UTF-8"),
        ("a: 1\nb: \ud800\n", "team.yaml:2: not UTF-8"),
        ("a: 1\nb: " + "9" * 5000, "team.yaml:2: a number can have at most"),
        ("a: 1\nb: 1e999\n", "team.yaml:2: the number is too large"),
        ("a: " + "x" * MAX_BYTES, "team.yaml:1: a config can have at most 256 KiB"),
        ("a: " + "ä" * (MAX_BYTES // 2), "team.yaml:1: a config can have at most 256 KiB"),
        ("\n" * 4 + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), f"team.yaml:5: nested more than {MAX_DEPTH}"),
        ("- " * 100_000, f"team.yaml:1: nested more than {MAX_DEPTH}"),
        ("a: " + "[" * 250_000, f"team.yaml:1: nested more than {MAX_DEPTH}"),
        ("a: " + "{" * 250_000, f"team.yaml:1: nested more than {MAX_DEPTH}"),
        ("a: {{b: 1}: 2}", "team.yaml:1: a key must be text"),
        ("{a: " * 60_000, f"team.yaml:1: nested more than {MAX_DEPTH}"),
        ("- x\n" * (MAX_NODES + 1), f"team.yaml:{MAX_NODES}: a config can have at most 20,000 values"),
    ],
)
def test_what_no_config_needs_is_refused_with_its_line(text: str | bytes, message: str) -> None:
    assert refusal(text).startswith(message)


def test_a_message_quotes_no_value_and_no_raw_key() -> None:
    assert "sk-secret" not in refusal("api_key: sk-secret\nb: &x sk-secret\n")
    assert "\x1b" not in refusal('"\\e[31m": sk-secret\n"\\e[31m": 2\n')
    assert len(refusal(f"{'k' * 900}: 1\n{'k' * 900}: 2\n")) < 200


def test_the_largest_depth_is_still_read() -> None:
    data = read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, "team.yaml").data
    assert json.dumps(data) == "[" * MAX_DEPTH + "]" * MAX_DEPTH


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "012", "-007", "1:30", "1_000", "2026-01-02", "0b11"])
def test_only_true_and_false_are_booleans_and_old_yaml_numbers_are_text(word: str) -> None:
    assert read_yaml(f"a: {word}", "team.yaml").data == {"a": word}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("-3", -3),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("'12'", "12"),
        ('"true"', "true"),
        (".inf", ".inf"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("'2026-99-99'", "2026-99-99"),
    ],
)
def test_scalars_are_read_by_the_core_rules_of_yaml_1_2(text: str, value: object) -> None:
    read = read_yaml(f"a: {text}", "team.yaml").data
    assert read == {"a": value}
    assert isinstance(read, dict)
    assert type(read["a"]) is type(value)


def test_json_is_read_too_and_a_byte_order_mark_is_no_part_of_it() -> None:
    assert read_yaml(b'\xef\xbb\xbf{"agents": [{"id": "a", "n": 1.0}]}', "team.json").data == {
        "agents": [{"id": "a", "n": 1.0}]
    }


def test_every_key_and_item_knows_its_line() -> None:
    located = read_yaml("# c\nagents:\n  - id: a\n    backend:\n      modle: x\n  -\n    id: b\n", "team.yaml")
    assert located.lines[("agents",)] == 2
    assert located.lines[("agents", 0, "backend", "modle")] == 5
    assert located.lines[("agents", 1, "id")] == 7
    assert located.line_of(("agents", 0, "backend", "absent")) == 4


@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=200), st.text("ab:-[]{}&*!<?|>'\"#%@,. \n\t\\01~", max_size=80))
)
def test_no_text_breaks_the_reader(text: str | bytes) -> None:
    try:
        data = read_yaml(text, "team.yaml").data
    except MassgenError as error:
        refused = error
    else:
        json.dumps(data, allow_nan=False).encode()
        return
    assert refused.code == "config_invalid"
    assert "\n" not in str(refused)
