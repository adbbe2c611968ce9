"""Many questions, each a run in the background, with one budget for all of them.

Every answer becomes a line of a results file as soon as it is there. Whoever stops, or is killed, calls again: what is
completed is not asked any more, and a run that was begun is found by its key and waited for. Must not know who asks.
"""

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import anyio
from pydantic import BaseModel, Field, ValidationError

from massgen_mcp.config.models.orchestrator import MAX_USD
from massgen_mcp.errors import MassgenError, root_causes, storage_error
from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.request.build import RunRequest
from massgen_mcp.request.kind import RunKind
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.firmness import FAILURES

WAIT_SECONDS = 60.0
_NO_OBJECT = 'write one JSON object per line, such as {"question": "Postgres or SQLite?"}'
ROUNDING = 1e-9
ResultLine = Mapping[str, Any]
"""A line of the results file."""
_READ = {"id", "question", "state", "usd", "weak"}
Noted = Literal["weak", "degraded", "not_copied"]
"""The fields of a line that say what a success lacks."""
_BEGINNING = b'{"id": "'


class BatchQuestion(BaseModel, frozen=True, strict=True, extra="forbid", hide_input_in_errors=True):
    """A line of a batch."""

    question: str = Field(min_length=1)
    id: str = Field(default="", max_length=200)
    """What its result is found by; else the number of its line."""
    config: str | None = None
    """Its own team."""
    cwd: str | None = None
    """The directory that it is about."""
    max_usd: float | None = Field(default=None, gt=0, le=MAX_USD)
    """What it may cost."""


