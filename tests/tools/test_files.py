"""The file tools as a model meets them: what they answer, and how they refuse."""

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.tools.base import Tool, ToolResult
from massgen_mcp.tools.files import MAX_FILE_BYTES, MAX_OUTPUT_BYTES, file_tools
from massgen_mcp.workspace.directory import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    return tmp_path / "ws"


@pytest.fixture
def workspace(ws: Path, tmp_path: Path) -> Iterator[Workspace]:
    peer = tmp_path / "snapshot"
    peer.mkdir()
    (peer / "main.py").write_text("print('peer')\n")
    (tmp_path / "secret").write_text("secret")
    with Workspace.create(ws) as made:
        made.set_peers({"agent2": peer})
        yield made


@pytest.fixture
def tools(workspace: Workspace) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in file_tools(workspace)}


async def ok(tool: Tool, arguments: JsonObject) -> str:
    result = await tool.run(arguments)
    assert not result.is_error, result.text
    return result.text


async def refused(tool: Tool, arguments: JsonObject) -> str:
    result = await tool.run(arguments)
    assert result.is_error, result.text
    return result.text


def test_the_specs_are_small_and_say_which_arguments_are_needed(tools: dict[str, Tool]) -> None:
    specs = [dataclasses.asdict(tool.spec) for tool in tools.values()]

    assert list(tools) == [
        *(
            "read_file",
            "write_file",
            "edit_file",
            "move_file",
            "delete_file",
            "list_files",
            "search_files",
            "apply_patch",
        )
    ]
    assert [name for name, tool in tools.items() if not tool.spec.listed] == ["apply_patch"]
    assert len(json.dumps([spec for spec in specs if spec["listed"]])) < 3100
    assert '"title"' not in json.dumps(specs)
    assert tools["edit_file"].spec.parameters["required"] == ["path", "old", "new"]
    assert {name for name, tool in tools.items() if tool.side_effects} == {
        *("write_file", "edit_file", "move_file", "delete_file", "apply_patch")
    }


async def test_what_is_written_is_read_back_exactly(tools: dict[str, Tool]) -> None:
    content = "eins\r\nzwei\x0cdrei\u2028vier\nlast é"

    assert await ok(tools["write_file"], {"path": "a/b.txt", "content": content}) == "wrote 30 bytes"
    assert await ok(tools["read_file"], {"path": "a/b.txt"}) == content


async def test_an_empty_file_reads_as_nothing(tools: dict[str, Tool]) -> None:
    await ok(tools["write_file"], {"path": "empty", "content": ""})

    assert await ok(tools["read_file"], {"path": "empty"}) == ""


async def test_a_part_of_a_file_says_which_part_it_is(tools: dict[str, Tool]) -> None:
    await ok(tools["write_file"], {"path": "n", "content": "".join(f"{n}\n" for n in range(1, 11))})

    assert await ok(tools["read_file"], {"path": "n", "offset": 3, "limit": 2}) == (
        "[lines 3-4 of 10; offset 5 goes on]\n3\n4\n"
    )
    assert await ok(tools["read_file"], {"path": "n", "offset": 10}) == "[lines 10-10 of 10]\n10\n"
    assert "beyond the end, the file has 10 lines" in await refused(tools["read_file"], {"path": "n", "offset": 11})


async def test_output_is_cut_at_its_limit_even_within_one_line(tools: dict[str, Tool]) -> None:
    await ok(tools["write_file"], {"path": "wide", "content": "é" * MAX_OUTPUT_BYTES})
    await ok(tools["write_file"], {"path": "long", "content": ("x" * 999 + "\n") * 1000})

    wide = await ok(tools["read_file"], {"path": "wide"})
    long = await ok(tools["read_file"], {"path": "long"})

    assert wide.startswith("[lines 1-1 of 1]\n")
    assert long.startswith("[lines 1-49 of 1000; offset 50 goes on]\n")
    for text in (wide, long):
        assert len(text.partition("\n")[2].encode()) <= MAX_OUTPUT_BYTES


async def test_one_call_reads_several_files_and_says_why_one_cannot_be_read(tools: dict[str, Tool]) -> None:
    await ok(tools["write_file"], {"path": "one", "content": "1\n"})
    await ok(tools["write_file"], {"path": "long", "content": ("x" * 999 + "\n") * 1000})

    text = await ok(tools["read_file"], {"path": "one", "more": ["long", "none", "../out"]})

    one, long, none, outside = text.split("==> ")[1:]
    assert one == "one\n1\n\n"
    assert long.startswith("long\n[lines 1-12 of 1000; offset 13 goes on]\n")
    assert none.startswith("none\n[not read: ")
    assert outside.startswith("../out\n[not read: ")
    assert len(text.encode()) <= MAX_OUTPUT_BYTES + 1_000


