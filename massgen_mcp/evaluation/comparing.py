"""Teams beside one model on the same items: who is asked what, until the budget is gone or the question is settled.

Each item is asked of every team and of the one model. Then the one model is asked the item again, as often as a team's
money for this item would have paid: its most frequent answer is what the same money buys without a team, and of
programs the first that passes the example. Every run is a line of a results file, so whoever is killed goes on there.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from massgen_mcp.errors import DropReason, MassgenError
from massgen_mcp.evaluation.scoring import Scorer, short_answer
from massgen_mcp.evaluation.surroundings import surroundings, team_as_measured
from massgen_mcp.evaluation.tasks import Item, Replayed
from massgen_mcp.request.build import RunRequest
from massgen_mcp.runs.batch import (
    Batch,
    BatchQuestion,
    ResultLine,
    ResultsFile,
    count_noted,
    describe,
    is_success,
)
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.statistics.paired import FEWEST, Paired
from massgen_mcp.statistics.words import counts_text

ONE = "one"
"""The name of the one model in ids."""
KEY_REASONS: frozenset[DropReason] = frozenset({"auth", "quota_exhausted"})
"""The reasons for which an agent drops out until its user has given it a key that works and is paid for."""


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a team or a model. `right` by item, without those of which it is not known. `usd`: None where some
    price is unknown. `failed`: how many runs were no success, by how they ended.
    """

    name: str
    right: Mapping[str, bool]
    usd: float | None
    tokens: int
    failed: Mapping[str, int] = field(default_factory=dict[str, int])
    note: str = ""

    @property
    def items(self) -> int:
        return len(self.right)

    @property
    def count(self) -> int:
        return sum(self.right.values())


@dataclass(frozen=True, slots=True)
class Comparison:
    first: str
    second: str
    paired: Paired
    settled: bool
    with_one_model: bool


