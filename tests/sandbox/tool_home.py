"""A home with programs, caches and logins of every tool chain that has a recipe, and the files that tell of each."""

from pathlib import Path

MARKS = (
    *("Cargo.toml", "go.mod", "pyproject.toml", "package.json", "pom.xml", "build.gradle.kts", "Gemfile"),
    *("composer.json", "app/app.csproj", ".tool-versions", "deno.json", "build.gradle", "mise.toml"),
)
SEEN = (
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
)
UNSEEN = (
    *(".cargo/credentials.toml", ".cargo/config", ".npmrc", ".yarnrc.yml", ".m2/settings.xml"),
    *(".m2/settings-security.xml", ".gradle/gradle.properties", ".netrc", ".pypirc", ".gem/credentials"),
    *(".bundle/config", ".config/composer/auth.json", ".config/pypoetry/auth.toml", ".nuget/NuGet/NuGet.Config"),
    *(".cargo/credentials", ".config/pip/pip.conf", ".pip/pip.conf", ".config/gh/hosts.yml", ".docker/config.json"),
    *(".config/uv/uv.toml", ".local/share/uv/credentials/x", ".local/share/gem/credentials", ".composer/auth.json"),
    *(".config/npm/npmrc", ".npm-global/etc/npmrc", ".config/pnpm/rc", ".yarn/.yarnrc.yml", ".bunfig.toml"),
    *(".config/rclone/rclone.conf", ".git-credentials", ".dotnet/corefx/cryptography/x509stores/my/x.pfx"),
    *(".gradle/init.gradle", ".gradle/init.d/x.gradle", ".volta/hooks.json", ".deno/x", ".sdkman/etc/config"),
    *(".config/deno/x", ".local/state/x", ".m2/toolchains.xml", ".yarnrc", ".config/git/credentials", ".condarc"),
    *(".local/share/keyrings/x", ".config/go/env", ".ssh/id_rsa", ".nvm/.npmrc", "notes.txt"),
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
