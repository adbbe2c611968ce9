"""The files of the wheel that aren't Python, each with its reason. A file that isn't listed fails the release check."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

NEEDED: Mapping[str, tuple[str, ...]] = {
    "type checkers read the package's own annotations": ("massgen_mcp/py.typed",),
    "teams that `@examples/NAME` loads": ("massgen_mcp/configs/*.yaml",),
    "task sets that `massgen eval @NAME` reads": (
        "massgen_mcp/evaluation/tasks/coding.jsonl",
        "massgen_mcp/evaluation/tasks/questions.jsonl",
        "massgen_mcp/evaluation/tasks/reviews.jsonl",
    ),
    "the page of a run, the run as an MCP App, and the local web page": (
        "massgen_mcp/page/template/app.css",
        "massgen_mcp/page/template/app.js",
        "massgen_mcp/page/template/ask.js",
        "massgen_mcp/page/template/differences.js",
        "massgen_mcp/page/template/dom.js",
        "massgen_mcp/page/template/markdown.js",
        "massgen_mcp/page/template/run.css",
        "massgen_mcp/page/template/run.html",
        "massgen_mcp/page/template/run.js",
        "massgen_mcp/page/template/saved.js",
        "massgen_mcp/page/template/statistics.css",
        "massgen_mcp/page/template/statistics.js",
        "massgen_mcp/page/template/timeline.js",
        "massgen_mcp/page/template/web.css",
        "massgen_mcp/page/template/web.js",
        "massgen_mcp/page/template/web_statistics.js",
    ),
    "the tables of a PostgreSQL store, which `massgen-mcp store upgrade` makes": (
        "massgen_mcp/runs/store/postgres/steps/0001_runs.sql",
        "massgen_mcp/runs/store/postgres/steps/0002_people.sql",
        "massgen_mcp/runs/store/postgres/steps/0003_shares.sql",
        "massgen_mcp/runs/store/postgres/steps/0004_summaries.sql",
        "massgen_mcp/runs/store/postgres/steps/0005_kinds.sql",
    ),
    "replies to the first messages of an MCP client, sent before the server is imported": (
        "massgen_mcp/server/first_answers.json",
    ),
    "prompts that the server offers to clients": (
        "massgen_mcp/server/prompts/analyze_runs.toml",
        "massgen_mcp/server/prompts/delegate.toml",
        "massgen_mcp/server/prompts/fix_failing_test.toml",
        "massgen_mcp/server/prompts/review_changes.toml",
        "massgen_mcp/server/prompts/root_cause.toml",
        "massgen_mcp/server/prompts/second_opinion.toml",
    ),
    "the skill that every agent with files can read": ("massgen_mcp/skills/file_search/SKILL.md",),
    "metadata of every wheel": (
        "massgen_mcp-*.dist-info/METADATA",
        "massgen_mcp-*.dist-info/RECORD",
        "massgen_mcp-*.dist-info/WHEEL",
        "massgen_mcp-*.dist-info/entry_points.txt",
        "massgen_mcp-*.dist-info/licenses/LICENSE",
    ),
}
"""Names in the wheel, by the reason why they are shipped. `*` stands for any characters, `/` too."""
TESTS = ("*/test_*.py", "*/conftest.py", "*/tests/*")
"""Python files that belong in `tests/`."""


def find_faults(names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each file that the program doesn't need, and for each listed file that is missing."""
    shipped = {name for name in names if not name.endswith("/")}
    listed = [pattern for patterns in NEEDED.values() for pattern in patterns]
    for name in sorted(shipped):
        if name.endswith(".py"):
            if not name.startswith("massgen_mcp/") or any(fnmatchcase(name, pattern) for pattern in TESTS):
                yield f"{name} isn't a module of the program: move it to tests/"
        elif not any(fnmatchcase(name, pattern) for pattern in listed):
            yield f"{name} isn't listed in release/contents.py: remove it, or list it with the reason why it is shipped"
    for pattern in listed:
        if not any(fnmatchcase(name, pattern) for name in shipped):
            yield f"{pattern} is listed in release/contents.py, and the wheel has no such file"


def read_names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()