async def test_binary_files_are_refused_and_slightly_damaged_text_is_not(tools: dict[str, Tool], ws: Path) -> None:
    (ws / "image").write_bytes(b"\x89PNG\0\0\0" + bytes(range(256)))
    (ws / "noise").write_bytes(b"\xff\xfe\xfd" * 100)
    (ws / "latin").write_bytes("Straße, ganz gewöhnlicher Text in einer alten Kodierung\n".encode("latin-1"))

    assert "not a text file" in await refused(tools["read_file"], {"path": "image"})
    assert "not a text file" in await refused(tools["read_file"], {"path": "noise"})
    assert "Stra\ufffde" in await ok(tools["read_file"], {"path": "latin"})


async def test_half_surrogate_pairs_become_replacement_characters(tools: dict[str, Tool]) -> None:
    await ok(tools["write_file"], {"path": "s", "content": "a\ud800b \ud83d\ude00"})

    assert await ok(tools["read_file"], {"path": "s"}) == "a\ufffdb \U0001f600"
    assert "not valid UTF-8" in await refused(tools["write_file"], {"path": "a\ud800", "content": ""})


async def test_an_edit_replaces_exactly_one_place(tools: dict[str, Tool], ws: Path) -> None:
    await ok(tools["write_file"], {"path": "f", "content": "one two one\n"})

    assert "occurs 2 times, at line 1, 1;" in await refused(tools["edit_file"], {"path": "f", "old": "one", "new": "1"})
    assert "does not occur" in await refused(tools["edit_file"], {"path": "f", "old": "One", "new": "1"})
    assert "empty" in await refused(tools["edit_file"], {"path": "f", "old": "", "new": "1"})
    assert "the same" in await refused(tools["edit_file"], {"path": "f", "old": "two", "new": "two"})
    assert (ws / "f").read_text() == "one two one\n"

    assert await ok(tools["edit_file"], {"path": "f", "old": "two", "new": "2"}) == "replaced 1, at line 1"
    everywhere: JsonObject = {"path": "f", "old": "one", "new": "1", "replace_all": True}
    assert await ok(tools["edit_file"], everywhere) == "replaced 2, at line 1, 1"
    assert (ws / "f").read_text() == "1 2 1\n"


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("if x:\n    return 1", "differs from it only in blanks:\n2:     if x:\n3:         return 1"),
        ("return  1", "differs from it only in blanks:\n3:         return 1"),
        ("static  void *\nnew_node(", "differs from it only in blanks:\n6: static void *\n7: new_node(int a)"),
        ("        return one", "the lines that are most like it:\n3:         return 1"),
        (
            "{\n    return make_node(aa);\n}",
            "the lines that are most like it:\n8: {\n9:     return make_node(a);\n10: }",
        ),
        ("nothing of this kind is there", "it must match exactly"),
        ("   \n ", "it must match exactly"),
    ],
)
async def test_an_edit_that_misses_shows_the_lines_that_are_most_like_it(
    tools: dict[str, Tool], old: str, told: str
) -> None:
    python, c = (
        "def f():\n    if x:\n        return 1\n\n",
        "static void *\nnew_node(int a)\n{\n    return make_node(a);\n}\n",
    )
    text = f"{python}# C\n{c}"
    await ok(tools["write_file"], {"path": "f.py", "content": text})

    missed = await tools["edit_file"].run({"path": "f.py", "old": old, "new": "return 2"})
    assert missed.is_error
    assert told in missed.text
    assert missed.foreign == ("exactly" not in told), "lines of a file are marked as somebody's words"


async def test_an_edit_takes_over_the_line_ends_of_the_file(tools: dict[str, Tool], ws: Path) -> None:
    await ok(tools["write_file"], {"path": "dos", "content": "one\r\ntwo\r\nthree\r\n"})

    edit: JsonObject = {"path": "dos", "old": "one\ntwo", "new": "1\n2"}
    assert await ok(tools["edit_file"], edit) == "replaced 1, at line 1"
    assert (ws / "dos").read_bytes() == b"1\r\n2\r\nthree\r\n"


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"a\nb\r\n", "x\ny\n", b"x\ny\n"),
        (b"a\nb\n", "x\r\n", b"x\r\n"),
        (b"\xef\xbb\xbfa\r\n", "x\n", b"\xef\xbb\xbfx\r\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        (b"\xff\xfea\r\n", "x\n", b"x\n"),
        (b"", "x\n", b"x\n"),
        (b"a\r\n", "", b""),
    ],
)
async def test_a_file_that_is_written_anew_keeps_its_line_ends_and_its_mark(
    tools: dict[str, Tool], ws: Path, before: bytes, given: str, after: bytes
) -> None:
    (ws / "dos").write_bytes(before)
    told = await ok(tools["write_file"], {"path": "dos", "content": given})
    assert (ws / "dos").read_bytes() == after
    assert ("CRLF" in told) is (after.count(b"\r") > given.count("\r"))


