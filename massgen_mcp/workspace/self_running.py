"""Which files other tools run or obey by themselves, as soon as a person opens, enters, commits or pushes a directory.

The one rule for them. A file is judged by its path, in any directory and any case of letters.
"""

from fnmatch import fnmatchcase

from massgen_mcp.workspace.secrets import folded

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
