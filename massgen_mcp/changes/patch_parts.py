"""A patch as it is shown: the beginning of each file's difference where it is too long, so that a long one hides no
other; with numbers of hunks, and a line above each file that other tools run or obey by themselves, as soon as a person
opens, enters, commits or pushes a directory.

The one rule for these files: one is judged by its path, in any directory and any case of letters.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path

from massgen_mcp.workspace.hidden import folded

SELF_RUNNING: tuple[tuple[str, str], ...] = (
    (".claude", "Claude Code"),
    (".mcp.json", "MCP clients"),
    (".cursor", "Cursor"),
    (".cursorrules", "Cursor"),
    (".windsurf", "Windsurf"),
    (".windsurfrules", "Windsurf"),
    (".codex", "Codex"),
    (".gemini", "Gemini CLI"),
    (".opencode", "OpenCode"),
    ("opencode.json*", "OpenCode"),
    (".aider.conf.yml", "Aider"),
    (".massgen", "MassGen"),
    ("agents.md", "coding agents"),
    ("agents.override.md", "coding agents"),
    ("claude.md", "Claude Code"),
    ("claude.local.md", "Claude Code"),
    ("gemini.md", "Gemini CLI"),
    (".vscode", "VS Code"),
    ("*.code-workspace", "VS Code"),
    (".idea", "JetBrains IDEs"),
    (".run", "JetBrains IDEs"),
    (".zed", "Zed"),
    (".exrc", "Vim"),
    (".nvim.lua", "Neovim"),
    (".nvimrc", "Neovim"),
    (".dir-locals*.el", "Emacs"),
    (".devcontainer", "dev containers"),
    (".devcontainer.json", "dev containers"),
    (".envrc", "direnv"),
    (".mise*.toml", "mise"),
    ("mise*.toml", "mise"),
    (".husky", "git hooks"),
    (".githooks", "git hooks"),
    (".git/hooks", "git hooks"),
    (".pre-commit-config.y*ml", "pre-commit"),
    (".pre-commit-hooks.y*ml", "pre-commit"),
    ("*lefthook*.y*ml", "Lefthook"),
    (".lefthook*", "Lefthook"),
    (".github/workflows", "GitHub Actions"),
    (".github/actions", "GitHub Actions"),
    (".github/copilot-*", "GitHub Copilot"),
    (".github/instructions", "GitHub Copilot"),
    (".github/hooks", "GitHub Copilot"),
    (".github/agents", "GitHub Copilot"),
    (".gitlab-ci.y*ml", "GitLab CI"),
    (".gitlab/ci", "GitLab CI"),
    (".circleci", "CircleCI"),
    (".travis.yml", "Travis CI"),
    (".buildkite", "Buildkite"),
    ("azure-pipelines*.y*ml", "Azure Pipelines"),
    ("bitbucket-pipelines.yml", "Bitbucket Pipelines"),
    ("jenkinsfile*", "Jenkins"),
)
"""A pattern of one or more components, in small letters, and what runs it: a file of that name, or everything below a
directory of that name.
"""

_PATTERNS = tuple((pattern.split("/"), tool) for pattern, tool in SELF_RUNNING)


def run_by(path: str, *, link: bool = False) -> str | None:
    """What runs the file at this path by itself; None: nothing known. `link`: it is a link, so whatever would lie below
    it counts as well.
    """
    names = [folded(part) for part in path.split("/")]
    for pattern, tool in _PATTERNS:
        for at in range(len(names)):
            found = names[at : at + len(pattern)]
            whole = len(found) == len(pattern) or link
            if whole and all(map(fnmatchcase, found, pattern)):
                return tool
    return None


LEAST_BYTES = 200
"""Less of a file is not worth showing; where there are more files, the last ones are left out."""
MARK_BYTES = 60
_BEGIN = b"diff --git "
_CHUNK = 1 << 16
_HEADS = re.compile(rb"^(?:diff --git (.*)|@@ -\S+ \+\S+ @@)", re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def beginnings(patch: Path, most: int) -> bytes:
    """All of it, if it has at most `most` bytes. Else each file has an equal part of them, and leaves to the others
    what it does not need; where one is cut, a line says how much of it is missing. Raises `OSError`.
    """
    with patch.open("rb") as file:
        text = file.read(most + 1)
        if len(text) <= most:
            return text
        file.seek(0)
        starts: list[int] = []
        at, whole = 0, True
        while chunk := file.readline(_CHUNK):
            if whole and chunk.startswith(_BEGIN):
                starts.append(at)
            at += len(chunk)
            whole = chunk.endswith(b"\n")
        ends = [*starts[1:], at]
        lengths = [end - start for start, end in zip(starts, ends, strict=True)][: max(1, most // LEAST_BYTES)]
        parts: list[bytes] = []
        for start, length, share in zip(starts, lengths, shares(lengths, most), strict=False):
            file.seek(start)
            parts.append(_cut(file.read(min(length, share)), length))
    return b"".join(parts) or text[:most]


def shares(lengths: list[int], most: int) -> list[int]:
    """How much of `most` each gets: an equal part, and what the shorter ones leave."""
    given = [0] * len(lengths)
    for left, place in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        given[place] = min(lengths[place], (most - sum(given)) // (len(lengths) - left))
    return given


def _cut(part: bytes, length: int) -> bytes:
    if len(part) == length:
        return part
    kept = part[: max(0, len(part) - MARK_BYTES)]
    kept = kept[: kept.rfind(b"\n") + 1] or kept
    return kept + b"[%d more bytes of this file are not shown]\n" % (length - len(kept))


def marked(patch: bytes) -> bytes:
    """With the number of each hunk in its file, and what runs a file by itself. `git apply` takes it as it was."""
    number = 0

    def mark(head: re.Match[bytes]) -> bytes:
        nonlocal number
        if head[1] is None:
            number += 1
            return b"%s #%d" % (head[0], number)
        number = 0
        names = _ESCAPED.sub(lambda escaped: bytes([int(escaped[1], 8) & 255]), head[1]).replace(b'"', b"")
        tool = run_by(names.replace(b" b/", b"/").decode(errors="replace"))
        return head[0] if tool is None else b"# The next file runs by itself: %s\n%s" % (tool.encode(), head[0])

    return _HEADS.sub(mark, patch)
