"""What agents may see of the settings of tools: the keys that a build needs, from a list, and no value with a login.
Programs of the user's are judged here, too: those that a tool made are known by their lines. Pure.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase, translate
from typing import cast

MAX_BYTES = 256 * 1024
"""A larger file of settings is shown as an empty one."""

_PIP = r"no-index|require-virtualenv|break-system-packages|disable-pip-version-check|(only|no|prefer)-binary|user"
_NPM = (
    r"registry|prefix|cache|store-dir|save-(exact|prefix)|engine-strict|legacy-peer-deps|package-lock|fund|audit"
    r"|loglevel|offline|prefer-offline|ignore-scripts|node-linker|shamefully-hoist|(auto-install|strict)-peer-(dependencies|peers)"
    r"|update-notifier|virtual-store-dir|(public-)?hoist(-pattern)?"
)
_GRADLE = (
    r"org\.gradle\.(parallel|caching|configureondemand|daemon|workers\.max|java\.home|java\.installations\.[\w.-]+"
    r"|configuration-cache[\w.-]*|vfs\.watch|logging\.level|warning\.mode|console|welcome|jvmargs|priority)"
    r"|android\.(useAndroidX|enableJetifier|nonTransitiveRClass)|kotlin\.(code\.style|incremental|daemon\.jvmargs)"
)
_GIT = r"repositoryformatversion|filemode|bare|ignorecase|precomposeunicode|symlinks|url|fetch|merge|remote"
_GO = r"GOTOOLCHAIN|GOSUMDB|GOPROXY|GOFLAGS|GOOS|GOARCH|CGO_ENABLED"
_JAVA = (
    r"java\.net\.useSystemProxies|(http|ftp)\.nonProxyHosts|jdk\.http(client|server)?\.[\w.]+|sun\.net\.[\w.]+"
    r"|networkaddress\.cache[\w.]*"
)
_BUNDLE = r"\"?BUNDLE_(PATH|BIN|GEMFILE|WITH|WITHOUT|FROZEN|DEPLOYMENT|JOBS|CACHE_\w+|DISABLE_\w+)\"?"
_KEYS: tuple[tuple[str, str], ...] = (
    ("pip.conf", _PIP),
    ("pip.ini", _PIP),
    ("npmrc", _NPM),
    (".npmrc", _NPM),
    ("pnpm/rc", _NPM),
    ("gradle.properties", _GRADLE),
    ("*.git/config", _GIT),
    ("db/*/config", _GIT),
    ("vcs/*/config", _GIT),
    ("go.env", _GO),
    ("net.properties", _JAVA),
    (".bundle/config", _BUNDLE),
    (".bundle/plugin/*/config", _BUNDLE),
)
"""Settings with a key and its value on a line, by the end of their path, and which keys are shown."""
_TABLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        ".cargo/config*",
        (
            *(
                "build.target",
                "build.jobs",
                "build.rustflags",
                "build.rustdocflags",
                "build.target-dir",
                "build.rustc*",
            ),
            *("build.incremental", "target.*.linker", "target.*.rustflags", "target.*.runner", "target.*.ar"),
            *("profile.*", "alias.*", "net.offline", "net.retry", "net.git-fetch-with-cli", "http.timeout", "term.*"),
            *("source.*.replace-with", "source.*.directory", "source.*.local-registry", "source.*.registry"),
            *("source.*.git", "source.*.branch", "source.*.tag", "source.*.rev", "registries.*.index"),
            *("registries.*.protocol", "registry.default", "unstable.*", "resolver.*", "patch.*"),
        ),
    ),
    ("mise/*.toml", ("tools.*", "min_version", "settings.experimental", "settings.idiomatic_*", "settings.*_version*")),
    (".volta/tools/user/platform.json", ("node.runtime", "node.npm", "pnpm", "yarn")),
    (".rustup/settings.toml", ("default_toolchain", "default_host_triple", "profile", "version", "overrides.*")),
)
"""Settings in TOML or JSON, and which of their keys are shown."""
_BLANK: tuple[tuple[str, str], ...] = (
    ("settings.xml", "<settings/>\n"),
    ("settings-security.xml", ""),
    ("toolchains.xml", "<toolchains/>\n"),
    ("nuget.config", "<configuration/>\n"),
    ("conda-meta/state", "{}\n"),
    ("conda-meta/history", ""),
    ("etc/conda/env_vars.json", "{}\n"),
    ("*/activate.d/*", ""),
    ("*/deactivate.d/*", ""),
    ("init.d/*.gradle", ""),
    ("init.d/*.gradle.kts", ""),
    ("init.gradle", ""),
    ("init.gradle.kts", ""),
    ("pipx_metadata.json", "{}\n"),
    ("uv-receipt.toml", ""),
    ("uv.toml", ""),
    (".condarc", ""),
    ("condarc", ""),
    (".gemrc", ""),
    ("gemrc", ""),
    ("FETCH_HEAD", ""),
    ("logs/HEAD", ""),
    ("logs/refs/*", ""),
)
"""What holds nothing that a build needs, and the text that stands in its place."""

_CALLED_LOGIN = r"token|passw|passphrase|secret|credential|api_?key|private_?key|auth(?!or)"
_LOGIN = re.compile(rf"{_CALLED_LOGIN}|://[^/\s\"'@]*@|\bgh[pousr]_|\bsk-|\bAKIA|\beyJ", re.IGNORECASE)
"""What no value that is shown may hold."""
_SET_LOGIN = re.compile(
    rb"(?:token|passw\w*|passphrase|secret|credential|api_?key|access_?key|private_?key|bearer)[\w.-]*[\"'\])]*"
    rb"\s*[:=>]?[=>\s]\s*[\"'`]?(?![$\"'{(<\[])[^\s\"'$;,)]{6}|://[^/\s\"'@:]*:[^/\s\"'@$]+@|://[^\s\"']+/t/[\w-]{8}",
    re.IGNORECASE,
)
"""A login with its value, in the text of any language."""
_JVM = re.compile(r"-X(mx|ms|ss|mn)\w+|-XX:[\w+=/.-]+|-Dfile\.encoding=[\w-]+|-ea|--add-(opens|exports)[= ][\w./=-]+")


def filter_settings(path: str, content: bytes) -> str | None:
    """Return what is shown of a file of settings, by the end of its path; None for a file that is none."""
    for pattern, text in _BLANK:
        if _matches_end(path, pattern):
            return text
    keys = next((keys for pattern, keys in _KEYS if _matches_end(path, pattern)), None)
    tables = next((keys for pattern, keys in _TABLES if _matches_end(path, pattern)), None)
    if keys is None and tables is None:
        return None
    if len(content) > MAX_BYTES:
        return ""
    text = content.decode(errors="replace")
    if keys is not None:
        return _keep_lines(text, re.compile(rf"\s*({keys})\s*[=:]\s*(.*)"))
    is_json = path.endswith(".json")
    try:
        found: object = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError):
        return ""
    kept = _keep_tables(cast("dict[str, object]", found), tables or ()) if isinstance(found, dict) else {}
    if kept == found:
        return text
    return json.dumps(kept) if is_json else "".join(_write_tables(kept))


def is_settings_name(name: str) -> bool:
    """Return whether a file of this name may be one of settings. Quick."""
    return _NAMES.match(name) is not None


def sets_login(content: bytes) -> bool:
    """Return whether a text gives a login a value, as in `export API_TOKEN=...` or in an address."""
    return _SET_LOGIN.search(content) is not None


def is_program(content: bytes) -> bool:
    """Return whether a file begins like a program that a tool made: machine code, or a script that only starts
    something else, such as those of pip, npm and pyenv.
    """
    if not content.startswith(b"#!"):
        return b"\0" in content[:4096]
    if b"\0" in content:  # an archive that is started by its first line
        return True
    lines = content.decode(errors="replace").splitlines()
    return len(content) < MAX_LAUNCHER and not any(_LAUNCHER.fullmatch(line) is None for line in lines)


MAX_LAUNCHER = 4096
_LAUNCHER = re.compile(
    "|".join(
        (
            r"\s*",
            r"#!\S*(python|ruby|node|perl|sh|bash|env)[\d.]*( \w+| -\w+)?",
            r"# ?-\*- coding: [\w-]+ -\*-",
            r"# asdf-plugin: [\w-]+ [\w.-]+",
            r"# (EASY-INSTALL|This file was generated by)[\w :,'.-]*",
            r"'''exec' \"?/[\w./ -]+\"? \"\$0\" \"\$@\"|' '''",
            r"import (re|sys|importlib)|from [\w.]+ import [\w.]+( as \w+)?",
            r"if __name__ == ['\"]__main__['\"]:",
            r"\s*(el)?if sys\.argv\[0\]\.endswith\(['\"][\w.-]+['\"]\):",
            r"\s*sys\.argv\[0\] = sys\.argv\[0\](\[:-\d+\]|\.removesuffix\(['\"][\w.-]+['\"]\))",
            r"\s*sys\.argv\[0\] = re\.sub\(r?['\"][-\w|()\\.?$]+['\"], ['\"]{2}, sys\.argv\[0\]\)",
            r"\s*sys\.exit\([\w.]+\(\)\)",
            r"set -e|program=\"\$\{0##\*/\}\"",
            r"\[ -n \"\$(PYENV|RBENV|JENV)_DEBUG\" \] && set -x",
            r"SHIM_PATH=\$\{0%/\*\}|if \[\[ \$SHIM_PATH != \"/[\w./ -]+/shims\" \]\]; then",
            r"  export _PYENV_SHIM_PATH=\"\$SHIM_PATH\"",
            r"export (PYENV|RBENV|JENV)_ROOT=\"/[\w./ -]+\"",
            r"exec \"?/[\w./ -]+(pyenv|rbenv|jenv|asdf)\"? exec \"[\w$.-]+\" \"\$@\"( # asdf_allow: [\w ./-]{,40})?",
            r"basedir=\$\(dirname \"\$\(echo \"\$0\" \| sed -e 's,\\\\,/,g'\)\"\)",
            r"case \x60uname\x60 in|esac|else|fi|then",
            r"\s*\*CYGWIN\*(\|\*MINGW\*\|\*MSYS\*)?\)( basedir=\x60cygpath -w \"\$basedir\"\x60;;)?",
            r"if \[ -x \"\$basedir/node\" \]; then",
            r"\s*exec (\"\$basedir/node\"|node) +\"\$basedir/[\w./@-]+\" \"\$@\"",
        )
    )
)
"""Each line of a script that a tool wrote to start another program."""


def _matches_end(path: str, pattern: str) -> bool:
    return fnmatchcase(path.casefold(), f"*/{pattern.casefold()}") or fnmatchcase(path.casefold(), pattern.casefold())


_ENDS = (*dict(_KEYS), *dict(_TABLES), *dict(_BLANK))
SETTINGS_NAMES = "|".join({translate(end.rpartition("/")[2]) for end in _ENDS if not end.endswith("/*")})
"""An expression for the names of files of settings, in any case of letters."""
_NAMES = re.compile(SETTINGS_NAMES, re.IGNORECASE)


def _keep_lines(text: str, shown: re.Pattern[str]) -> str:
    """Keep the plain headings of sections, and lines with a key that is shown and a harmless value."""
    kept: list[str] = []
    for line in text.splitlines():
        found = shown.fullmatch(line)
        if re.fullmatch(r'\[[\w.-]+( "[\w./-]+")?\]\s*', line):
            kept.append(line)
        elif found is not None and not line.endswith("\\") and _LOGIN.search(found[found.re.groups]) is None:
            kept.append(_without_other_flags(line) if "jvmargs" in found[1] else line)
    return "".join(f"{line}\n" for line in kept)


def _without_other_flags(line: str) -> str:
    """Leave of the flags of a JVM those of memory and the like; others set properties, which may be logins."""
    key, sign, flags = line.partition("=")
    return key + sign + " ".join(flag for flag in flags.split() if _JVM.fullmatch(flag))


def _keep_tables(found: Mapping[str, object], shown: Sequence[str], above: str = "") -> dict[str, object]:
    kept: dict[str, object] = {}
    for key, value in found.items():
        path = f"{above}{key}"
        if isinstance(value, dict):
            if below := _keep_tables(cast("Mapping[str, object]", value), shown, f"{path}."):
                kept[key] = below
        elif _LOGIN.search(path) is None and any(fnmatchcase(path, one) for one in shown) and _is_harmless(value):
            kept[key] = value
    return kept


def _is_harmless(value: object) -> bool:
    match value:
        case str():
            return _LOGIN.search(value) is None
        case bool() | int() | float():
            return True
        case list():
            return all(map(_is_harmless, cast("list[object]", value)))
        case _:
            return False


def _write_tables(found: Mapping[str, object], above: str = "") -> list[str]:
    """Write TOML of texts, numbers, lists and tables, each with its whole name."""
    lines: list[str] = []
    for key, value in found.items():
        name = f"{above}{json.dumps(key, ensure_ascii=False)}"
        if isinstance(value, dict):
            lines += _write_tables(cast("Mapping[str, object]", value), f"{name}.")
        else:
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}\n")
    return lines
