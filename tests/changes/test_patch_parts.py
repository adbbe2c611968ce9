"""A patch that is too long is shown in parts: every file's difference has its share."""

from pathlib import Path

import pytest

from massgen_mcp.changes.patch_parts import beginnings, marked, shares


def difference(name: str, lines: int) -> bytes:
    head = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n"
    return (head + "".join(f"+{name} line {number}\n" for number in range(lines))).encode()


def test_a_padded_file_hides_no_other(tmp_path: Path) -> None:
    patch = tmp_path / "changes.patch"
    patch.write_bytes(difference("padding", 100_000) + difference("small", 3) + difference("weakened", 500))
    shown = beginnings(patch, 6_000)
    assert len(shown) <= 6_000
    assert difference("small", 3) in shown
    assert b"+weakened line 100\n" in shown
    assert shown.count(b"more bytes of this file are not shown]\n") == 2
    assert all(line[:1] in b"+-@d[ " for line in shown.splitlines()), "no half line"


def test_a_patch_that_fits_is_shown_whole(tmp_path: Path) -> None:
    patch = tmp_path / "changes.patch"
    patch.write_bytes(difference("a", 10) + difference("b", 10))
    assert beginnings(patch, 6_000) == patch.read_bytes()


def test_a_file_of_one_endless_line_and_very_many_files_stay_within_the_bound(tmp_path: Path) -> None:
    patch = tmp_path / "changes.patch"
    head = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+"
    patch.write_bytes(head + b"diff --git " * 500_000 + b"\n" + difference("other", 2))
    shown = beginnings(patch, 4_000)
    assert difference("other", 2) in shown
    assert len(shown) <= 4_000
    patch.write_bytes(b"".join(difference(f"f{number}", 20) for number in range(1_000)))
    assert len(beginnings(patch, 4_000)) <= 4_000


@pytest.mark.parametrize(
    ("lengths", "most", "given"),
    [([10, 10], 100, [10, 10]), ([1_000, 10, 500], 300, [145, 10, 145]), ([], 100, []), ([7], 3, [3])],
)
def test_shares_are_equal_but_for_what_shorter_ones_leave(lengths: list[int], most: int, given: list[int]) -> None:
    assert shares(lengths, most) == given


@pytest.mark.parametrize(
    ("head", "tool"),
    [
        ("a/p/.jj/repo/config b/p/.jj/repo/config", "version control"),
        ("a/p/x y b/p/x y", None),
        ("a/p/x b/p/.unheard/y", "tools that read .unheard"),
        ("a/p/.unheard b/a b/p/x", "tools that read .unheard"),
        (r'"a/p/.unheard/\303\251" "b/p/.unheard/\303\251"', "tools that read .unheard"),
    ],
)
def test_a_file_that_runs_by_itself_is_marked_under_its_old_and_its_new_name(head: str, tool: str | None) -> None:
    line = f"diff --git {head}".encode()
    above = b"" if tool is None else f"# The next file runs by itself: {tool}\n".encode()
    assert marked(line) == above + line
