"""How git is run: without a shell, with a time limit, and without any settings but our own. So is a repository cloned
that a run names by its address.

No configuration, hook, filter, attribute driver, file system monitor or credential of the user, of the machine or of a
repository takes effect, nothing is fetched but such a clone, and nothing is asked of anybody. One exception: `fetch`
has the user's own access, with the settings of their account.
"""

import base64
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from massgen_mcp.home import GIT_HOSTS_VARIABLE

LEAST_VERSION = (2, 38)
"""The first that merges trees without a working tree."""
MAX_SECONDS = 300.0
"""For one call of git."""

_CONFIG = """\
[core]
\trepositoryFormatVersion = {version}
\tbare = true
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tautocrlf = false
\tfileMode = true
\tsymlinks = true
\tignoreCase = false
\tprecomposeUnicode = false
\tlogAllRefUpdates = false
\tfsync = committed
[gc]
\tauto = 0
[maintenance]
\tauto = false
[fastimport]
\tunpackLimit = 1
[merge]
\trenames = true
"""
_FORMAT = """\
[extensions]
\tobjectFormat = {name}
"""
_ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding !diff !merge\n"
"""Of the highest rank: what a tree's own `.gitattributes` say has no effect."""


class GitFailed(Exception):
    """Git could not do what was wanted. The message is for people, and names no command line."""


class GitUnusable(GitFailed):
    """There is no git here, or it is too old."""