async def test_files_and_directories_are_moved_to_where_nothing_is(tools: dict[str, Tool], ws: Path) -> None:
    await ok(tools["write_file"], {"path": "src/a.py", "content": "a"})
    await ok(tools["write_file"], {"path": "b.py", "content": "b"})
    (ws / "b.py").chmod(0o755)
    move = tools["move_file"]

    assert await ok(move, {"path": "src", "to": "lib/core"}) == "moved"
    assert await ok(move, {"path": "b.py", "to": "lib/core/b.py"}) == "moved"
    assert (await ok(tools["list_files"], {"path": "lib", "recursive": True})).split("\n") == [
        *("lib/core/", "lib/core/a.py 1", "lib/core/b.py 1")
    ]
    assert (ws / "lib/core/b.py").stat().st_mode & 0o100
    assert "exists already" in await refused(move, {"path": "lib/core/b.py", "to": "lib/core/a.py"})
    assert "exists already" in await refused(move, {"path": "lib/core/b.py", "to": "lib"})
    assert "itself" in await refused(move, {"path": "lib", "to": "lib/core/lib"})
    assert "no such file" in await refused(move, {"path": "gone", "to": "x"})
    assert "read-only" in await refused(move, {"path": "peers/agent2/main.py", "to": "main.py"})
    assert "read-only" in await refused(move, {"path": "lib", "to": "peers/agent2/lib"})
    assert "'..' is refused" in await refused(move, {"path": "lib", "to": "../lib"})


async def test_what_others_wrote_is_copied_into_the_own_workspace(
    tools: dict[str, Tool], ws: Path, tmp_path: Path
) -> None:
    (tmp_path / "snapshot" / "sub").mkdir()
    (tmp_path / "snapshot" / "sub" / "run.sh").write_text("echo")
    (tmp_path / "snapshot" / "sub" / "run.sh").chmod(0o755)
    (tmp_path / "snapshot" / "link").symlink_to("/etc/passwd")
    move = tools["move_file"]

    everything: JsonObject = {"path": "peers/agent2", "to": "theirs", "keep": True}
    assert await ok(move, everything) == "copied 2 files, 18 bytes, left out 1 (links, special or hidden)"
    assert (ws / "theirs/main.py").read_text() == "print('peer')\n"
    assert (ws / "theirs/sub/run.sh").stat().st_mode & 0o100
    assert not (ws / "theirs" / "link").is_symlink()
    one: JsonObject = {"path": "peers/agent2/main.py", "to": "theirs", "keep": True}
    assert "name a path in it" in await refused(move, one)
    assert "lies in what is to be copied" in await refused(move, {"path": "theirs", "to": "theirs/x", "keep": True})
    assert "lies in what is to be copied" in await refused(move, {"path": ".", "to": "x", "keep": True})


async def test_a_copy_that_is_too_large_copies_nothing(tools: dict[str, Tool], ws: Path) -> None:
    (ws / "big").mkdir()
    for number in range(9):
        with (ws / "big" / f"sparse{number}").open("wb") as file:
            file.truncate(MAX_FILE_BYTES)

    assert "copy parts of it" in await refused(tools["move_file"], {"path": "big", "to": "copy", "keep": True})
    assert not (ws / "copy").exists()


async def test_files_and_directories_are_deleted_and_nothing_else(
    tools: dict[str, Tool], ws: Path, tmp_path: Path
) -> None:
    await ok(tools["write_file"], {"path": "src/a.py", "content": "a"})
    (ws / "src" / "out").symlink_to(tmp_path / "snapshot")
    delete = tools["delete_file"]

    assert await ok(delete, {"path": "src"}) == "deleted"
    assert not (ws / "src").exists()
    assert (tmp_path / "snapshot" / "main.py").exists()
    assert "no such file" in await refused(delete, {"path": "src"})
    assert "read-only" in await refused(delete, {"path": "peers/agent2/main.py"})
    assert "is the directory itself" in await refused(delete, {"path": "."})


async def test_an_edit_never_damages_bytes_it_cannot_read(tools: dict[str, Tool], ws: Path) -> None:
    (ws / "latin").write_bytes(b"gew\xf6hnlich")

    assert "not UTF-8" in await refused(tools["edit_file"], {"path": "latin", "old": "gew", "new": "x"})
    assert (ws / "latin").read_bytes() == b"gew\xf6hnlich"


