"""Files that other tools run or obey by themselves, as soon as a person opens, enters, commits or pushes a directory.

The one rule for these files, by kinds: a file is judged by its path, in any directory and any case of letters. A name
that begins with a dot is a setting of some tool unless it is known to be harmless, so a tool that is not known here is
no way around. What a person starts on purpose, as a `Makefile` or a `conftest.py`, is none of these files. Pure.
"""

import re
from fnmatch import fnmatchcase, translate
from functools import cache

from massgen_mcp.secret_files import fold_name

_GIT_HOOKS = (
    *("applypatch-msg", "commit-msg", "post-applypatch", "post-checkout", "post-commit", "post-merge", "post-receive"),
    *("post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase"),
    *("pre-receive", "prepare-commit-msg", "push-to-checkout", "reference-transaction", "sendemail-validate"),
)
SELF_RUNNING: dict[str, tuple[str, ...]] = {
    # agents and their servers
    "Claude Code": (".claude", ".claude-plugin", "claude.md", "claude.local.md", "hooks/hooks.json"),
    "MCP clients": (
        *(".mcp.json", "mcp.json*", "mcp.toml", "mcp.y*ml", "*mcp[-_]config.json", "*mcp[-_]settings.json"),
        *("mcp[-_]servers.json", "claude_desktop_config.json"),
    ),
    "Cursor": (".cursor", ".cursorrules", "*.mdc"),
    "Windsurf": (".windsurf", ".windsurfrules"),
    "Codex": (".codex", "codex.md"),
    "Gemini CLI": (".gemini", "gemini.md", "gemini-extension.json"),
    "OpenCode": (".opencode", "opencode.json*", "opencode.md"),
    "Aider": (".aider*",),
    "MassGen": (".massgen",),
    "GitHub Copilot": (
        *(".github/copilot*", ".github/instructions", ".github/hooks", ".github/agents", ".github/prompts"),
        *(".github/chatmodes", ".github/skills", ".github/mcp*", ".github/extensions", ".copilot"),
        *("*.instructions.md", "*.prompt.md", "*.chatmode.md", "*.agent.md", "copilot-instructions.md"),
    ),
    "coding agents": (
        *("agents.md", "agent.md", "agents.override.md", "agents.local.md", "crush.md", "crush.json", "qwen.md"),
        *("warp.md", "jules.md", "replit.md", "kilo.json*"),
    ),
    # editors and what prepares a directory for work
    "VS Code": (".vscode", "*.code-workspace"),
    "JetBrains IDEs": (".idea", ".run"),
    "Zed": (".zed",),
    "Vim": (".exrc", "_exrc", "_vimrc", "_gvimrc"),
    "Neovim": (".nvim.lua", ".nvimrc"),
    "Emacs": (".dir-locals*.el",),
    "Sublime Text": ("*.sublime-project", "*.sublime-workspace"),
    "Visual Studio": (".vs", "*.suo", "*proj.user"),
    "NetBeans": ("nbproject",),
    "dev containers": (".devcontainer", ".devcontainer.json", "devfile.y*ml"),
    "Replit": (".replit", "replit.nix"),
    "direnv": (".envrc",),
    "mise": (".mise*.toml", "mise*.toml", "mise/config*.toml"),
    "devbox": ("devbox.json", "devenv.y*ml"),
    # hooks
    "git hooks": (".husky", ".githooks", ".git/hooks", "githooks", "git-hooks", "*hooks/update", *_GIT_HOOKS),
    "pre-commit": (".pre-commit-config.y*ml", ".pre-commit-hooks.y*ml", "pre-commit-config.y*ml", "prek.toml"),
    "Lefthook": ("*lefthook*.y*ml", "*lefthook*.json", "*lefthook*.toml", ".lefthook*"),
    "other git hook managers": (
        *("captainhook.json", "grumphp.y*ml*", "simple-git-hooks.*", "lint-staged.config.*", "cog.toml", "hk.pkl"),
        *("*.overcommit.y*ml", "ghooks.*"),
    ),
    # continuous integration, and services that build and run what is pushed
    "GitHub Actions": (".github/workflows", ".github/actions"),
    "GitHub": (".github/settings.y*ml", ".github/mergify.y*ml"),
    "GitLab CI": (".gitlab-ci*", ".gitlab/ci*", ".gitlab/agents", ".gitlab/duo", "*.gitlab-ci.y*ml"),
    "Forgejo and Gitea": (".gitea/workflows", ".gitea/actions", ".forgejo/workflows", ".forgejo/actions"),
    "CircleCI": (".circleci", "circle.y*ml"),
    "Travis CI": (".travis*",),
    "Buildkite": (".buildkite",),
    "Azure Pipelines": ("*azure-pipeline*.y*ml", ".azure-pipelines", ".azuredevops", ".vsts*"),
    "Bitbucket Pipelines": ("bitbucket-pipelines.y*ml",),
    "Jenkins": ("jenkinsfile*", "*.jenkinsfile"),
    "AppVeyor": ("*appveyor.y*ml",),
    "AWS": ("buildspec*.y*ml", "appspec.y*ml", "amplify.y*ml", "apprunner.y*ml"),
    "Google Cloud Build": ("cloudbuild*.y*ml", "cloudbuild*.json"),
    "Read the Docs": (".readthedocs.y*ml", "readthedocs.y*ml"),
    "Xcode Cloud": ("ci_scripts/ci_*",),
    "Zuul": ("zuul.y*ml", "zuul.d", ".zuul*"),
    "hosting services that build pushed code": (
        *("netlify.toml", "vercel.json", "now.json", "render.y*ml", "railway.json", "railway.toml", "heroku.y*ml"),
        *("procfile", "nixpacks.toml", "captain-definition"),
    ),
    "other CI services": (
        *("bamboo-specs", "bamboo.y*ml", "bitrise.y*ml", "bors.toml", "buddy.y*ml", "codefresh.y*ml"),
        *("codemagic.y*ml", "codeship-*.y*ml", "gocd.y*ml", "*.gocd.y*ml", "mergify.y*ml", "packit.y*ml"),
        *("screwdriver.y*ml", "semaphore.y*ml", "shippable.y*ml", "sider.y*ml", "wercker.y*ml", "woodpecker.y*ml"),
        *("drone.y*ml", "cirrus.y*ml"),
    ),
    # start files of tools
    "Python": ("sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize"),
    "IPython and Jupyter": ("ipython_config.py", "jupyter_*config.py", "jupyter_*config.json"),
    "package managers": (
        *(".npmrc", ".yarnrc*", ".yarn", ".pnp.*", ".pnpmfile.*", "pnpmfile.*js", "bunfig.toml", "pip.conf", "pip.ini"),
    ),
    "Cargo": (".cargo/config*", ".cargo/bin"),
    "Bazel": ("tools/bazel", ".bazelrc", ".bazelisk*"),
    "debuggers": (".gdbinit", ".lldbinit", "*-gdb.py", "*-gdb.gdb", "*-gdb.scm"),
    "the desktop": ("desktop.ini", "autorun.inf", "*.scf"),
    # directories of version control, whose settings name programs
    "version control": (
        *(".hg", ".hgrc", ".hgsub", ".svn", ".jj", ".bzr", ".sl", ".pijul", "_darcs", "_mtn", "{arch}", ".fslckout"),
        *("_fossil_", "cvs/root", "cvs/entries", "cvs/repository", "*.git", "head"),
    ),
}
"""Patterns of one or more components, in small letters, by what runs the file: a file of that name, or everything below
a directory of that name. `head` is what makes a bare repository of a directory.
"""

