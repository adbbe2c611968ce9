"""Writes the transcript at the top of the README: a real run with its question, its answer and its dissent."""

import re
import tempfile
from pathlib import Path

from docs.example_run import ExampleRun, play_example

PAGE = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- transcript: written by `make docs` -->\n", "<!-- end of the transcript -->\n"
DISSENT = re.compile(r"\bdisagrees?\b")
SHOWN = re.compile(r"^(?!\d\d:\d\d )(?!Team|Estimate).*(?:\b\d of \d\b.*\b(?:agree|votes)\b|\bdisagrees?\b)")
"""Lines on the outcome of the vote and on the dissent, without those on progress."""


async def page() -> str:
    """Return the README with the transcript as the example prints it now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    with tempfile.TemporaryDirectory() as work:
        run = await play_example(Path(work))
    return f"{before}{BEGIN}\n```console\n{format_transcript(run)}```\n\n{END}{after}"


def format_transcript(run: ExampleRun) -> str:
    """Return the command, the answer, and the lines on votes and dissent, where `...` stands for other lines."""
    lines = [line for line in run.report.splitlines() if SHOWN.search(line)]
    if not any(DISSENT.search(line) for line in lines):
        raise ValueError(f"docs/transcript.py: the example has no dissent:\n{run.report}")
    outcome = "\n".join(re.sub(r" · \d\d:\d\d · .*", " · ...", line) for line in lines)
    return f"$ {run.command}\n{run.answer.rstrip()}\n\n{outcome}\n...\n"
