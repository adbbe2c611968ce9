"""An event that is added in the places that docs/architecture.md names is there again when a run was killed."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, ROOT, TempHome, agent, events_of, poll_until
from tests.interrupted import kill, log_directory, started, the_only_run

EVENT = '''class Noticed(Event):
    """What the agent is to know; `kept`: also after a resume."""

    type: Literal["noticed"] = "noticed"
    agent: str
    text: str
    kept: bool


'''
READS = re.compile(r"( +)case _:\n +assert_never\(event\)")
IGNORES = re.compile(r"( +)case _:\n +pass\b")
IMPORT = "from massgen_mcp.events.agent_work import ("
DOES = {
    "views/sentences.py": ("Noticed()", 'return Sentence(f"notices {event.text}")'),
    "run_state/resume_point.py": ("Noticed(kept=True)", "self._keep(event)"),
    "orchestration/conversation.py": ("Noticed()", "self.tell(event.text)"),
}
"""The readers that do something with it; the others pass it over."""


def substituted(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: {old}"
    file.write_text(text.replace(old, new))


def with_an_event(package: Path) -> None:
    """Do what the page says of an event."""
    work = package / "events" / "agent_work.py"
    substituted(work, "\nBeforeReply = ", f"\n{EVENT}BeforeReply = ")
    substituted(work, "\nWorkEvent = (\n", "\nWorkEvent = (\n    Noticed\n    | ")
    section = (ROOT / "docs" / "architecture.md").read_text().split("\n### An event\n")[1].split("\n#")[0]
    for name in re.findall(r"`([\w/]+\.py)`", section):
        file = package / name
        text = file.read_text() if file.exists() else ""
        ignores = name in DOES and IGNORES.search(text) is not None
        if not (ignores or READS.search(text)) or "isinstance(event, CallEvent)" in text:
            continue
        case, does = DOES.get(name, ("Noticed()", "pass"))
        cases = rf"\1case {case}:\n\1    {does}\n"
        if case != "Noticed()":
            cases += r"\1case Noticed():" + "\n" + r"\1    pass" + "\n"
        reader = IGNORES if ignores else READS
        file.write_text(reader.sub(rf"{cases}\g<0>", text).replace(IMPORT, f"{IMPORT}\n    Noticed,", 1))
    readers = {file: file.read_text() for file in package.rglob("*.py")}
    left = [file for file, text in readers.items() if READS.search(text) and not re.search("Noticed|CallEvent", text)]
    assert not left, "the page does not name these"


def with_what_tells_of_it(package: Path) -> None:
    """Each round begins with two such events. The model notes what it is sent, and the first time it says nothing."""
    rounds = package / "orchestration" / "agent_round.py"
    substituted(
        rounds,
        "        live_run.record(opened)\n        return cls(member, attempt, opened)\n",
        "        live_run.record(opened)\n        begun = cls(member, attempt, opened)\n"
        "        for kept in (True, False):\n"
        '            begun._record(Noticed(agent=member.name, text=f"word-{kept}", kept=kept))\n'
        "        return begun\n",
    )
    substituted(
        package / "backends" / "scripted.py",
        "        step = self._take_step(request) or self._own_step(request)\n",
        "        import os, pathlib\n"
        '        sent = pathlib.Path(os.environ["SENT"])\n'
        "        first = not sent.exists()\n"
        '        with sent.open("a") as file:\n'
        '            file.write(json.dumps([*_list_texts(request)]) + "\\n")\n'
        "        if first:\n            await anyio.sleep_forever()\n"
        "        step = self._take_step(request) or self._own_step(request)\n",
    )


def test_a_new_event_of_a_round_is_there_again_after_a_resume_where_its_readers_keep_it(home: TempHome) -> None:
    package, sent = home.path.parent / "copy" / "massgen_mcp", home.path.parent / "sent"
    shutil.copytree(ROOT / "massgen_mcp", package)
    with_an_event(package)
    with_what_tells_of_it(package)
    copy = replace(home, extra={"PYTHONPATH": str(package.parent), "SENT": str(sent)}, starts_anew=True)
    with started(copy, home.config("one", agent("ada", {"answer": "42"}))) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: massgen.poll() is not None or (sent.exists() and sent.read_text().endswith("\n")))
        kill(copy)
    again = run_command(
        copy, COMMAND_MODULE, "--automation", "--resume", str(the_only_run(copy)["run_id"])[:12], seconds=120
    )
    assert again.returncode == 0, again.stderr
    before, after, *_ = ("\n".join(json.loads(line)) for line in sent.read_text().splitlines())
    assert "word-True" in before
    assert "word-False" in before
    assert "word-True" in after, "the event was lost when its process ended"
    assert "word-False" not in after, "a reader that keeps nothing would not be noticed"
    noticed = [event["text"] for event in events_of(directory) if event["type"] == "noticed"]
    assert noticed[:2] == ["word-True", "word-False"], "it happened once in the round"
    assert len(noticed) == 2 * sum(event["type"] == "round_started" for event in events_of(directory))
