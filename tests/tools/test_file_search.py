"""Searching and listing as a model meets them: regular expressions, globs, `.gitignore`, bounds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.tools.file_text import MAX_FILE_BYTES
from massgen_mcp.tools.files import file_tools
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.gitignore import Deadline, Glob, TookTooLong
from tests.teams import run_team, team


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    return tmp_path / "ws"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def workspace(ws: Path, project: Path, tmp_path: Path) -> Iterator[Workspace]:
    peer = tmp_path / "snapshot"
    peer.mkdir()
    (peer / "main.py").write_text("print('peer')\n")
    with Workspace.create(ws, context=[project]) as made:
        made.set_peers({"agent2": peer})
        yield made


async def use(workspace: Workspace, name: str, arguments: JsonObject, *, refused: bool = False) -> str:
    tool = next(tool for tool in file_tools(workspace) if tool.spec.name == name)
    result = await tool.run(arguments)
    assert result.is_error == refused, result.text
    return result.text


async def search(workspace: Workspace, pattern: str, **more: str | bool) -> str:
    return await use(workspace, "search_files", {"pattern": pattern, **more})


async def refusal(workspace: Workspace, pattern: str, **more: str | bool) -> str:
    return await use(workspace, "search_files", {"pattern": pattern, **more}, refused=True)


def put(directory: Path, path: str, text: str = "needle\n") -> None:
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def test_a_search_gives_path_line_number_and_line(workspace: Workspace, ws: Path) -> None:
    put(ws, "a.py", "x = 1\r\nNeedle(.*) here\n")
    put(ws, "src/b.md", "a needle(.*)\n")
    (ws / "link").symlink_to(ws / "a.py")

    assert await search(workspace, "needle(.*)", literal=True) == "src/b.md:1: a needle(.*)"
    assert await search(workspace, "NEEDLE(.*)", literal=True, ignore_case=True) == (
        "a.py:2: Needle(.*) here\nsrc/b.md:1: a needle(.*)"
    )
    assert await search(workspace, "eedle", path="a.py") == "a.py:2: Needle(.*) here"
    assert await search(workspace, "peer", path="peers") == "peers/agent2/main.py:1: print('peer')"
    assert await search(workspace, "nowhere") == "[no match]"
    assert "one line" in await refusal(workspace, "")


async def test_a_pattern_is_a_regular_expression_of_one_line(workspace: Workspace, ws: Path) -> None:
    put(ws, "a.py", "def first(x):\r\n    return x\r\n\r\ndef second(y): ...\r\n")

    assert await search(workspace, r"^def (\w+)\(\w\):$") == "a.py:1: def first(x):"
    assert await search(workspace, r"^\s*return\b|SECOND", ignore_case=True) == (
        "a.py:2:     return x\na.py:4: def second(y): ..."
    )
    assert await search(workspace, r"(?<!def )second|(?P<name>first)(?=\()") == "a.py:1: def first(x):"
    assert await search(workspace, "x.*return") == "[no match]"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("needle(", "missing )"),
        ("[a-", "unterminated character set"),
        ("*", "nothing to repeat"),
        ("(?R)?a", "calls itself"),
        (r"(a)\(?(?1)", "calls itself"),
        ("(?<x>a(?&x)?)", "calls itself"),
        ("a" * 1001, "at most 1000 characters"),
    ],
)
async def test_what_is_no_usable_pattern_is_refused_with_the_reason(
    workspace: Workspace, pattern: str, why: str
) -> None:
    assert why in await refusal(workspace, pattern)


@pytest.mark.parametrize("pattern", ["needle(", "[a-", "(?R)"])
async def test_literal_takes_every_pattern_for_plain_text(workspace: Workspace, ws: Path, pattern: str) -> None:
    put(ws, "a", f"one {pattern} two")

    assert await search(workspace, pattern, literal=True) == f"a:1: one {pattern} two"


async def test_a_pattern_that_would_never_end_stops_and_the_run_goes_on(tmp_path: Path) -> None:
    endless = {"pattern": "(a|a)*$", "path": "."}
    script = [
        {"call": "write_file", "arguments": {"path": "a.txt", "content": f"aa\n{'a' * 100}b\n"}},
        {"call": "search_files", "arguments": endless},
        {"call": "search_files", "arguments": {"pattern": "aab"}},
        {"answer": "42"},
    ]
    ended = await run_team(tmp_path, team(script))

    assert ended.snapshot.state == "completed"
    _, stopped, found = ended.of(ToolFinished)
    assert stopped.result.split("\n") == [
        "a.txt:1: aa",
        "[stopped at a.txt:2, it took too long: simplify the pattern, narrow `path` or `glob`]",
    ]
    assert found.result.startswith("a.txt:2: ")


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("*.{py,ts}", ["a.py", "src/b.py", "src/d.ts", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("src/", ["src/b.py", "src/d.ts", "src/deep/c.py"]),
        ("deep", ["src/deep/c.py"]),
        ("/*.py", ["a.py"]),
        ("!*.py", ["e.min.js", "src/d.ts"]),
        ("[a-b].py", ["a.py", "src/b.py"]),
        ("?.ts", ["src/d.ts"]),
        ("*.{min.js,{ts,tsx}}", ["e.min.js", "src/d.ts"]),
        ("", ["a.py", "e.min.js", "src/b.py", "src/d.ts", "src/deep/c.py"]),
    ],
)
async def test_a_glob_narrows_the_files_as_git_and_ripgrep_do(
    workspace: Workspace, ws: Path, glob: str, found: list[str]
) -> None:
    for path in ("a.py", "src/b.py", "src/deep/c.py", "src/d.ts", "e.min.js"):
        put(ws, path)

    assert [line.split(":")[0] for line in (await search(workspace, "needle", glob=glob)).split("\n")] == found


async def test_a_glob_may_be_meant_from_the_directory_that_is_searched(workspace: Workspace, project: Path) -> None:
    put(project, "src/a.py")

    for glob in ("src/*.py", "context/project/src/*.py"):
        assert await search(workspace, "needle", path="context/project", glob=glob) == (
            "context/project/src/a.py:1: needle"
        )
    assert "more than 64 patterns" in await refusal(workspace, "x", glob="{a,b}" * 7)


def test_what_gitignore_names_is_found_out_in_bounded_time(workspace: Workspace, ws: Path) -> None:
    put(ws, ".gitignore", "*.log\n")
    put(ws, "a")

    with pytest.raises(TookTooLong):
        workspace.listing(".", recursive=True, limit=10, without_ignored=Deadline.after(-1))
    with pytest.raises(TookTooLong):
        Glob("*.py").fits("a", Deadline.after(-1))


async def test_a_glob_that_other_matchers_never_finish_is_answered(workspace: Workspace, ws: Path) -> None:
    put(ws, "a" * 250)
    put(ws, ".gitignore", f"{'*a' * 20}[bc]\n")

    assert (await search(workspace, "needle")).endswith("a:1: needle")
    assert await search(workspace, "needle", glob=f"{'*a' * 20}[bc]") == "[no match]"


IGNORED = {
    ".gitignore": "# built\nnode_modules/\n*.log\n!keep.log\n/only-top\n",
    "src/.gitignore": "generated/\n!important.log\n",
    "src/main.py": "",
    "src/generated/x.py": "",
    "src/important.log": "",
    "src/only-top": "",
    "src/deep/node_modules/y.js": "",
    "node_modules/pkg/index.js": "",
    "only-top": "",
    "noise.log": "",
    "keep.log": "",
    ".git/HEAD": "",
    ".github/ci.yml": "",
}
"""Files of a project, and what its `.gitignore` files say; the others hold a needle."""

NOT_IGNORED = [".github/ci.yml", "keep.log", "src/important.log", "src/main.py", "src/only-top"]


@pytest.fixture
def ignoring(project: Path) -> Path:
    for path, text in IGNORED.items():
        put(project, path, text or "needle\n")
    return project


@pytest.mark.usefixtures("ignoring")
async def test_what_gitignore_names_is_left_out_and_counted(workspace: Workspace) -> None:
    found = (await search(workspace, "needle", path="context")).split("\n")
    assert found == [
        *(f"context/project/{path}:1: needle" for path in NOT_IGNORED),
        "[6 more left out: .git, and what .gitignore names; include_ignored shows them]",
    ]
    listed = await use(workspace, "list_files", {"path": "context/project", "recursive": True})
    files = [line.rpartition(" ")[0] for line in listed.split("\n") if line[-1] not in "/]"]
    assert files == sorted(f"context/project/{path}" for path in [*NOT_IGNORED, ".gitignore", "src/.gitignore"])


@pytest.mark.parametrize(("line", "found"), [("*", []), ("*/", ["x"]), ("/*/", ["x"])])
async def test_what_ignores_everything_ignores_the_shortest_name(
    workspace: Workspace, ws: Path, line: str, found: list[str]
) -> None:
    for path in ("x", "y/x"):
        put(ws, path)
    put(ws, ".gitignore", line)
    listed = (await search(workspace, "needle")).split("\n")
    assert [at.partition(":")[0] for at in listed if at.endswith(": needle")] == found


@pytest.mark.usefixtures("ignoring")
async def test_what_is_ignored_is_found_when_asked_for(workspace: Workspace) -> None:
    everything = await search(workspace, "needle", path="context/project", include_ignored=True)
    assert everything.count(":1: needle") == len(IGNORED) - 2
    assert await search(workspace, "needle", path="context/project/node_modules") == (
        "context/project/node_modules/pkg/index.js:1: needle"
    )
    assert await search(workspace, "needle", path="context/project/noise.log") == "context/project/noise.log:1: needle"
    below = await search(workspace, "needle", path="context/project/src/deep")
    assert below.startswith("[no match]\n[1 more left out"), "what stands above the place still holds"
    assert "node_modules/" in await use(workspace, "list_files", {"path": "context/project"})


@pytest.mark.parametrize(
    ("lines", "path", "found"),
    [
        ("dist/**", "dist/sub", ["dist/sub/a.txt"]),
        ("dist/**", ".", ["important/a.txt"]),
        ("*.txt\n!/important/", ".", []),
        ("*.txt\n!important/*.txt", ".", ["important/a.txt"]),
        ("dist/*\n!dist/sub", ".", ["dist/sub/a.txt", "important/a.txt"]),
        ("/sub\n/important", ".", ["dist/sub/a.txt"]),
        ("**/sub", ".", ["important/a.txt"]),
        ("*/", ".", []),
    ],
)
async def test_rules_mean_what_they_mean_to_git(
    workspace: Workspace, ws: Path, lines: str, path: str, found: list[str]
) -> None:
    put(ws, "dist/sub/a.txt")
    put(ws, "important/a.txt")
    put(ws, ".gitignore", lines)

    listed = (await search(workspace, "needle", path=path)).split("\n")
    assert [line.partition(":")[0] for line in listed if line.endswith(": needle")] == found


async def test_a_broken_gitignore_hides_nothing(workspace: Workspace, ws: Path) -> None:
    (ws / ".gitignore").write_bytes(b"\xff\xfe[\n\\\n[z-a]\n!!\n\0\n/\n" + b"x" * 5000 + b"\n*.log")
    put(ws, "a.py")
    put(ws, "a.log")

    assert (await search(workspace, "needle", glob="a.*")).startswith("a.py:1: needle\n[1 more left out")


async def test_what_was_not_searched_is_told(workspace: Workspace, ws: Path) -> None:
    put(ws, "text")
    for name in ("a.png", "b.png", "c.png", "d.png"):
        (ws / name).write_bytes(b"\0needle")
    with (ws / "huge").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    put(ws, "min.js", "x" * 100_000 + "needle")

    assert (await search(workspace, "needle")).split("\n") == [
        "text:1: needle",
        "[a.png, b.png, c.png and 1 more: binary, not searched]",
        f"[huge: larger than {MAX_FILE_BYTES} bytes, not searched]",
        "[min.js:1: only the first 100000 characters of the line were searched]",
    ]
    assert await search(workspace, "needle", path="a.png") == "[no match]\n[a.png: binary, not searched]"


async def test_many_and_long_matches_are_cut(workspace: Workspace, ws: Path) -> None:
    put(ws, "m", "hit\n" * 500)
    put(ws, "w", "wide" + "x" * 5000 + "far")

    lines = (await search(workspace, "hit")).splitlines()
    assert (len(lines), lines[199], lines[200]) == (201, "m:200: hit", "[cut at 200 matches]")
    assert len(await search(workspace, "wide")) == len("w:1: ") + 2000
    assert (await search(workspace, "far")).endswith("xfar"), "the part of the line that matches is shown"


async def test_a_search_stops_when_it_has_read_enough_and_says_so(workspace: Workspace, ws: Path) -> None:
    for number in range(9):
        with (ws / f"sparse{number}").open("wb") as file:
            file.truncate(MAX_FILE_BYTES)

    assert "not all was searched" in await search(workspace, "x")


async def test_a_whole_tree_is_listed_with_what_does_not_fit_as_numbers(workspace: Workspace, ws: Path) -> None:
    put(ws, "src/main.py")
    for number in range(1200):
        put(ws, f"assets/icons/{number}.svg", "")
    put(ws, "assets/logo.svg", "")
    put(ws, "z/last.py")

    assert (await use(workspace, "list_files", {"recursive": True})).split("\n") == [
        *("assets/", "assets/icons/ [1200 below, list it to see them]", "assets/logo.svg 0", "context/", "peers/"),
        *("src/", "src/main.py 7", "z/", "z/last.py 7"),
    ]
    icons = (await use(workspace, "list_files", {"path": "assets/icons", "recursive": True})).split("\n")
    assert (len(icons), icons[-1]) == (1001, "[cut at 1000 entries]")