def read_questions(path: Path, results: Path) -> list[BatchQuestion]:
    """Of a file with a JSON object on each line. Raises `MassgenError` invalid_arguments, naming all wrong lines."""
    if path.resolve() == results.resolve():
        raise MassgenError("invalid_arguments", f"{path}: use different files for the questions and the results")
    try:
        return questions_of(path.read_text(encoding="utf-8-sig").split("\n"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8 text"
        raise MassgenError("invalid_arguments", f"{path}: cannot be read: {reason}") from error


def questions_of(texts: Iterable[str], source: str) -> list[BatchQuestion]:
    """From JSON objects. Raises as `read_questions`."""
    found: dict[str, BatchQuestion] = {}
    faults: list[str] = []
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            question = BatchQuestion.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            fault = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first["loc"] else _NO_OBJECT
            faults.append(f"{source}:{number}: {fault}")
            continue
        question = question.model_copy(update={"id": question.id or str(number)})
        if question.id in found:
            faults.append(f"{source}:{number}: the id {question.id!a} is used twice")
        found[question.id] = question
    if not (found or faults):
        faults.append(f"{source}: the file contains no questions; {_NO_OBJECT}")
    _refuse(faults)
    return [*found.values()]


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise MassgenError("invalid_arguments", "\n".join([*faults, "No model was called."]))


class Batch:
    """The questions, what has come of them so far, and who is told of each result."""

    def __init__(
        self,
        questions: Sequence[BatchQuestion],
        results: "ResultsFile",
        on_result: Callable[[ResultLine], None],
        further: Callable[[BatchQuestion, RunView], Awaitable[ResultLine]] | None = None,
        kind: RunKind = "batch",
    ) -> None:
        """`further`: what a result says besides; `kind`: of its runs."""
        self.questions = questions
        self._further, self._kind = further, kind
        self.left: list[BatchQuestion] = []
        """Those that were not asked, because what they may cost could pass the budget."""
        self._results, self._on_result = results, on_result
        self._under_way: dict[str, float] = {}
        """What each of these may still cost."""
        self._news = anyio.Event()

    @property
    def results(self) -> list[ResultLine]:
        """Of every question that has one, in the order of the questions."""
        last = self._results.last
        return [last[one.id] for one in self.questions if one.id in last and last[one.id]["question"] == one.question]

    @property
    def completed(self) -> set[str]:
        """Ids of those that are not asked any more: a run that was no success is asked again."""
        return {result["id"] for result in self.results if is_success(result)}

    @property
    def usd(self) -> float:
        """As far as prices are known."""
        return sum(result["usd"] or 0.0 for result in self._results.all)

    async def ask(
        self,
        request_of: Callable[[BatchQuestion], Awaitable[RunRequest]],
        service: RunService,
        concurrency: int,
        max_usd: float | None,
    ) -> None:
        """Ask whatever is not completed. `max_usd` None: no budget for all together.

        Raises `MassgenError` invalid_arguments before anything is paid for, naming all that cannot be asked; and what
        `RunService.start` raises.
        """
        requests: list[tuple[BatchQuestion, RunRequest]] = []
        faults: list[str] = []
        completed = self.completed
        for question in self.questions:
            if question.id in completed:
                continue
            if question.cwd is not None and not await anyio.Path(question.cwd).is_dir():
                faults.append(f"{question.id}: cwd: directory not found: {question.cwd!a}")
            try:
                requests.append((question, await request_of(question)))
            except MassgenError as error:
                faults.append(f"{question.id}: {error}")
        _refuse(faults)
        try:
            async with anyio.create_task_group() as tasks:
                for question, request in requests:
                    cap = request.config.budget.max_usd
                    if await self._has_room(cap, concurrency, max_usd):
                        self._under_way[question.id] = cap
                        tasks.start_soon(self._take, question, request, service)
                    else:
                        self.left.append(question)
        except ExceptionGroup as group:
            raise root_causes(group)[0] from group

    async def _has_room(self, cap: float, concurrency: int, max_usd: float | None) -> bool:
        """Waits for a place. False: whatever the others cost, this one could pass the budget."""
        while True:
            most = self.usd + sum(self._under_way.values()) + cap
            if (max_usd is None or most <= max_usd + ROUNDING) and len(self._under_way) < concurrency:
                return True
            if not self._under_way:
                return False
            self._news = anyio.Event()
            await self._news.wait()

    async def _take(self, question: BatchQuestion, request: RunRequest, service: RunService) -> None:
        key = self._results.key_of(question, request)
        given = replace(request.given, kind=self._kind, idempotency_key=key, session_id=None)
        view, _ = await service.start(await service.prepare(replace(request, given=given)))
        while not view.ended:
            if view.stands_still:
                raise MassgenError("not_finished", f"run {view.row.run_id}: {view.held_up_by or view.state}")
            view = await service.watcher.wait(view.row.run_id, until="terminal", seconds=WAIT_SECONDS, cursor=None)
        result = _result_line(question, view)
        if self._further is not None:
            result = {**result, **await self._further(question, view)}
        self._results.append(result)
        del self._under_way[question.id]
        self._on_result(result)
        self._news.set()


class ResultsFile:
    """One line for each result; the last one of an id counts. Nobody else writes to it meanwhile."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = path
        whole, _, self.cut_off = data.rpartition(b"\n")
        try:
            self.all: list[ResultLine] = [json.loads(line) for line in whole.splitlines()]
            self.last = {cast("str", result["id"]): result for result in self.all}
            ours = all(result.keys() >= _READ for result in self.all)
        except (ValueError, KeyError, TypeError, AttributeError):
            ours = False
        if not ours or not self.cut_off.startswith(_BEGINNING[: len(self.cut_off)]):
            raise MassgenError("invalid_arguments", f"{path}: not a results file; use a different file")

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Generator["ResultsFile"]:
        """Raises `MassgenError` invalid_arguments."""
        try:
            with path.open("ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                data = path.read_bytes()
                found = cls(path, data)
                file.truncate(len(data) - len(found.cut_off))  # a line that was cut off is none
                yield found
        except BlockingIOError as error:
            raise MassgenError("invalid_arguments", f"{path}: another process is working on this batch") from error
        except OSError as error:
            raise MassgenError("invalid_arguments", f"{path}: cannot be written: {error.strerror}") from error

    def key_of(self, question: BatchQuestion, request: RunRequest) -> str:
        """The same for the same question to the same team in the same try."""
        tries = sum(result["id"] == question.id for result in self.all)
        parts = [
            str(self._path.resolve()),
            question.id,
            request.question,
            request.config.model_dump(mode="json"),
            tries,
        ]
        return f"batch-{hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()}"

    def append(self, result: ResultLine) -> None:
        """Whole and on disk, or not there. Raises `MassgenError` disk_full, store_unavailable."""
        try:
            with self._path.open("ab") as file:
                file.write(json.dumps(result, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(f"{self._path} cannot be written", error) from error
        self.all.append(result)
        self.last[result["id"]] = result


def is_success(result: ResultLine) -> bool:
    """Whether the run behind a line was one (see `WorkDone.failure`); lines of before that field say how it ended."""
    return result["state"] == "completed" and not result.get("failure")


def count_noted(field: Noted, results: Iterable[ResultLine]) -> int:
    """Count the runs that were weak, in which an agent dropped out or was too late (`degraded`), or for which some
    directory couldn't be copied; lines of before a field say nothing of it.
    """
    return sum(bool(result.get(field)) for result in results)


def _result_line(question: BatchQuestion, view: RunView) -> ResultLine:
    run, work = view.snapshot, view.snapshot.work_done
    return {
        "id": question.id,
        "question": question.question,
        "state": view.state,
        "answer": run.best_answer,
        "outcome": run.outcome,
        "weak": [*work.weak],
        "degraded": [{"agent": run.agents[agent].info.id, "reason": reason} for agent, reason, _ in run.degraded],
        "failure": work.failure,
        "not_copied": [*work.not_copied],
        "usd": run.spent.rounded_usd,
        "priced": not run.spent.unpriced_calls,
        "seconds": round(view.elapsed, 3),
        "run_id": view.row.run_id,
        "error": run.end.message if isinstance(run.end, RunFailed | RunTimedOut) else None,
    }


_NOTED: Mapping[Noted, str] = {
    "weak": "weak",
    "degraded": "with agents that dropped out",
    "not_copied": "with a directory that couldn't be copied",
}


def summary(batch: Batch) -> str:
    """Sum up: `18 completed, 2 of them weak, 1 failed; $0.8312`."""
    states = Counter(describe(result) for result in batch.results)
    successes = [*filter(is_success, batch.results)]
    parts = [f"{number} {state}" for state, number in states.most_common()]
    for field, what in _NOTED.items():
        if number := count_noted(field, successes):
            parts.append(f"{number} of them {what}")
    parts += (
        [f"{len(batch.left)} not asked, because any of them could exceed the budget; lower --max-usd-each"]
        if batch.left
        else []
    )
    spent = [result["usd"] for result in batch.results]
    if not any(usd is not None for usd in spent):
        return f"{', '.join(parts)}; cost n/a"
    parts[-1] += f"; ${batch.usd:.4f}"
    if not all(result.get("priced", result["usd"] is not None) for result in batch.results):
        parts[-1] += "+"
    return ", ".join(parts)


def describe(result: ResultLine) -> str:
    """Say how a question ended, in few words."""
    failure = FAILURES.get(result.get("failure") or "not_completed", "")
    return failure or str(result["state"]).replace("_", " ")
