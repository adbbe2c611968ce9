"""What the tool chains of a project need inside the sandbox: the user's programs and caches of packages, read-only, and
the variables by which the tools find them and stay off the network. Data: one row per tool chain.

A row shows what belongs to the tool, and not whole directories. The logins that lie in that all the same are hidden,
and of settings some keys are shown (see `tool_files`). Must not know any level.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from massgen_mcp.sandbox.policy import (
    OF_ASDF,
    OF_ENVIRONMENT,
    OF_FNM,
    OF_JDK,
    OF_MANAGER,
    OF_NODES,
    OF_PREFIX,
    OF_RUSTUP,
    OF_VOLTA,
    VisiblePath,
    list_parts,
    list_shown,
    merge_parts,
    outermost,
)

MAX_LOOKED_AT = 5_000
"""Entries of directories, in a search for the files by which tool chains are known."""
MAX_DEPTH = 3
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ToolPlace:
    """A directory of the user's in which a tool keeps things: where its variable says, else below the home."""

    variable: str | None
    usual: str
    """Relative to the home; empty: nowhere but where the variable says."""
    shown: tuple[str, ...] = (".",)
    """Patterns of what is shown of it."""
    written: bool = False
    """Its tool writes there: what a command writes is gone with it."""
    empty: bool = False
    """What is not shown of it is not missed: its tool has an empty one to write to."""
    option: str = ""
    """What the variable is set to, with the directory for `{}`, what is in it for `{each}`; empty: to that."""


@dataclass(frozen=True, slots=True)
class ToolChain:
    """`marks`: patterns of the names of files by which it is known."""

    name: str
    marks: tuple[str, ...]
    places: tuple[ToolPlace, ...] = ()
    variables: Mapping[str, str] = field(default_factory=lambda: _NONE)


_OF_POETRY = ".cache/pypoetry/virtualenvs"
_OF_DOTNET = ("dotnet", "host", "library-packs", "metadata", "packs", "sdk", "sdk-manifests", "shared", "templates")
"""Certificates with private keys lie beside them."""
_ENVIRONMENTS = list_parts("*", OF_ENVIRONMENT)
_USER_PROGRAMS = (
    ToolPlace(None, ".local/bin"),
    ToolPlace(
        None, ".local/share/pipx", (*list_parts("venvs/*", OF_ENVIRONMENT), *list_parts("shared", OF_ENVIRONMENT))
    ),
    ToolPlace(None, ".local/lib", ("python*/site-packages", "node_modules")),
)
"""Shown with each tool chain."""
_OF_GEMS = list_parts("*", ("bin", "cache", "extensions", "gems", "plugins", "specifications"))

_JAVA = (
    ToolPlace("JAVA_HOME", "", OF_JDK),
    ToolPlace(None, ".jdks", list_parts("*", OF_JDK)),
    ToolPlace("SDKMAN_DIR", ".sdkman", ("candidates/*/*/*",)),
    ToolPlace(None, ".jenv", (*list_parts("versions/*", OF_JDK), "shims", "bin", "libexec")),
)

