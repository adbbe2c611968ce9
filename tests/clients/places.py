"""What the scripts share: where the real clients are, a home for each of them, and what a script says."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.clients.model_apis import ModelApi
from tests.commands import ROOT
from tests.harness import TempHome

HERE = Path(__file__).parent
BINARIES = HERE / "node_modules" / ".bin"
OURS = Path(sys.executable).with_name("massgen-mcp")
PLUGIN = ROOT / "plugins" / "massgen"
KEY = "sk-ant-api03-not-a-key-of-anybody-0123456789"
PATIENCE_SECONDS = 120.0


class Missing(Exception):
    """A client that cannot be had here."""


class Broken(Exception):
    """What had to be shown was not so."""


def binary(name: str) -> str:
    """Raises Missing."""
    path = BINARIES / name
    try:
        subprocess.run(
            [path, "--version"], capture_output=True, check=True, timeout=60, env=with_node(dict(os.environ))
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(
            f"{name} is not there: npm install --no-save --prefix {HERE.relative_to(ROOT)} ({error})"
        ) from None
    return str(path)


def with_node(environ: dict[str, str]) -> dict[str, str]:
    """The same with our command and the Node of the clients before everything else."""
    return {**environ, "PATH": os.pathsep.join([str(OURS.parent), str(BINARIES), environ.get("PATH", os.defpath)])}


def say(line: str = "") -> None:
    print(line, flush=True)


def hold(what: object, told: str) -> None:
    """Say what holds. Raises Broken where it does not."""
    if not what:
        raise Broken(told)
    say(f"  ok: {told}")


@dataclass(frozen=True)
class Place:
    """A user's home with a working directory and a state directory of ours."""

    home: TempHome

    @property
    def work(self) -> Path:
        return self.home.work

    @property
    def environ(self) -> dict[str, str]:
        return self.home.environ

    def with_variables(self, **variables: str) -> "Place":
        return replace(self, home=replace(self.home, extra={**self.home.extra, **variables}))

    def write(self, name: str, content: str | dict[str, Any]) -> Path:
        """A file below the user's home."""
        path = Path(self.environ["HOME"]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    def run(self, *command: str, seconds: float = PATIENCE_SECONDS, errors: bool = False) -> str:
        """What a command prints; with `errors` on standard error, too. Raises Broken where it fails or takes long."""
        try:
            done = subprocess.run(
                command,
                cwd=self.work,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Broken(f"{command[0]} took more than {seconds:g} s") from error
        if done.returncode != 0:
            raise Broken(
                f"{' '.join(command[:4])} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout + (done.stderr if errors else "")


@contextmanager
def new_place() -> Generator[Place]:
    """Gone at the end of the block, with every process that works in it."""
    directory = Path(tempfile.mkdtemp(prefix="massgen-clients-"))
    user, work = directory / "user", directory / "work"
    user.mkdir()
    work.mkdir()
    inherited = {name: value for name, value in os.environ.items() if name == "PATH"}
    home = TempHome(directory / "state", work, {**with_node(inherited), "HOME": str(user)}, starts_anew=True)
    try:
        yield Place(home)
    finally:
        home.close()
        shutil.rmtree(directory, ignore_errors=True)


def wait_for(
    seen: Callable[[], object],
    told: str,
    *,
    seconds: float = PATIENCE_SECONDS,
    or_fail: bool = True,
    meanwhile: Callable[[], object] = lambda: time.sleep(0.05),
) -> bool:
    """Whether it came to be. Raises Broken where that took too long."""
    end = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > end:
            if or_fail:
                raise Broken(f"{told} did not come in {seconds:g} s")
            return False
        meanwhile()
    return True


def _tokenizers() -> str:
    """The package that brings vocabularies along, so that none is fetched."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        raise Missing("litellm is not there, whose vocabularies count tokens")
    return str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers")


@cache
def _encoding() -> Any:
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", _tokenizers())
    tiktoken: Any = import_module("tiktoken")
    return tiktoken.get_encoding("o200k_base")


def tokens(text: str) -> int:
    """As o200k counts them."""
    return len(_encoding().encode(text, disallowed_special=()))


def show_what_the_model_saw(api: ModelApi) -> None:
    """Every request of the conversation: what was new in it, and its size."""
    known = 0
    for number, asked in enumerate(api.asked, 1):
        new = asked.heard[known:] if len(asked.heard) > known else asked.heard[-1:]
        known = len(asked.heard)
        say(f"  step {number}: {tokens(json.dumps(asked.body)):,} tokens, {len(asked.tools)} tools; new:")
        for text in new:
            line = " ".join(text.split())
            say(f"    {tokens(text):6,} tokens  {line[:100]}{'…' if len(line) > 100 else ''}")


def check_plan(api: ModelApi) -> None:
    """Raises Broken where the model was asked something that its plan does not know."""
    if api.failures:
        raise Broken("; ".join(api.failures))
