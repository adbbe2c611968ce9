"""Injects faults into every phase of a run, a review, a batch, an eval and an apply, and looks for false greens.

`python -m tests.soak.false_green [FAULTS]` does so as often as is told, spread over all of them; default: all. A false
green is an exit code 0, a first line or a JSON document that reads as full success although work was left undone. Which
work was done is known here without the product: from what the models' server gave away whole.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import anyio
from anyio.from_thread import start_blocking_portal

from massgen_mcp.markers import materials
from tests.harness import COMMAND_MODULE, TempHome
from tests.raw_double import Flow, Seen, answering, reply, sse
from tests.small_window import tokens
from tests.soak.commands_here import Said, run
from tests.soak.false_green_files import inject_file_faults, list_file_cases
from tests.soak.figures import Figures

Door = Literal["run", "synthesis", "review", "batch", "eval"]
Phase = Literal["answer", "vote", "present", "merge", "refute"]
PHASES: dict[Door, tuple[Phase, ...]] = {
    "run": ("answer", "vote", "present"),
    "synthesis": ("answer", "merge"),
    "review": ("answer", "merge", "refute"),
    "batch": ("answer", "vote"),
    "eval": ("answer", "vote"),
}
TEAM = ("ada", "bo", "cleo")
VICTIMS = (("ada",), ("cleo",), ("ada", "bo"), TEAM)
QUESTION = "How much is six times seven?"
FILES: dict[str, str] = dict(zip(TEAM, ("shop.py", "cart.py", "till.py"), strict=True))
"""The file of the change in which an agent finds something."""


def write_diff(added: Mapping[str, Sequence[str]]) -> str:
    """Return a change that adds these lines to each file."""
    parts: list[str] = []
    for name, lines in added.items():
        parts.append(f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n")
        parts.append(f"@@ -1 +1,{1 + len(lines)} @@\n import re\n")
        parts += [f"+{line}\n" for line in lines]
    return "".join(parts)


DIFF = write_diff({name: ["total = 1"] for name in FILES.values()})
WAIT_SECONDS, LATE_SECONDS = 1.5, 6.0
LARGEST_FILE = 100
"""Bytes, on a disk that is full."""


# -- faults -----------------------------------------------------------------------------------------------------------


def refusal(status: str, message: str = "no", code: str | None = None) -> bytes:
    error = {"message": message, "code": code}
    headers = {"retry-after": "0"}
    return reply(json.dumps({"error": error}).encode(), status=status, media_type="application/json", headers=headers)


def streamed(delta: dict[str, Any], reason: str) -> bytes:
    chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    return reply(
        sse(
            {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**chunk, "choices": [], "usage": usage},
        )
    )


def called(tool: str, arguments: dict[str, Any], reason: str = "tool_calls") -> bytes:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return streamed({"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": function}]}, reason)


Fault = Callable[[bytes], bytes | Flow]
"""Turns the reply that the model would give into what its server sends."""
FAULTS: dict[str, Fault] = {
    "401": lambda _: refusal("401 Unauthorized"),
    "402": lambda _: refusal("402 Payment Required"),
    "403": lambda _: refusal("403 Forbidden"),
    "429": lambda _: refusal("429 Too Many Requests"),
    "quota": lambda _: refusal("429 Too Many Requests", code="insufficient_quota"),
    "500": lambda _: refusal("500 Internal Server Error"),
    "cut": lambda whole: whole[: len(whole) // 2],
    "reset": lambda _: b"",
    "empty": lambda _: streamed({"content": ""}, "stop"),
    "blank": lambda _: streamed({"content": " \n"}, "stop"),
    "schema": lambda _: called("new_answer", {"wrong": 1}),
    "html": lambda _: reply(b"<html>Sign in</html>", media_type="text/html"),
    "filtered": lambda _: streamed({"content": "I can"}, "content_filter"),
    "out_of_tokens": lambda _: called("new_answer", {"content": "The"}, "length"),
    "window": lambda _: refusal("400 Bad Request", "maximum context length is 50 tokens", "context_length_exceeded"),
    "late": lambda whole: Flow(lambda: [whole], silence_seconds=LATE_SECONDS),
}
NARROW = "narrow"
"""The model reads so little at once that the product has to shorten a text for it: in the phase in which the agents
answer the question or the change, else the answers, or in a review the change again.
"""
NARROW_LINE = "narrow_line"
"""The same, of a change with lines that are too long for a part."""
WINDOW = 8_000
NUMBERS = range(9_000)
"""The words of a long text, so that it is known which of them a request shows."""
LONG_TEXT = " ".join(f"n{number:04}" for number in NUMBERS)
LONG_QUESTION = f"{QUESTION} {LONG_TEXT}"


def write_long_diff(words: int) -> str:
    """Return a change that adds all numbers, so many on a line."""
    each = len(NUMBERS) // len(FILES)
    added: dict[str, list[str]] = {}
    for place, name in enumerate(FILES.values()):
        own = [f"n{number:04}" for number in NUMBERS[place * each : (place + 1) * each]]
        added[name] = [f"total = {' + '.join(own[at : at + words])}" for at in range(0, each, words)]
    return write_diff(added)


CHANGES = {NARROW: write_long_diff(10), NARROW_LINE: write_long_diff(len(NUMBERS))}
PROCESS_FAULTS = ("kill", "full_disk")
"""What befalls the process of a command while this model is asked."""


@dataclass(frozen=True)
class Case:
    door: Door
    fault: str
    phase: Phase
    victims: tuple[str, ...]

    @property
    def is_narrow(self) -> bool:
        return self.fault in (NARROW, NARROW_LINE)

    def __str__(self) -> str:
        return f"{self.door}: {self.fault} while {', '.join(self.victims)} {self.phase}"


def list_cases() -> list[Case]:
    """Every fault in every phase. An agent is late only where others do not wait for it."""
    cases = [
        Case(door, fault, phase, victims)
        for door, phases in PHASES.items()
        for phase in phases
        for fault in FAULTS
        for victims in VICTIMS
        if fault != "late" or (phase == "answer" and len(victims) == 1)
    ]
    cases += [Case(door, NARROW, phase, one) for door, phases in PHASES.items() for phase in phases for one in VICTIMS]
    cases += [Case("review", NARROW_LINE, phase, victims) for phase in PHASES["review"] for victims in VICTIMS]
    cases += [
        Case(door, fault, phase, TEAM)
        for door, phases in PHASES.items()
        for phase in phases
        for fault in PROCESS_FAULTS
    ]
    return cases


# -- models -----------------------------------------------------------------------------------------------------------


@dataclass
class Models:
    """The models' server. `whole` and `broken` count the replies that it gave, by agent and phase."""

    case: Case | None = None
    process: "subprocess.Popen[bytes] | None" = None
    url: str = ""
    whole: Counter[tuple[str, Phase]] = field(default_factory=Counter[tuple[str, Phase]])
    broken: Counter[tuple[str, Phase]] = field(default_factory=Counter[tuple[str, Phase]])
    read: dict[tuple[str, Phase], set[int]] = field(default_factory=dict[tuple[str, Phase], set[int]])
    """The numbers of the long text that an agent was shown in a phase of a review, in all its parts."""
    struck: int = 0
    """How many requests a fault befell."""

    def respond(self, seen: Seen, _number: int) -> bytes | Flow:
        agent = seen.body["model"]
        phase, good = self._work(agent, seen)
        case = self.case
        if case is not None and case.is_narrow and agent in case.victims and case.phase in ("answer", phase):
            return self._read_part(case, agent, phase, seen, good)
        if case is None or case.phase != phase or agent not in case.victims:
            self.whole[agent, phase] += 1
            return good
        self.struck += 1
        if case.fault in FAULTS:
            self.broken[agent, phase] += 1
            return FAULTS[case.fault](good)
        self.whole[agent, phase] += 1  # what befalls its reader is no fault of the reply: it is asked for again
        if self.process is not None and case.fault == "kill":
            self.process.kill()
        elif self.process is not None:
            _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (LARGEST_FILE, hard))
        return good

    def _read_part(self, case: Case, agent: str, phase: Phase, seen: Seen, good: bytes) -> bytes:
        """Refuse what is too long; note which part of the long text a request shows that isn't."""
        body = json.dumps(seen.body)
        if tokens(seen.body) > WINDOW:
            return refusal("400 Bad Request", f"maximum context length is {WINDOW} tokens", "context_length_exceeded")
        numbers = Counter(map(int, re.findall(r"\bn(\d{4})\b", body)))
        texts = 1 if case.door == "review" or case.phase == "answer" else len(self._list_answers(seen))
        self.read.setdefault((agent, phase), set()).update(numbers)
        if case.door == "review" and phase != "answer":  # who merges or refutes is shown the part that this is about
            whole = bool(numbers) and max(numbers) - min(numbers) + 1 == len(numbers)
        elif case.door == "review":
            whole = len(self.read[agent, phase]) == len(NUMBERS)
        else:
            whole = all(numbers[number] >= texts for number in NUMBERS)
        (self.whole if whole else self.broken)[agent, phase] += 1
        self.struck += not whole
        return good

    @staticmethod
    def _list_answers(seen: Seen) -> list[Any]:
        texts = "\n".join(str(message.get("content")) for message in seen.body["messages"])
        return [one for one in materials(texts) if one.kind == "answer"]

    def _work(self, agent: str, seen: Seen) -> tuple[Phase, bytes]:
        texts = "\n".join(str(message.get("content")) for message in seen.body["messages"])
        tools = {tool["function"]["name"] for tool in seen.body.get("tools", ())}
        answers = self._list_answers(seen)
        if "Try to refute" in texts:
            numbers = re.findall(r'^ "finding": (\d+),$', texts, re.MULTILINE)
            verdicts = [
                {"finding": int(one), "verdict": "stands", "reason": "I looked."} for one in dict.fromkeys(numbers)
            ]
            return "refute", called("new_answer", {"content": json.dumps({"verdicts": verdicts})})
        if "submit_synthesis" in tools:
            return "merge", called("submit_synthesis", self._together(answers))
        if "vote" in tools and answers:
            best = next(one.name for name in TEAM for one in answers if name in one.text)
            return "vote", called("vote", {"agent_id": best, "reason": "It is right."})
        if "new_answer" in tools:
            return "answer", called("new_answer", {"content": self._answer(agent, texts)})
        return "present", streamed({"content": f"ANSWER: 42, presents {agent}."}, "stop")

    def _answer(self, agent: str, texts: str) -> str:
        if '"severity"' not in texts:
            is_long = self.case is not None and self.case.fault == NARROW and self.case.phase != "answer"
            return f"{answer_of(agent)} {LONG_TEXT}" if is_long else answer_of(agent)
        return json.dumps({"summary": "Read.", "findings": [finding_of(agent)]})

    def _together(self, answers: Sequence[Any]) -> dict[str, Any]:
        if not any("findings" in one.text for one in answers):
            names = [one.name for one in answers]
            return {"content": "ANSWER: 42, from all.", "claims": [{"claim": "It is 42.", "answers": names}]}
        found = {one.name: json.loads(one.text)["findings"][0] for one in answers}
        claims = [{"claim": one["title"], "answers": [name]} for name, one in found.items()]
        return {"content": json.dumps({"summary": "All.", "findings": [*found.values()]}), "claims": claims}

    @property
    def left_undone(self) -> dict[str, Phase]:
        """The agents that a fault kept from a phase's work for good, or that have read a part of the question."""
        return {
            agent: phase
            for agent, phase in sorted(self.broken, key=self._is_of_fault)
            if not self.whole[agent, phase] and not (self._is_late and self.whole[agent, "vote"])
        }

    def _is_of_fault(self, work: tuple[str, Phase]) -> bool:
        return self.case is not None and work[1] == self.case.phase

    @property
    def _is_late(self) -> bool:
        """A late reply is whole: whoever votes after it was waited for."""
        return self.case is not None and self.case.fault == "late"

    @property
    def answered(self) -> list[str]:
        """The agents that gave an answer, if only to a part of the question."""
        in_part = self.case is not None and self.case.is_narrow
        return [name for name in TEAM if self.whole[name, "answer"] or (in_part and self.broken[name, "answer"])]