TOOL_CHAINS = (
    ToolChain(
        "Rust",
        ("Cargo.toml", "rust-toolchain*"),
        (
            ToolPlace("RUSTUP_HOME", ".rustup", OF_RUSTUP),
            ToolPlace(
                "CARGO_HOME",
                ".cargo",
                (
                    *("bin", "config", "config.toml", "git/checkouts", "git/db"),
                    *("registry/cache", "registry/index", "registry/src"),
                ),
            ),
        ),
        {"CARGO_NET_OFFLINE": "true"},
    ),
    ToolChain(
        "Go",
        ("go.mod", "go.work"),
        (
            ToolPlace("GOMODCACHE", "go/pkg/mod"),
            ToolPlace(None, "go/bin"),
            ToolPlace(None, "sdk", list_parts("*", ("VERSION", "bin", "go.env", "lib", "misc", "pkg", "src"))),
        ),
        {"GOPROXY": "off", "GOTOOLCHAIN": "local"},
    ),
    ToolChain(
        "Python",
        (
            "pyproject.toml",
            "setup.py",
            "setup.cfg",
            "requirements*.txt",
            "uv.lock",
            "poetry.lock",
            "Pipfile",
            "tox.ini",
        ),
        (
            ToolPlace(
                None, ".local/share/pypoetry", (*list_parts("venv", OF_ENVIRONMENT), *list_parts("python/*", OF_PREFIX))
            ),
            ToolPlace(None, _OF_POETRY, _ENVIRONMENTS),
            ToolPlace(None, ".local/share/virtualenvs", _ENVIRONMENTS),
            ToolPlace("PYENV_ROOT", ".pyenv", OF_MANAGER),
        ),
        {
            "UV_OFFLINE": "1",
            "UV_NO_SYNC": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "POETRY_NO_INTERACTION": "1",
        },
    ),
    ToolChain(
        "Node.js",
        ("package.json", "deno.json*"),
        (
            ToolPlace(None, ".npm-global", ("bin", "lib/node_modules")),
            ToolPlace("NVM_DIR", ".nvm", OF_NODES),
            ToolPlace("VOLTA_HOME", ".volta", OF_VOLTA),
            ToolPlace(None, ".local/share/fnm", OF_FNM),
            ToolPlace(
                "PNPM_HOME",
                ".local/share/pnpm",
                (
                    *(".tools", "bin", "global/*/node_modules", "global/*/.pnpm", "pnpm", "pnpx", "store"),
                    *list_parts("nodejs/*", OF_PREFIX),
                ),
            ),
            ToolPlace("COREPACK_HOME", ".cache/node/corepack", ("lastKnownGood.json", "npm", "pnpm", "v1", "yarn")),
            ToolPlace("YARN_GLOBAL_FOLDER", ".yarn/berry", ("cache",)),
            ToolPlace("BUN_INSTALL", ".bun", ("bin", "install/cache")),
            ToolPlace(
                "DENO_DIR",
                ".cache/deno",
                ("*_cache_v*", "deps", "gen", "npm", "registries", "remote"),
                written=True,
                empty=True,
            ),
            ToolPlace(None, ".deno", ("bin",)),
        ),
        {
            "npm_config_offline": "true",
            "npm_config_update_notifier": "false",
            "npm_config_audit": "false",
            "npm_config_fund": "false",
            "YARN_ENABLE_NETWORK": "0",
            "YARN_ENABLE_TELEMETRY": "0",
            "COREPACK_ENABLE_NETWORK": "0",
            "NEXT_TELEMETRY_DISABLED": "1",
        },
    ),
    ToolChain(
        "Maven",
        ("pom.xml", "mvnw"),
        (
            ToolPlace("MAVEN_OPTS", ".m2/repository", written=True, option="-Dmaven.repo.local={}"),
            ToolPlace(None, ".m2", ("wrapper/dists",)),
            *_JAVA,
        ),
        {"MAVEN_ARGS": "--offline --batch-mode"},
    ),
    ToolChain(
        "Gradle",
        ("build.gradle*", "settings.gradle*", "gradlew"),
        (
            ToolPlace("GRADLE_RO_DEP_CACHE", ".gradle/caches", ()),
            ToolPlace(
                *("GRADLE_USER_HOME", ".gradle", ("caches", "wrapper/dists", "gradle.properties")),
                written=True,
                empty=True,
            ),
            *_JAVA,
        ),
        {"GRADLE_OPTS": "-Dorg.gradle.daemon=false"},
    ),
    ToolChain(
        "Ruby",
        ("Gemfile", "*.gemspec", ".ruby-version"),
        (
            ToolPlace(None, ".gem/ruby", _OF_GEMS),
            ToolPlace("GEM_PATH", ".local/share/gem/ruby", _OF_GEMS, option="{each}:"),
            ToolPlace(None, ".bundle", ("cache", "plugin/gems")),
            ToolPlace("RBENV_ROOT", ".rbenv", OF_MANAGER),
        ),
        {"BUNDLE_DISABLE_VERSION_CHECK": "true", "BUNDLE_FROZEN": "true"},
    ),
    ToolChain(
        "PHP",
        ("composer.json",),
        (
            ToolPlace(None, ".cache/composer", ("files", "repo/https---repo.packagist.org", "vcs")),
            ToolPlace(None, ".config/composer", ("vendor",)),
        ),
        {"COMPOSER_DISABLE_NETWORK": "1", "COMPOSER_NO_INTERACTION": "1", "COMPOSER_ALLOW_SUPERUSER": "1"},
    ),
    ToolChain(
        ".NET",
        ("*.csproj", "*.fsproj", "*.sln", "*.slnx", "global.json"),
        (
            ToolPlace("NUGET_PACKAGES", ".nuget/packages", written=True),
            ToolPlace("DOTNET_ROOT", ".dotnet", _OF_DOTNET),
            ToolPlace(None, ".dotnet", ("tools",)),
        ),
        {"DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1"},
    ),
    ToolChain(
        "version managers",
        (
            ".tool-versions",
            "mise.toml",
            ".mise.toml",
            ".nvmrc",
            ".node-version",
            ".python-version",
            ".java-version",
            ".sdkmanrc",
        ),
        (
            ToolPlace(
                "MISE_DATA_DIR",
                ".local/share/mise",
                ("bin", "installs/*/*/*", "shims", *list_parts("plugins/*", (*OF_PREFIX, "shims"))),
            ),
            ToolPlace("MISE_CONFIG_DIR", ".config/mise", ("config.toml", "conf.d/*.toml")),
            ToolPlace("ASDF_DATA_DIR", ".asdf", OF_ASDF),
            ToolPlace("PYENV_ROOT", ".pyenv", OF_MANAGER),
            *_JAVA,
        ),
        {"MISE_OFFLINE": "1", "MISE_TRUSTED_CONFIG_PATHS": "/"},
    ),
)