@dataclass
class Evaluation:
    """`asks`: makes the request of an item for the team of this name, or for the one model."""

    items: Sequence[Item]
    teams: Sequence[str]
    scorer: Scorer
    results: ResultsFile
    service: RunService
    asks: Callable[[str, Item], Awaitable[RunRequest]]
    show: Callable[[ResultLine], None]
    max_usd: float | None
    concurrency: int
    samples: int
    """Of the one model on one item at most, whatever a team has cost."""
    stopped: str = "all questions were asked"
    """Why it ended, in words."""
    done: bool = True
    """It did not end for want of money."""

    def __post_init__(self) -> None:
        self.items = Random("order").sample([*self.items], len(self.items))
        self._measured: dict[str, str] = {}
        self._unmeasured_before = self.unmeasured
        self._asked: set[str] = set()
        """Ids that were asked in this process: each once."""

    async def run(self) -> None:
        """Raises `MassgenError` as `Batch.ask`, and invalid_arguments for results of something else."""
        known = [(item, self._kept_result(who, item)) for item in self.items for who in (*self.teams, ONE)]
        ours = all("measured" in line for line in self.results.all)
        if not ours or any(line and line["question"] != item.question for item, line in known):
            raise MassgenError(
                "invalid_arguments", "the results file belongs to another comparison; use a different file"
            )
        at_once = max(1, self.concurrency // (len(self.teams) + 1))
        for begin in range(0, len(self.items), at_once):
            block = self.items[begin : begin + at_once]
            wanted = [(who, item, 1) for item in block for who in (*self.teams, ONE)]
            if not await self._ask(wanted) or self._stop_without_key(wanted):
                return
            while more := [(ONE, item, self._samples(item) + 1) for item in block if self._wants_more(item)]:
                if not await self._ask(more) or self._stop_without_key(more):
                    return
            found = [one for one in self.comparisons() if one.with_one_model]
            if found[0].paired.items >= FEWEST and all(one.settled for one in found):
                self.stopped = "every comparison with the single model is settled"
                return

    async def _ask(self, wanted: Sequence[tuple[str, Item, int]]) -> bool:
        """Whatever has no result yet. False: the budget is gone."""
        by_id = {_id(who, item, time): (who, item) for who, item, time in wanted}
        asked = [BatchQuestion(id=key, question=item.question) for key, (_, item) in by_id.items() if self._is_due(key)]

        async def request_of(question: BatchQuestion) -> RunRequest:
            who, item = by_id[question.id]
            request = await self.asks(who, item)
            self._measured[who] = team_as_measured(request.config)["config"]
            return request

        async def further(question: BatchQuestion, view: RunView) -> ResultLine:
            who, item = by_id[question.id]
            return {**await _scored(self.scorer, who, item, view), "measured": [self._measured[who], *_versions_here()]}

        self._asked.update(by_id)
        batch = Batch(asked, self.results, self.show, further, "eval")
        await batch.ask(request_of, self.service, self.concurrency, self.max_usd)
        if batch.left:
            self.stopped = "the budget can't cover the next run; lower its cost with --max-usd-each"
            self.done = False
        return not batch.left

    def _stop_without_key(self, asked: Sequence[tuple[str, Item, int]]) -> bool:
        """Stop where a team, or the one model, has no working key: it would lose on items that it never worked on."""
        lines = [(who, self.results.last[_id(who, item, time)]) for who, item, time in asked]
        found = next(((who, line) for who, line in lines if _lacks_key(line)), None)
        if found is None:
            return False
        who, line = found
        agents = ", ".join(f"{one['agent']}: {one['reason']}" for one in line["degraded"])
        self.stopped = f"{display_name(who)} has no working key ({agents}); set one and repeat the command to continue"
        self.done = False
        return True

    def _is_due(self, key: str) -> bool:
        """A run that failed counts as wrong. One without a working key is asked again, once in every call, and so are
        all of a team of which no run was a success.
        """
        line = self.results.last.get(key)
        if line is None:
            return True
        return key not in self._asked and (key.partition("/")[0] in self._unmeasured_before or _lacks_key(line))

    @property
    def unmeasured(self) -> list[str]:
        """Names of the teams, or of the one model, of which no run was a success: nothing is known of them."""
        succeeded = {line["id"].partition("/")[0] for line in self.results.last.values() if is_success(line)}
        asked = {line["id"].partition("/")[0] for line in self.results.last.values()}
        return sorted(asked - succeeded)

    # -- the one model, for a team's money ----------------------------------------------------------------------------

    def _kept_result(self, who: str, item: Item, time: int = 1) -> ResultLine | None:
        line = self.results.last.get(_id(who, item, time))
        if line is None or _lacks_key(line):
            return None
        return line

    def _samples(self, item: Item) -> int:
        return len([*self._of_one(item)])

    def _of_one(self, item: Item) -> Iterator[ResultLine]:
        for time in range(1, self.samples + 1):
            if (line := self._kept_result(ONE, item, time)) is None:
                return
            yield line

    def _wants_more(self, item: Item) -> bool:
        return any(len(self._bought(team, item)) < self._paid(team, item) for team in self.teams)

    def _paid(self, team: str, item: Item) -> int:
        """So many samples a team's money pays. A program that passes the example ends them, and without an example no
        further one helps.
        """
        if item.tests and not item.example:
            return 1
        samples = [*self._of_one(item)]
        passed = next((at for at, one in enumerate(samples, start=1) if one["passes_example"]), self.samples)
        line = self._kept_result(team, item)
        assert line is not None  # noqa: S101 - the team is asked first
        price = "usd" if all(one["priced"] and one["usd"] for one in (line, samples[0])) else "tokens"
        times = int(line[price] / samples[0][price] + 1e-9) if samples[0][price] else 1
        return max(1, min(times, passed, self.samples))

    def _bought(self, team: str, item: Item) -> list[ResultLine]:
        return [*self._of_one(item)][: self._paid(team, item)]

    # -- what came of it ----------------------------------------------------------------------------------------------

    @property
    def whole(self) -> list[Item]:
        """The items of which everything is known. Only these count."""
        return [
            item
            for item in self.items
            if all(self._kept_result(who, item) for who in (*self.teams, ONE)) and not self._wants_more(item)
        ]

    def rows(self) -> list[Row]:
        """Each team, and below it who it is compared with; the one model last."""
        items, rows = self.whole, list[Row]()
        for team in self.teams:
            lines = {item.id: self._kept_result(team, item) or {} for item in items}
            rows.append(_row(team, lines))
            rows += _best_member(team, lines)
            bought = {item.id: self._bought(team, item) for item in items}
            times = sum(map(len, bought.values())) / max(1, len(items))
            rows.append(
                _row(
                    f"same money as {team}",
                    {i: _as_one(each) for i, each in bought.items()},
                    f"asked {times:.1f} times",
                )
            )
        return [*rows, _row("one model", {item.id: self._kept_result(ONE, item) or {} for item in items})]

    def comparisons(self) -> list[Comparison]:
        """Each team with one model, with the same money on one model, and with the best of its members."""
        rows = {row.name: row for row in self.rows()}
        others = {team: ("one model", f"same money as {team}", f"best member of {team}") for team in self.teams}
        pairs = [(team, other) for team in self.teams for other in others[team] if other in rows]
        found = [(one, other, Paired.of(rows[one].right, rows[other].right)) for one, other in pairs]
        return [
            Comparison(one, other, paired, paired.is_settled(len(found)), not other.startswith("best member"))
            for one, other, paired in found
        ]

    @property
    def mixed(self) -> bool:
        """Whether the results were measured with different configs, prompts or versions of one name."""
        measured = {(line["id"].partition("/")[0], *line["measured"]) for line in self.results.all}
        return len(measured) > len({who for who, *_ in measured})


def _lacks_key(line: ResultLine) -> bool:
    """Tell a run that was no success because keys of its agents are wrong or their quota is used up."""
    return not is_success(line) and any(one["reason"] in KEY_REASONS for one in line.get("degraded", ()))


def display_name(who: str) -> str:
    """Return the name of a team, or of the one model, for people."""
    if who == ONE:
        return "the one model"
    return who


def _versions_here() -> tuple[str, str]:
    here = surroundings()
    return here["prompts"], ", ".join(f"{name} {version}" for name, version in here["versions"].items())


def _id(who: str, item: Item, time: int) -> str:
    return f"{who}/{item.id}" if who != ONE else f"{who}/{item.id}/{time}"


async def _scored(scorer: Scorer, who: str, item: Item, view: RunView) -> ResultLine:
    """What a line says besides what came of the run. A run that came to no final answer is wrong."""
    run = view.snapshot
    answer = run.best_answer if view.state == "completed" else None
    agents = run.agents.values() if who != ONE else ()
    # Who had seen others is left out: it is not known what it would have said alone.
    firsts = {
        agent.info.id: agent.answers[0] if agent.answers else None
        for agent in agents
        if not (agent.answers and agent.answers[0].based_on_revision)
    }
    lasts = [agent.answers[-1] for agent in agents if agent.answers]
    given = {one.label: one.content for one in (*firsts.values(), *lasts) if one is not None}
    if isinstance(item, Replayed):
        whole = passes = answer is not None and item.is_passed_by(run.checked_final)
        right = {label: item.is_passed_by(run.coordination.evidence.get(label)) for label in given}
    else:
        texts = {text: await scorer.is_right(item, text) for text in dict.fromkeys([answer, *given.values()])}
        whole, right = texts[answer], {label: texts[text] for label, text in given.items()}
        passes = bool(item.example and answer) and await scorer.passes(item.example, answer or "")
    return {
        "right": whole,
        "said": short_answer(answer),
        "passes_example": passes,
        "members": {name: one is not None and right[one.label] for name, one in firsts.items()},
        "some_right": any(right[one.label] for one in lasts),
        "tokens": run.spent.tokens,
    }


def _row(name: str, lines: Mapping[str, ResultLine], note: str = "") -> Row:
    known = all(line["priced"] for line in lines.values())
    return Row(
        name,
        {item: bool(line["right"]) for item, line in lines.items()},
        sum(line["usd"] or 0.0 for line in lines.values()) if known else None,
        sum(line["tokens"] for line in lines.values()),
        Counter(describe(line) for line in lines.values() if not is_success(line)),
        note or _coverage(lines.values()),
    )


def _coverage(lines: Iterable[ResultLine]) -> str:
    found = [line for line in lines if line["members"]]
    if not found:
        return ""
    outcomes = counts_text(Counter(str(line["outcome"]) for line in found if line["outcome"]))
    some_right = sum(line["some_right"] for line in found)
    parts = [f"at least one agent is right on {some_right} of {len(found)} items", outcomes]
    if lost := count_noted("degraded", found):
        parts.append(f"some agents dropped out: {lost}")
    if weak := count_noted("weak", found):
        parts.append(f"weak: {weak}")
    if uncopied := count_noted("not_copied", found):
        parts.append(f"runs with a directory that couldn't be copied: {uncopied}")
    return "; ".join(parts)


def _as_one(samples: Sequence[ResultLine]) -> ResultLine:
    """The answer that the same money buys: the first program that passes the example, else the most frequent answer, of
    several the first.
    """
    often = Counter(one["said"] for one in samples if one["said"] is not None)
    passing = [one for one in samples if one["passes_example"]]
    chosen = passing or [
        one for one in samples if one["said"] is not None and often[one["said"]] == max(often.values())
    ]
    found = (chosen or samples)[0]
    usd = sum(one["usd"] or 0.0 for one in samples)
    tokens, priced = sum(one["tokens"] for one in samples), all(one["priced"] for one in samples)
    return {**found, "usd": usd, "tokens": tokens, "priced": priced}


def _best_member(team: str, lines: Mapping[str, ResultLine]) -> Iterator[Row]:
    """The member whose first answers, given before it saw others, are right most often. Which one that is, is known
    only afterwards, on these same items: that flatters it.
    """
    names = dict.fromkeys(name for line in lines.values() for name in line["members"])
    if len(names) < 2:
        return
    right = {
        name: {item: line["members"][name] for item, line in lines.items() if name in line["members"]} for name in names
    }
    best = max(names, key=lambda name: sum(right[name].values()) / len(right[name]))
    yield Row(f"best member of {team}", right[best], None, 0, {}, f"in hindsight, {best} gave the best first answers")