def answer_of(agent: str) -> str:
    return f"ANSWER: 42, says {agent}."


def finding_of(agent: str) -> dict[str, Any]:
    title = f"{agent} found it"
    return {"file": FILES[agent], "line": 2, "severity": "minor", "title": title, "detail": "See.", "fix": "Mend."}


@contextmanager
def serving(models: Models) -> Generator[None]:
    """Serve these models beside this thread."""

    def beside(seen: Seen) -> bytes | None:
        return reply(b"", status="404 Not Found") if seen.head.startswith("GET ") else None

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(answering(models.respond, beside)) as double,
    ):
        models.url = double.url
        yield


# -- commands ---------------------------------------------------------------------------------------------------------


def run_apart(home: TempHome, models: Models, *arguments: str) -> Said:
    """Run a command in a process of its own, to which something may happen."""
    command = [sys.executable, "-m", COMMAND_MODULE, *arguments]
    environ = home.environ | {"HOME": str(home.work)}
    with subprocess.Popen(
        command, cwd=home.work, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        models.process = process
        out, err = process.communicate(timeout=120)
    models.process = None
    return Said(process.returncode, out.decode(), err.decode())


def command_of(home: TempHome, case: Case, models: Models) -> list[str]:
    """Return the command line, of whose files all are made."""
    price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
    backend = {"type": "chatcompletion", "base_url": f"{models.url}/v1", "price": price}
    agents = [{"id": name, "backend": {**backend, "model": name}} for name in TEAM]
    settings: dict[str, Any] = {"first_answer_wait_seconds": WAIT_SECONDS} if case.fault == "late" else {}
    if case.door == "synthesis":
        settings["decide"] = "synthesise"
    config = home.config("team", *agents, orchestrator=settings)
    question = LONG_QUESTION if case.fault == NARROW and case.phase == "answer" else QUESTION
    match case.door:
        case "run" | "synthesis":
            return ["--automation", "--config", config, question]
        case "review":
            (home.work / "change.diff").write_text(CHANGES.get(case.fault, DIFF))
            return ["review", "--config", config, "--diff", "change.diff", "--format", "json", "--output-file", "r.md"]
        case "batch":
            lines = [json.dumps({"question": f"{question} {number}"}) for number in range(2)]
            (home.work / "questions.jsonl").write_text("\n".join(lines))
            return ["batch", "questions.jsonl", "--config", config]
        case "eval":
            (home.work / "tasks.jsonl").write_text(json.dumps({"id": "six", "input": question, "target": "42"}))
            one = home.config("one", {"id": "dee", "backend": {**backend, "model": "dee"}})
            return ["eval", "tasks.jsonl", "--teams", config, "--against", one, "--json", "--samples", "1"]


def continuation_of(home: TempHome, case: Case, arguments: list[str]) -> list[str]:
    """Return the command that goes on where a killed one ended: a run has an id, all else is called again."""
    if case.door in ("run", "synthesis"):
        rows = run(home, "--json", verb="runs").document["runs"]
        if rows:
            return ["--automation", "--resume", rows[0]["run_id"]]
    return arguments


# -- what was claimed -------------------------------------------------------------------------------------------------


def find_faults(home: TempHome, case: Case, models: Models, said: Said) -> Iterator[str]:
    """Find what the product claims and was not done, and what was done and is not delivered."""
    match case.door:
        case "run" | "synthesis":
            yield from _of_run(home, case, models, said)
        case "review":
            yield from _of_review(home, models, said)
        case "batch":
            yield from _of_batch(home, models, said)
        case "eval":
            yield from _of_eval(models, said)


def _of_run(home: TempHome, case: Case, models: Models, said: Said) -> Iterator[str]:
    rows = run(home, "--json", verb="runs").document["runs"]
    if not rows:
        if said.code == 0:
            yield "exit code 0 and no run"
        return
    result = run(home, rows[0]["run_id"], "--view", "full", "--json", verb="result")
    whole = [answer_of(name) for name in TEAM if models.whole[name, "answer"]]
    yield from (f"an answer is not delivered: {text}" for text in whole if text not in result.out)
    if not models.left_undone:
        return
    if case.fault == NARROW and not ("weak" in said.out and result.document.get("weak")):
        yield f"answers to a part of the question, and the result is not weak: {said.out}"
    if said.code == 0 and not _names_gap(said.out, models):
        yield f"exit code 0, and no line names the gap: {said.out}"
    if result.code == 0 and not _names_gap_in_data(result.document):
        yield f"the JSON names no gap: {result.out}"
    if len(models.answered) < 2 and said.code == 0:
        yield "exit code 0 with fewer than two answers"


def _names_gap(text: str, models: Models) -> bool:
    few = re.search(r"\b([012]) of 3 voted", text)
    named = [line for line in text.splitlines() if line.startswith(("WARNING", "NOTE"))]
    public = {name: f"agent_{'abc'[place]}" for place, name in enumerate(TEAM)}
    lost = all(any(public[name] in line for line in named) for name in models.left_undone)
    return "weak" in text or few is not None or lost


def _names_gap_in_data(data: dict[str, Any]) -> bool:
    votes = len(data.get("votes", []))
    return bool(data.get("weak") or data.get("degraded") or data.get("status") != "completed" or votes < len(TEAM))


def _of_review(home: TempHome, models: Models, said: Said) -> Iterator[str]:
    found = {name for name in TEAM if models.whole[name, "answer"]}
    if not said.out:
        if said.code == 0:
            yield "exit code 0 and no report"
        return
    report = said.document
    yield from (f"a finding is not delivered: {name}'s" for name in found if finding_of(name)["title"] not in said.out)
    if report["exit_code"] != said.code:
        yield f"the report says {report['exit_code']}, the process {said.code}"
    if models.left_undone:
        yield from _of_gaps(home, models, report, found)


def _of_gaps(home: TempHome, models: Models, report: Any, found: Collection[str]) -> Iterator[str]:
    named = " ".join([*report["unclear"], *report["notes"]])
    untried = [one for one in report["findings"] if one["tried_by"] is None and len(one["found_by"]) < len(TEAM)]
    if untried and not named:
        yield "findings that nobody tried, and no note"
    for one in report["findings"]:
        if models.left_undone.get(one["tried_by"]) == "refute":
            yield f"a verdict of {one['tried_by']} counts, which was not shown all: {one}"
    by_others = {"refute", "merge" if any(models.whole[name, "merge"] for name in TEAM) else "refute"}
    silent = [name for name, phase in models.left_undone.items() if name not in named and phase not in by_others]
    if report["verdict"] != "pass":
        return
    if silent:
        yield f"pass, and nothing names {silent}: {report['unclear']} {report['notes']}"
    if silent and "**Note:**" not in (home.work / "r.md").read_text():
        yield "the page names no gap"
    if all(models.left_undone.get(name) == "answer" for name in TEAM):
        yield "pass, though no reviewer has read the whole change"
    if len(found) < 2:
        yield "pass, though one reviewer at most has read the change"


def _of_batch(home: TempHome, models: Models, said: Said) -> Iterator[str]:
    file = home.work / "questions.results.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    if said.code == 0 and len(lines) < 2:
        yield "exit code 0, and questions without a line"
    if not models.left_undone:
        return
    for line in lines:
        if not (line["weak"] or line["error"] or line.get("degraded") or line["state"] != "completed"):
            yield f"the line names no gap: {line}"
    if len(models.answered) < 2 and said.code == 0:
        yield "exit code 0 with fewer than two answers"


def _of_eval(models: Models, said: Said) -> Iterator[str]:
    if not models.left_undone or said.code != 0:
        return
    if not models.answered:
        yield "exit code 0, and no agent of the team has answered"
    (team,) = [one for one in said.document["rows"] if one["name"] == "team"]
    if not (re.search("dropped out|survivor|tie broken|weak", team["note"]) or team["failed"]):
        yield f"the row names no gap: {team}"


# -- the program ------------------------------------------------------------------------------------------------------


def inject(home: TempHome, cases: Sequence[Case]) -> Figures:
    """Inject each of these faults into a command of its own, in a state directory of its own."""
    figures = Figures()
    models = Models()
    with serving(models):
        for number, case in enumerate(cases):
            own = replace(home, path=home.path / str(number), work=home.work / str(number))
            own.work.mkdir(parents=True)
            models.case, models.whole, models.broken, models.read, models.struck = case, Counter(), Counter(), {}, 0
            arguments = command_of(own, case, models)
            apart = case.fault in PROCESS_FAULTS
            said = run_apart(own, models, *arguments) if apart else run(own, *arguments)
            if apart:
                models.case = None
            if apart and said.code != 0:
                said = run(own, *continuation_of(own, case, arguments))
            figures.injected += 1
            figures.struck += bool(models.struck)
            found = [*find_faults(own, case, models, said)]
            if found:
                figures.found[str(case)] = found
            own.close()
    return figures


def spread(cases: Sequence[Case], number: int, seed: int = 1) -> list[Case]:
    """Choose so many cases: each fault in each phase of each door once, before any of them twice."""
    shuffled = Random(seed).sample(cases, len(cases))
    of_cell: Counter[tuple[str, str, str]] = Counter()
    of_phase: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, Case]] = []
    for case in shuffled:
        of_cell[case.door, case.phase, case.fault] += 1
        of_phase[case.door, case.phase] += 1
        ranked.append((of_cell[case.door, case.phase, case.fault], of_phase[case.door, case.phase], case))
    return [case for *_, case in sorted(ranked, key=lambda one: one[:2])][:number]


async def false_greens(_: TempHome, faults: int) -> str:
    """Inject so many faults in a process of its own: commands need its main thread."""
    done = await anyio.run_process([sys.executable, "-m", __name__, str(faults)], check=False)
    told = done.stdout.decode()
    assert done.returncode == 0, told + done.stderr.decode()
    return told.strip()


def main(arguments: Sequence[str]) -> int:
    cases = list_cases()
    chosen = spread(cases, int(arguments[0])) if arguments else cases
    with tempfile.TemporaryDirectory(prefix="massgen-green-") as directory:
        home = TempHome(Path(directory) / "home", Path(directory) / "work", starts_anew=True)
        figures = inject(home, chosen)
        inject_file_faults(home, list_file_cases(), figures)
    print(figures)
    for case, found in figures.found.items():
        print(case, *found, sep="\n    ")
    return min(1, len(figures.found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