@dataclass(frozen=True, slots=True)
class ProjectTools:
    """What the tool chains that were found need."""

    names: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    layered: tuple[VisiblePath, ...] = ()
    """At their own paths: what a command writes there is gone with it."""
    empty: tuple[str, ...] = ()
    """As in `Policy`."""
    environ: Mapping[str, str] = field(default_factory=lambda: _NONE)


NO_TOOLS = ProjectTools()
OFFLINE = frozenset(
    {
        *("CARGO_NET_OFFLINE", "GOPROXY", "UV_OFFLINE", "UV_NO_SYNC", "UV_PYTHON_DOWNLOADS", "npm_config_offline"),
        *("YARN_ENABLE_NETWORK", "COREPACK_ENABLE_NETWORK", "MAVEN_ARGS", "COMPOSER_DISABLE_NETWORK", "MISE_OFFLINE"),
    }
)
"""The variables of `TOOL_CHAINS` that keep tools off the network."""


def project_tools(projects: Iterable[Path], environ: Mapping[str, str]) -> ProjectTools:
    """For the tool chains known by files of the projects, at most `MAX_DEPTH` directories below them. `environ`: ours,
    whose variables may say where the user keeps things. Blocking.
    """
    projects = tuple(projects)
    names = frozenset(name for project in projects for name in _names_in(project))
    chains = [chain for chain in TOOL_CHAINS if any(fnmatchcase(name, mark) for name in names for mark in chain.marks)]
    names_found = tuple(chain.name for chain in chains)
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises where there is none
    readable: list[Path] = []
    layered: list[Path] = []
    empty: list[str] = []
    variables: dict[str, str] = {}
    for chain in chains:
        variables |= chain.variables
        for place in (*_USER_PROGRAMS, *chain.places):
            if (directory := _tool_directory(place, environ, home)) is None:
                continue
            for found in list_shown(directory, place.shown):
                (layered if place.written and found.is_dir() else readable).append(found)
            empty += [str(directory)] if place.empty else []
            if place.variable is not None:
                variables[place.variable] = (place.option or "{}").format(
                    directory, each=":".join(sorted(str(one) for one in directory.iterdir() if one.is_dir()))
                )
    if "Python" in names_found and (own := _made_by_poetry(projects, home / _OF_POETRY)):
        variables["VIRTUAL_ENV"] = str(own)
    if chains:
        readable += _behind_links(home / ".local/bin")
    shown = tuple(VisiblePath(path, str(path), layered=True) for path in outermost(layered))
    return ProjectTools(names_found, outermost(merge_parts(readable)), shown, tuple(empty), variables)


def _behind_links(programs: Path) -> Iterator[Path]:
    """The environments of Python that links among the user's programs lead to."""
    with suppress(OSError):
        for program in programs.iterdir():
            environment = Path(os.path.realpath(program)).parent.parent
            if program.is_symlink() and os.access(environment / "pyvenv.cfg", os.R_OK):
                yield from list_shown(environment, OF_ENVIRONMENT)


def _made_by_poetry(projects: Iterable[Path], environments: Path) -> Path | None:
    """The newest environment of a project. Poetry looks for it by the project's path, which is another one inside."""
    for project in projects:
        digest = hashlib.sha256(os.fsencode(os.path.realpath(project))).digest()
        mark = base64.urlsafe_b64encode(digest).decode()[:8]
        if found := list(environments.glob(f"*-{mark}-py*")):
            return max(found, key=lambda one: one.stat().st_mtime)
    return None


def _tool_directory(place: ToolPlace, environ: Mapping[str, str], home: Path) -> Path | None:
    """Where it lies, if it can be read. A variable that names the home, or a directory above it, shows nothing."""
    named = environ.get(place.variable, "") if place.variable else ""
    directory = Path(named) if named.startswith("/") and ".." not in Path(named).parts else home / place.usual
    readable = os.access(directory, os.R_OK | os.X_OK) and directory.is_dir()
    return directory if readable and not home.is_relative_to(directory) else None


def _names_in(project: Path) -> Iterator[str]:
    pending, seen = [(project, 0)], 0
    while pending:
        directory, depth = pending.pop()
        try:
            with os.scandir(directory) as items:
                for item in items:
                    seen += 1
                    if seen > MAX_LOOKED_AT:
                        return
                    if not item.is_dir(follow_symlinks=False):
                        yield item.name
                    elif depth < MAX_DEPTH and item.name not in _NOT_SOURCES and not item.name.startswith("."):
                        pending.append((Path(item.path), depth + 1))
        except OSError:
            continue


_NOT_SOURCES = frozenset({"node_modules", "target", "vendor", "dist", "build", "__pycache__", "venv"})