class Git:
    """Git on one private, bare repository at `directory`. Its methods may be called from several threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def create(cls, directory: Path, *, alternates: Iterable[Path] = (), object_format: str = "sha1") -> "Git":
        """A new repository in a directory that is not there yet. It may read the objects in `alternates`, none of which
        is ever changed.
        """
        for part in ("objects/info", "objects/pack", "refs", "info"):
            (directory / part).mkdir(mode=0o700, parents=True)
        sha1 = object_format == "sha1"
        config = _CONFIG.format(version=0 if sha1 else 1) + ("" if sha1 else _FORMAT.format(name=object_format))
        (directory / "config").write_text(config)
        (directory / "info" / "attributes").write_text(_ATTRIBUTES)
        lines = [line for path in alternates if (line := _alternate(path))]
        if lines:
            (directory / "objects" / "info" / "alternates").write_bytes(b"".join(lines))
        (directory / "HEAD").write_text("ref: refs/heads/none\n")  # the last: from here on it is a repository
        return cls(directory)

    def run(
        self,
        *arguments: str | bytes | Path,
        given: bytes = b"",
        accepted: Iterable[int] = (0,),
        index: Path | None = None,
        work_tree: Path | None = None,
    ) -> bytes:
        """What git printed. `given`: its standard input. Raises `GitFailed`, also for an exit code that is not one of
        those `accepted`.
        """
        return self.outcome(*arguments, given=given, accepted=accepted, index=index, work_tree=work_tree)[1]

    def outcome(
        self,
        *arguments: str | bytes | Path,
        given: bytes = b"",
        accepted: Iterable[int] = (0,),
        index: Path | None = None,
        work_tree: Path | None = None,
        into: IO[bytes] | int = subprocess.PIPE,
    ) -> tuple[int, bytes]:
        """As `run`; its exit code, too. `into`: the file to which git prints instead."""
        try:
            done = subprocess.run(  # noqa: S603 - a program of our own choice, no shell
                self.command(*arguments),
                input=given,
                stdout=into,
                stderr=subprocess.PIPE,
                cwd=work_tree or self.directory,  # the latter may lie within the former
                env=self.environ(index=index, work_tree=work_tree),
                timeout=MAX_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {_subcommand(arguments)} took longer than {MAX_SECONDS:g} s") from error
        except OSError as error:
            raise GitFailed(f"cannot start git {_subcommand(arguments)}: {error.strerror}") from error
        if done.returncode not in accepted:
            why = last_line(done.stderr) or f"exit code {done.returncode}"
            raise GitFailed(f"git {_subcommand(arguments)} failed: {why}")
        return done.returncode, done.stdout

    def write(self, *arguments: str, into: Path) -> int:
        """Have git print to the file `into`. Returns its size in bytes. Raises `GitFailed`, `OSError`."""
        with into.open("wb") as file:
            self.outcome(*arguments, into=file)
            return file.tell()

    def command(self, *arguments: str | bytes | Path) -> list[str | bytes | Path]:
        """The command line of a call. Raises `GitUnusable`."""
        return [program(), *arguments]

    def environ(self, *, index: Path | None = None, work_tree: Path | None = None) -> dict[str, str]:
        """All that a call of git sees of the environment."""
        environ = {**_environ(), "HOME": str(self.directory), "GIT_DIR": str(self.directory)}
        if index is not None:
            environ["GIT_INDEX_FILE"] = str(index)
        if work_tree is not None:
            environ["GIT_WORK_TREE"] = str(work_tree)
        return environ


@contextmanager
def limited(process: "subprocess.Popen[bytes]") -> Generator[None]:
    """The process is killed when it takes longer than git may."""
    limit = threading.Timer(MAX_SECONDS, process.kill)
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def _environ() -> Mapping[str, str]:
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        **who,
    }


_WHO = {"NAME": "massgen", "EMAIL": "massgen@localhost", "DATE": "1000000000 +0000"}
"""Always the same, so that the same trees give the same commits."""


def program() -> str:
    """Where git is. Raises `GitUnusable` with what to do if there is none that is new enough."""
    return _program_on(os.environ.get("PATH", os.defpath))


@cache
def _program_on(path: str) -> str:
    needed = ".".join(map(str, LEAST_VERSION))
    found = shutil.which("git", path=path)
    if found is None:
        raise GitUnusable(f"git is not installed; version {needed} or newer is needed to work on files")
    try:
        printed = subprocess.run(  # noqa: S603 - a program of our own choice, no shell
            [found, "--version"], capture_output=True, env=dict(_environ()), timeout=MAX_SECONDS, check=True
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        raise GitUnusable(f"{found} does not work: {error}") from error
    version = re.search(r"(\d+)\.(\d+)", printed)
    if version is None or (int(version[1]), int(version[2])) < LEAST_VERSION:
        raise GitUnusable(f"{printed.strip()} is too old; {needed} or newer is needed to work on files")
    return found


def last_line(stderr: bytes) -> str:
    """What git said of a failure, short enough for a message."""
    return ascii(" ".join(stderr.decode(errors="replace").split())[:300])[1:-1]


def _subcommand(arguments: Iterable[str | bytes | Path]) -> str:
    return next((one for one in arguments if isinstance(one, str) and not one.startswith("-")), "")


def _alternate(path: Path) -> bytes:
    """A line of `objects/info/alternates`; empty for a path that such a line cannot name."""
    name = os.fsencode(path)
    if b"\n" in name or name.startswith((b'"', b"#")):
        return b""
    return name + b"\n"


_OF_A_REPOSITORY = frozenset(
    (
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE"),
        *("GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_PROTOCOL"),
    )
)
"""Variables that would have git work in another repository than the private one."""
_FETCHING = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.alternateRefsCommand=true", "-c", "fetch.recurseSubmodules=false"),
)


def fetch(git: Git, address: str, refspec: str, environ: Mapping[str, str]) -> None:
    """Fetch into the private repository with the user's own access: their global settings, SSH agent and credential
    helpers. A repository named the address, so nothing but the usual transports is used. Raises `GitFailed`.
    """
    command = [program(), *_FETCHING, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", address, refspec]
    try:
        subprocess.run(  # noqa: S603 - a program of our own choice, no shell
            command,
            cwd=git.directory,
            env=_fetch_environ(git, environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MAX_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise GitFailed(last_line(error.stderr) or f"exit code {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"it took longer than {MAX_SECONDS:g} s") from error
    except OSError as error:
        raise GitFailed(f"cannot start git: {error.strerror}") from error


def _fetch_environ(git: Git, environ: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in environ.items() if name not in _OF_A_REPOSITORY}
    return {**own, "GIT_DIR": str(git.directory), "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}


_ADDRESS = re.compile(r"(https://([A-Za-z0-9.-]+)(?::\d+)?/[^\s#?@]+)(?:#([A-Za-z0-9_][A-Za-z0-9._/-]*))?")
_PASSED_ON = ("PATH", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")


def is_address(path: str) -> bool:
    """`https://HOST/PATH`, and where another branch or tag is meant than the usual one `#NAME`."""
    return _ADDRESS.fullmatch(path) is not None


def clone(address: str, into: Path, environ: Mapping[str, str]) -> None:
    """The newest files, without their history. Only from hosts that the operator names, with the token that stands
    there. Raises `GitFailed`.
    """
    found = _ADDRESS.fullmatch(address)
    url, host, name = found.groups() if found else ("", "", None)
    named = (one.partition("=") for one in environ.get(GIT_HOSTS_VARIABLE, "").split())
    hosts = {name: token for name, _, token in named}
    if host not in hosts:
        raise GitFailed(f"{GIT_HOSTS_VARIABLE} on this worker doesn't allow {host or address}")
    login = base64.b64encode(f"x-access-token:{hosts[host]}".encode()).decode()
    settings = {"http.followRedirects": "false", "core.hooksPath": "/dev/null"}
    if hosts[host]:
        settings["http.extraHeader"] = f"Authorization: Basic {login}"
    env = {name: environ[name] for name in _PASSED_ON if name in environ}
    env |= {"HOME": str(into.parent), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    env |= {"GIT_ALLOW_PROTOCOL": "https", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    branch = ["--branch", name] if name else []
    command = [program(), "clone", "--quiet", "--depth", "1", "--no-tags", *branch, "--", url, str(into)]
    try:
        subprocess.run(command, env=env, capture_output=True, timeout=MAX_SECONDS, check=True)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"cloning {url} took longer than {MAX_SECONDS:g} s") from error
    except subprocess.CalledProcessError as error:
        raise GitFailed(f"{url} cannot be cloned: {last_line(error.stderr)}") from error