HARMLESS_DIRECTORIES = (
    *(
        ".assets",
        ".cargo",
        ".changes",
        ".changeset",
        ".chloggen",
        ".docker",
        ".docs",
        ".docusaurus",
        ".forgejo",
        ".gitea",
    ),
    *(".github", ".gitlab", ".images", ".licenses", ".reuse", ".screenshots", ".static", ".storybook", ".templates"),
    *(".tx", ".vitepress", ".vuepress", ".well-known"),
)
HARMLESS_FILES = (
    # for git and for people
    *(".*ignore", ".git-blame-ignore-revs", ".gitattributes", ".gitkeep", ".gitlint", ".gitmodules", ".gitreview"),
    *(".gitmessage", ".hgtags", ".hgeol", ".keep", ".empty", ".placeholder", ".nojekyll", ".mailmap", ".zenodo*"),
    *(".editorconfig", ".env", ".env.*", ".htaccess", ".*-version", ".*-versions", ".nvmrc", ".sdkmanrc", ".metadata"),
    # linters, formatters, reporters
    *(".all-contributorsrc", ".ansible-lint*", ".babelrc*", ".bandit", ".biome.json*", ".browserslistrc"),
    *(".bumpversion*", ".c8rc*", ".clang-format", ".clang-tidy", ".clangd", ".clippy.toml", ".cmake-format*"),
    *(".cmakelint*", ".codacy*", ".codeclimate*", ".codecov*", ".codespell*", ".commitlintrc*", ".copier-answers*"),
    *(".coveragerc", ".coveralls*", ".credo.exs", ".cruft.json", ".cspell*", ".deepsource*", ".depcheckrc*"),
    *(".dialyzer*", ".document", ".dprint*", ".erb-lint*", ".erb_lint*", ".eslintrc*", ".flake8", ".formatter.exs"),
    *(".gersemi*", ".golangci*", ".goreleaser*", ".hadolint*", ".haml-lint*", ".hlint*", ".htmlhintrc", ".htmltest*"),
    *(".import_linter*", ".importlinter", ".isort.cfg", ".istanbul*", ".jsbeautifyrc", ".jscpd*", ".jscsrc"),
    *(".jsdoc*", ".jshintrc", ".ktlint*", ".licenserc*", ".lintr", ".luacheckrc", ".luacov", ".lychee*"),
    *(".markdownlint*", ".mdl*", ".mlc*", ".mocharc*", ".mypy.ini", ".nycrc*", ".ocamlformat*", ".ocp-indent"),
    *(".oxfmtrc*", ".oxlintrc*", ".perlcriticrc", ".perltidyrc", ".php-cs-fixer*", ".php_cs*", ".phpcs*"),
    *(".postcssrc*", ".prettierrc*", ".projectile", ".proselintrc", ".protolint*", ".pycodestyle", ".pydocstyle*"),
    *(".pylintrc", ".reek*", ".release-please*", ".releaserc*", ".remarkrc*", ".rspec*", ".rubocop*", ".ruby-gemset"),
    *(".ruff.toml", ".rustfmt.toml", ".sass-lint*", ".scalafix*", ".scalafmt*", ".scss-lint*", ".shellcheckrc"),
    *(".shellspec", ".simplecov", ".size-limit*", ".slather*", ".snyk", ".sonar*", ".spectral*", ".sqlfluff"),
    *(".standard.y*ml", ".style.yapf", ".styleci*", ".stylelintrc*", ".stylish-haskell*", ".stylua*", ".swcrc"),
    *(".swift-format", ".swiftformat", ".swiftlint*", ".taplo*", ".taprc*", ".textlintrc*", ".tflint*", ".tsqllintrc"),
    *(".typos*", ".vale.ini", ".versionrc*", ".wordlist*", ".yamlfmt*", ".yamllint*", ".yapf*", ".yardopts", ".yo-rc*"),
)
"""Patterns of names with a dot that no tool runs by itself."""
TEST_DATA = (
    *("fixture", "fixtures", "__fixtures__", "*-fixtures", "*_fixtures", "testdata", "test-data", "test_data"),
    *("snapshots", "__snapshots__", "golden", "goldens", "test", "tests", "__tests__", "spec", "specs", "playground"),
)
"""Patterns of directories in which unknown names with a dot are data of tests. Known ones run there, too."""

