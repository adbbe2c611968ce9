"""What models write in Markdown, as a person reads it on a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.views.markdown import rendered
from massgen_mcp.views.plain_text import end_of, newest_line, unmarked
from massgen_mcp.views.styled import Line, Span, text_of, width_of
from tests.harness import without_escapes

ANSWER = """\
# Head

Keep **Postgres**, with `SKIP LOCKED`; see [the docs](https://example.org/a).
A second line.

1. one is an item that has to be broken at some place or other
2. two

```python
def take(count: int) -> str:
    return f"{count}"  # as long as this is, it stays on a line of its own
```

| store | durable |
|---|---|
| Redis | no |

<details>a tag</details> and ![a picture](https://example.org/b.png)

[1]: https://example.org/c
"""


def shown(lines: list[Line]) -> list[str]:
    return [text_of(one) for one in lines]


def test_an_answer_is_rendered_and_its_code_has_colours() -> None:
    lines = rendered(ANSWER, 40)
    rows = shown(lines)
    assert lines[0] == (Span("Head", "title"),)
    assert "**" not in "".join(rows)
    assert "`" not in "".join(rows)
    prose = next(one for one in lines if text_of(one).startswith("Keep Postgres"))
    assert Span("Postgres", "strong") in prose
    assert " 1. one is an item that has to be broken" in rows
    assert "    at some place or other" in rows
    code = next(one for one in lines if text_of(one).startswith("def take"))
    assert Span("def", "keyword") in code
    assert "" not in rows[rows.index(" store  durable") :][:3], "there is an empty row within the table"


def test_nothing_of_an_answer_is_lost_when_it_is_rendered() -> None:
    rows = shown(rendered(ANSWER, 40))
    assert '    return f"{count}"  # as long as this is, it stays on a line of its own' in rows
    flat = " ".join(" ".join(rows).split())
    for part in ("A second line.", "<details>a tag</details>", "https://example.org/a", "b.png", "[1]:", "Redis no"):
        assert part in flat.replace("  ", " "), part
    assert "A second line." in rows, "the end of a line is gone"


def test_code_within_a_list_is_broken_and_not_cut_off() -> None:
    code = "SELECT " + ", ".join(f"column_{number}" for number in range(20))
    rows = shown(rendered(f"- do\n  ```sql\n  {code}\n  ```\n", 40))
    assert "".join("".join(rows).split()).endswith("".join(code.split()))
    assert max(map(width_of, rows)) <= 40


@given(st.text(alphabet="ab*_`~#>|-[]()!<>/\n \\:1.&;\"'=+\t^漢\x1b", max_size=80), st.integers(1, 60))
def test_whatever_is_written_can_be_rendered(text: str, width: int) -> None:
    assert without_escapes("".join(shown(rendered(text, width))))
    assert "\n" not in unmarked(text)


def test_a_small_place_shows_the_end_of_what_is_written_without_marks() -> None:
    assert unmarked("## Head\n> said **so** in `a_b`\n---\n- [x] [done](http://x)") == "Head said so in a_b • done"
    assert (
        unmarked("ANTHROPIC_API_KEY and *.py stay, 2 * 3 * 4, too") == "ANTHROPIC_API_KEY and *.py stay, 2 * 3 * 4, too"
    )
    assert newest_line("first\n\n**last** line\n```\n\n") == "last line"
    assert end_of("# Head\n\nold words\nthe **new", 7) == "the new"
