"""A home with programs, caches and logins of every tool chain that has a recipe, and the files that tell of each.
What a recipe names is made from the recipe, so that a new one is tried, too.
"""

from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.sandbox.project_tools import TOOL_CHAINS, ToolPlace

_PLACES = tuple(place for chain in TOOL_CHAINS for place in chain.places if place.usual)
_LOGINS = ("credentials", "credentials.toml", "auth.json", "auth.toml", ".npmrc", "settings.xml", "token", "uv.toml")
"""Names that logins have, for one beside whatever a recipe shows."""


def _shown(place: ToolPlace) -> Iterator[str]:
    """A file in each directory that a recipe shows, and the files that it shows."""
    for pattern in place.shown:
        name = f"{place.usual}/{pattern.replace('*', 'x')}"
        is_file = "." in pattern.rpartition("/")[2][1:] or pattern.rpartition("/")[2] in _FILES
        yield (name if is_file else f"{name}/x").replace("/./", "/")


_FILES = ("VERSION", "config", "pnpm", "pnpx", "release", "version")


def _beside(place: ToolPlace) -> Iterator[str]:
    above = place.usual if "." not in place.shown else str(Path(place.usual).parent)
    yield from ((Path(above) / name).as_posix() for name in _LOGINS)


MARKS = (
    *(mark.replace("*", "x") for chain in TOOL_CHAINS for mark in chain.marks[:1]),
    *("build.gradle.kts", "app/app.csproj", "deno.json", "build.gradle", "mise.toml"),
)
_KNOWN = (
    *(".rustup/toolchains/x/bin/x", ".cargo/bin/cargo", ".cargo/registry/src/x", ".cargo/git/db/x", "go/pkg/mod/x"),
    *("go/bin/x", ".local/bin/uv", ".cache/pypoetry/virtualenvs/x/bin/x", ".local/share/pnpm/store/x"),
    *(".m2/repository/x", ".m2/wrapper/dists/x", ".gradle/caches/x", ".gradle/wrapper/dists/x", ".gem/ruby/x/gems/x"),
    *(".local/share/gem/ruby/3.1.0/gems/x", ".cache/composer/files/x", ".nuget/packages/x", ".dotnet/dotnet"),
    *(".local/share/mise/installs/node/x/bin/x", ".asdf/installs/node/x/bin/x", ".dotnet/sdk/x", ".dotnet/tools/x"),
    *(".local/lib/node_modules/x", ".npm-global/bin/x", ".npm-global/lib/node_modules/x", ".yarn/berry/cache/x"),
    *(".bun/install/cache/x", ".cache/node/corepack/v1/x", ".nvm/versions/node/x/bin/x", ".cargo/config.toml"),
    *(".config/mise/config.toml", ".volta/bin/x", ".bun/bin/x", ".jdks/x/bin/x", ".cache/deno/npm/x", ".deno/bin/x"),
    *(".sdkman/candidates/java/x/bin/x", ".local/share/fnm/node-versions/x/installation/bin/x"),
    ".config/mise/conf.d/x.toml",
)
_KNOWN_LOGINS = (
    *(".cargo/credentials.toml", ".npmrc", ".yarnrc.yml", ".m2/settings.xml"),
    *(".m2/settings-security.xml", ".netrc", ".pypirc", ".gem/credentials"),
    *(".bundle/config", ".config/composer/auth.json", ".config/pypoetry/auth.toml", ".nuget/NuGet/NuGet.Config"),
    *(".cargo/credentials", ".config/pip/pip.conf", ".pip/pip.conf", ".config/gh/hosts.yml", ".docker/config.json"),
    *(".config/uv/uv.toml", ".local/share/uv/credentials/x", ".local/share/gem/credentials", ".composer/auth.json"),
    *(".config/npm/npmrc", ".npm-global/etc/npmrc", ".config/pnpm/rc", ".yarn/.yarnrc.yml", ".bunfig.toml"),
    *(".config/rclone/rclone.conf", ".git-credentials", ".dotnet/corefx/cryptography/x509stores/my/x.pfx"),
    *(
        ".gradle/init.gradle",
        *(".gradle/init.d/x.gradle", ".gradle/init.gradle.kts", ".pyenv/notes.txt", ".cache/deno/location_data/x"),
        ".volta/hooks.json",
        ".deno/x",
        ".sdkman/etc/config",
    ),
    *(".config/deno/x", ".local/state/x", ".m2/toolchains.xml", ".yarnrc", ".config/git/credentials", ".condarc"),
    *(".local/share/keyrings/x", ".config/go/env", ".ssh/id_rsa", ".nvm/.npmrc", "notes.txt", ".aws/credentials"),
    *(".kube/config", ".azure/x", ".config/gcloud/x", ".terraform.d/credentials.tfrc.json", ".vault-token"),
    *(".m2/settings.xml~", ".nuget/config/x", ".config/NuGet/NuGet.Config", ".config/uv/credentials.toml"),
)
_RECIPES = tuple(name for place in _PLACES for name in _shown(place) if place.option != "{each}:")
SEEN = tuple(
    name
    for name in dict.fromkeys((*_KNOWN, *_RECIPES))
    if not any(other.startswith(f"{name}/") for other in (*_KNOWN, *_RECIPES))
)
_OPEN = tuple(str(Path(name).parent) for name in SEEN)
UNSEEN = tuple(
    dict.fromkeys(
        [
            *_KNOWN_LOGINS,
            *(
                name
                for place in _PLACES
                for name in _beside(place)
                if str(Path(name).parent) not in _OPEN and name not in SEEN
            ),
        ]
    )
)
SHOWN = "\0planted\n"
LOGIN = 'token = "planted"\n'


def plant(home: Path) -> None:
    """Make all of them. What is `SEEN` holds no login, and may be a program."""
    for name in (*SEEN, *UNSEEN):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(SHOWN if name in SEEN else LOGIN)


def changed(home: Path) -> list[str]:
    """What is not as it was planted, or was not."""
    there = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    wrong = [name for name in SEEN if (home / name).read_text() != SHOWN]
    return [*wrong, *(there ^ {*SEEN, *UNSEEN})]