_PATTERNS = tuple((pattern.split("/"), tool) for tool, patterns in SELF_RUNNING.items() for pattern in patterns)
_WILDCARDS = frozenset("*?[")
_FIRST_NAMES = frozenset(pattern[0] for pattern, _ in _PATTERNS)
"""A path without any of these fits no pattern, and most paths are told by this alone."""


def find_tool(path: str, *, link: bool = False) -> str | None:
    """Return what runs the file at this path by itself; None: nothing known. The path begins with the name of the
    directory that it lies in, as patches have it. `link`: it is a link, so whatever would lie below it counts as well.
    """
    names = [fold_name(part) for part in path.split("/")]
    if any(map(_begins_pattern, names)) and (tool := _find_known(names, link=link)):
        return tool
    return _find_dotted(names[1:], link=link)


def _begins_pattern(name: str) -> bool:
    return name in _FIRST_NAMES or _compile_first_names().match(name) is not None


@cache
def _compile_first_names() -> re.Pattern[str]:
    return re.compile("|".join(translate(name) for name in sorted(_FIRST_NAMES) if _WILDCARDS & {*name}))


def _find_known(names: list[str], *, link: bool) -> str | None:
    for pattern, tool in _PATTERNS:
        for at in range(len(names)):
            found = names[at : at + len(pattern)]
            whole = len(found) == len(pattern) or link
            if whole and all(map(fnmatchcase, found, pattern)):
                return tool
    return None


def _find_dotted(names: list[str], *, link: bool) -> str | None:
    """Return the same for a name that begins with a dot, and that nothing else is known of."""
    if not any(name.startswith(".") for name in names):
        return None
    for place, name in enumerate(names):
        if _is_like(name, TEST_DATA):
            return None
        harmless = HARMLESS_FILES if place == len(names) - 1 else HARMLESS_DIRECTORIES
        if name.startswith(".") and (link or not _is_like(name, harmless)):
            return f"tools that read {name}"
    return None


def _is_like(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