async def test_files_that_would_be_too_large_are_refused_before_they_are_built(tools: dict[str, Tool]) -> None:
    too_much = "x" * (MAX_FILE_BYTES + 1)
    await ok(tools["write_file"], {"path": "f", "content": "x" * 1_000_000})

    assert "too many" in await refused(tools["write_file"], {"path": "f", "content": too_much})
    blow_up: JsonObject = {"path": "f", "old": "x", "new": "y" * 8_000_000, "replace_all": True}
    assert "larger than" in await refused(tools["edit_file"], blow_up)


async def test_a_listing_has_sizes_and_marks_directories_and_links(tools: dict[str, Tool], ws: Path) -> None:
    assert await ok(tools["list_files"], {}) == "peers/"
    await ok(tools["write_file"], {"path": "src/a.py", "content": "12345"})
    (ws / "link").symlink_to("/etc")
    os.mkfifo(ws / "pipe")

    assert await ok(tools["list_files"], {}) == "link [link, not followed]\npeers/\npipe [special]\nsrc/"
    assert await ok(tools["list_files"], {"path": "src"}) == "src/a.py 5"
    assert await ok(tools["list_files"], {"path": "peers", "recursive": True}) == (
        "peers/agent2/\npeers/agent2/main.py 14"
    )
    assert (await ok(tools["list_files"], {"recursive": True})).endswith("src/\nsrc/a.py 5")


async def test_an_empty_directory_and_a_cut_listing_say_so(tools: dict[str, Tool], ws: Path) -> None:
    (ws / "empty").mkdir()
    (ws / "many").mkdir()
    for number in range(1001):
        (ws / "many" / str(number)).touch()

    assert await ok(tools["list_files"], {"path": "empty"}) == "[empty]"
    lines = (await ok(tools["list_files"], {"path": "many"})).splitlines()
    assert (len(lines), lines[-1]) == (1001, "[cut at 1000 entries]")


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "link", "out/secret", "peers/../secret", "a\0b", "..\\secret", "", "peers"]
)
async def test_no_tool_reaches_outside(tools: dict[str, Tool], ws: Path, tmp_path: Path, path: str) -> None:
    (ws / "link").symlink_to(tmp_path / "secret")
    (ws / "out").symlink_to(tmp_path)

    answers = [
        await refused(tools["read_file"], {"path": path}),
        await refused(tools["write_file"], {"path": path, "content": "x"}),
        await refused(tools["edit_file"], {"path": path, "old": "secret", "new": "x"}),
        (await tools["move_file"].run({"path": path, "to": "stolen", "keep": True})).text,
        await refused(tools["move_file"], {"path": "nothing", "to": path}),
    ]
    for name, arguments in (("list_files", {}), ("search_files", {"pattern": "secret"})):
        answers.append((await tools[name].run({"path": path, **arguments})).text)

    assert not any("secret:" in text or str(tmp_path) in text for text in answers)
    assert (tmp_path / "secret").read_text() == "secret"


async def test_peers_are_read_and_searched_but_not_written(tools: dict[str, Tool], tmp_path: Path) -> None:
    path = "peers/agent2/main.py"

    assert await ok(tools["read_file"], {"path": path}) == "print('peer')\n"
    assert "read-only" in await refused(tools["write_file"], {"path": path, "content": ""})
    assert "read-only" in await refused(tools["edit_file"], {"path": path, "old": "peer", "new": "x"})
    assert "read-only" in await refused(tools["write_file"], {"path": "context", "content": ""})
    assert (tmp_path / "snapshot" / "main.py").read_text() == "print('peer')\n"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({}, "'path' is missing"),
        ({"pth": "a"}, "unknown 'pth', did you mean 'path'?"),
        ({"path": "a", "encoding": "x"}, "unknown 'encoding', there is path, offset, limit, more"),
        ({"path": 7}, "'path': Input should be a valid string"),
        ({"path": "a", "offset": 0}, "'offset': Input should be greater than or equal to 1"),
        ({"path": "a", "limit": "many"}, "'limit': Input should be a valid integer"),
        ({"path": "a", "\ud800\x1bcwd": 1}, "unknown"),
    ],
)
async def test_wrong_arguments_are_answered_with_the_name_of_the_field(
    tools: dict[str, Tool], arguments: JsonObject, answer: str
) -> None:
    text = await refused(tools["read_file"], arguments)

    assert answer in text
    assert "\x1b" not in text


async def test_a_refusal_is_a_result_the_model_can_read(tools: dict[str, Tool]) -> None:
    assert await tools["read_file"].run({"path": "nothing"}) == ToolResult(
        "'nothing': no such file or directory", is_error=True
    )


async def test_names_that_no_path_can_spell_are_counted(tools: dict[str, Tool], ws: Path) -> None:
    (ws / "new\nline").touch()

    assert await ok(tools["list_files"], {}) == "peers/\n[1 more with unusable names]"
