"""docs/tutorial.md tells the truth: its commands and calls are made here in their order, and print what it shows."""

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from mcp.types import TextContent

from tests.harness import COMMAND_MODULE, ROOT, SERVER_MODULE, TempHome, home
from tests.tutorial_double import tutorial_providers

__all__ = ["home"]

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
NOT_RUN = {
    "sh": "installs, sets keys, or writes the settings of a client; demo and doctor have tests of their own",
    "text": "a screen",
}
RUN = "run-7f3a"
"""What the page calls the newest run."""
ESTIMATE = re.compile(r"usually \$[\d.]+ to \$[\d.]+")
"""What a run usually costs: providers change their prices, some on a day that the price list knows beforehand."""


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it is to print."""
    return [(line, shown) for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def with_commands(home: TempHome, tmp_path: Path) -> TempHome:
    """The home with both commands on its PATH, in a directory called `shop`."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name, module in (("massgen", COMMAND_MODULE), ("massgen-mcp", SERVER_MODULE)):
        command = directory / name
        command.write_text(f'#!/bin/sh\nexec {home.python} -m {module} "$@"\n')
        command.chmod(0o700)
    shop = home.work / "shop"
    shop.mkdir()
    ours = str(Path(sys.executable).parent)  # the Python of this project, which finds its `tests` before the shop's
    others = (place for place in home.environ["PATH"].split(os.pathsep) if place != ours)
    path = os.pathsep.join((str(directory), *others))
    return TempHome(home.path, shop, {**home.extra, "PATH": path})


@pytest.mark.parametrize("language", sorted({language for language, _, _ in BLOCKS} - {"console", "tools"}))
def test_every_block_is_run_a_file_or_said_to_be_neither(language: str) -> None:
    assert all(file or language in NOT_RUN for found, file, _ in BLOCKS if found == language)


async def test_a_reader_sees_what_the_tutorial_shows(home: TempHome, tmp_path: Path) -> None:
    async with tutorial_providers() as variables:
        reader = Reader(with_commands(home, tmp_path).with_variables(**variables))
        for language, file, text in BLOCKS:
            if file:
                (reader.home.work / file).parent.mkdir(exist_ok=True)
                (reader.home.work / file).write_text(text)
            elif language == "console":
                for command, shown in steps(text):
                    reader.compare(command, await reader.printed_by(command), shown)
            elif language == "tools":
                await reader.call(text.strip().split("\n\n"))


@dataclass
class Reader:
    home: TempHome
    run: str = ""
    """The run that was named last."""

    def compare(self, done: str, printed: str, shown: str) -> None:
        self.run = (re.findall(r"\brun-\w{8,}", printed) or [self.run])[-1]
        promised = ESTIMATE.sub("usually $... to $...", shown.replace(RUN, "run-"))
        assert doctest.OutputChecker().check_output(promised, printed, doctest.ELLIPSIS), f"{done}\n{printed}"

    async def printed_by(self, command: str) -> str:
        ended = await anyio.run_process(
            ["bash", "-c", command.replace(RUN, self.run)],
            cwd=self.home.work,
            env=self.home.environ,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout.decode()
        return ended.stdout.decode()

    async def call(self, calls: list[str]) -> None:
        """Call tools of the server, each written as `name(argument="...")`, with the reply below it."""
        async with self.home.client() as client:
            for line, _, shown in (call.partition("\n") for call in calls):
                name, arguments = re.findall(r"^(\w+)\((.*)\)$", line)[0]
                told = dict(re.findall(r'(\w+)="(.*?)"(?:, |$)', arguments.replace(f"{RUN}...", self.run)))
                reply = await client.call_tool(name, told)
                text = "".join(part.text for part in reply.content if isinstance(part, TextContent))
                self.compare(line, f"{text}\n", f"{shown}\n")
