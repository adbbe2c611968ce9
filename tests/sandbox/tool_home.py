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
    """A file in each directory that a recipe shows."""
    if place.option != "{each}:":  # it shows what is in each directory there
        yield from (f"{place.usual}/{name}/x".replace("/./", "/") for name in place.shown)


def _beside(place: ToolPlace) -> Iterator[str]:
    above = place.usual if "." not in place.shown else str(Path(place.usual).parent)
    yield from ((Path(above) / name).as_posix() for name in _LOGINS)


MARKS = (
    *(mark.replace("*", "x") for chain in TOOL_CHAINS for mark in chain.marks[:1]),
    *("build.gradle.kts", "app/app.csproj", "deno.json", "build.gradle", "mise.toml"),
)
_KNOWN = (
    *(".rustup/toolchains/x", ".cargo/bin/cargo", ".cargo/registry/x", ".cargo/git/x", "go/pkg/mod/x", "go/bin/x"),
    *(".local/bin/uv", ".local/share/pypoetry/x", ".cache/pypoetry/virtualenvs/x", ".local/share/pnpm/x"),
    *(
        ".m2/repository/x",
        ".m2/wrapper/x",
        ".gradle/caches/x",
        ".gradle/wrapper/x",
        ".gem/ruby/x",
        ".local/share/gem/ruby/3.1.0/x",
    ),
    *(".cache/composer/x", ".nuget/packages/x", ".dotnet/dotnet", ".local/share/mise/installs/x", ".asdf/x"),
    *(".dotnet/sdk/x", ".dotnet/tools/x", ".local/lib/node_modules/x", ".npm-global/bin/x", ".npm-global/lib/x"),
    *(".yarn/berry/cache/x", ".bun/install/cache/x", ".cache/node/corepack/x", ".nvm/versions/x"),
    *(".cargo/config.toml", ".config/mise/config.toml", ".volta/bin/x", ".bun/bin/x", ".jdks/x", ".cache/deno/x"),
    *(".sdkman/candidates/x", ".local/share/fnm/x", ".deno/bin/x", ".gradle/wrapper/y", ".gradle/init.gradle.kts"),
    *(".gradle/init.d/y.gradle", ".config/mise/conf.d/x.toml"),
)
_KNOWN_LOGINS = (
    *(".cargo/credentials.toml", ".cargo/config", ".npmrc", ".yarnrc.yml", ".m2/settings.xml"),
    *(".m2/settings-security.xml", ".gradle/gradle.properties", ".netrc", ".pypirc", ".gem/credentials"),
    *(".bundle/config", ".config/composer/auth.json", ".config/pypoetry/auth.toml", ".nuget/NuGet/NuGet.Config"),
    *(".cargo/credentials", ".config/pip/pip.conf", ".pip/pip.conf", ".config/gh/hosts.yml", ".docker/config.json"),
    *(".config/uv/uv.toml", ".local/share/uv/credentials/x", ".local/share/gem/credentials", ".composer/auth.json"),
    *(".config/npm/npmrc", ".npm-global/etc/npmrc", ".config/pnpm/rc", ".yarn/.yarnrc.yml", ".bunfig.toml"),
    *(".config/rclone/rclone.conf", ".git-credentials", ".dotnet/corefx/cryptography/x509stores/my/x.pfx"),
    *(
        ".gradle/init.gradle",
        ".gradle/init.d/x.gradle",
        ".config/mise/conf.d/y.toml",
        ".volta/hooks.json",
        ".deno/x",
        ".sdkman/etc/config",
    ),
    *(".config/deno/x", ".local/state/x", ".m2/toolchains.xml", ".yarnrc", ".config/git/credentials", ".condarc"),
    *(".local/share/keyrings/x", ".config/go/env", ".ssh/id_rsa", ".nvm/.npmrc", "notes.txt", ".aws/credentials"),
    *(".kube/config", ".azure/x", ".config/gcloud/x", ".terraform.d/credentials.tfrc.json", ".vault-token"),
    *(".m2/settings.xml~", ".nuget/config/x", ".config/NuGet/NuGet.Config", ".config/uv/credentials.toml"),
)
SEEN = tuple(
    dict.fromkeys(
        [*_KNOWN, *(name for place in _PLACES for name in _shown(place) if str(Path(name).parent) not in _KNOWN)]
    )
)
_OPEN = tuple(str(Path(name).parent) for name in SEEN)
UNSEEN = tuple(
    dict.fromkeys(
        [
            *_KNOWN_LOGINS,
            *(name for place in _PLACES for name in _beside(place) if str(Path(name).parent) not in _OPEN),
        ]
    )
)
LOGIN = 'token = "planted"\n'


def plant(home: Path) -> None:
    """Make all of them. What is `SEEN` holds no login."""
    for name in (*SEEN, *UNSEEN):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("planted\n" if name in SEEN else LOGIN)


def changed(home: Path) -> list[str]:
    """What is not as it was planted, or was not."""
    there = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    wrong = [name for name in SEEN if (home / name).read_text() != "planted\n"]
    return [*wrong, *(there ^ {*SEEN, *UNSEEN})]
