"""What events are made of: their base class, and what several of them say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __deepcopy__(self, memo: object = None) -> Self:
        return self  # nobody changes it


EventT = TypeVar("EventT", bound=Event)

Outcome = Literal[
    "consensus",
    "majority",
    "plurality",
    "tie_broken",
    "single",
    "single_survivor",
    "best_so_far",
    "checked",
    "tested",
    "same_files",
    "agreed",
    "unfinished",
    "synthesised",
    "judged",
]
"""How good a completed run's agreement was: all agents that were asked voted for one camp; more than half of them did,
or all, but only after a run-off; half or fewer did; the votes were tied in a run-off, too; of a team of one; of the
only agent that was left; the best there was when the run was cut short; no other passes the required checks as it does,
or it passes a check that the base fails; it passed most of the tests that the others wrote; all answers have the same
files; an agent read all of the first answers and found that they say the same; nobody answered, and this is what a
dropped agent left in files; an agent wrote it from all answers; the judge that the config names found it the best.
"""

BY_VOTES: frozenset[Outcome] = frozenset({"consensus", "majority", "plurality", "tie_broken"})
"""The votes of the team named the winner."""
DECIDED_BY_RUNS: frozenset[Outcome | None] = frozenset({"checked", "tested", "same_files"})
"""What ran, or that nothing differed, named the winner; nobody was asked to vote."""
DECIDED_WITHOUT_VOTES = DECIDED_BY_RUNS | {"synthesised", "judged"}

Challenge = Literal["withstood", "unproven", "refuted", "mended", "not_challenged"]
"""What came of scripts against the winner (`refute`): its files passed all; what they failed was not confirmed blind by
a third agent; it was, and the author did not mend it; it was, and this is the mended answer; nobody could write or
confirm any.
"""

StageKind = Literal["answer", "test", "vote", "synthesise", "compare", "refute", "settle", "revise", "check", "confirm"]
"""What agents do in a stage: answer; write tests that tell the answers apart; vote; write one answer from all; compare
two, in this order; write tests against the winner; say, without seeing any answer, what those have to print; mend the
winner; before anybody answers write a test that fails on the unchanged files; say, from its script alone, what it has
to print.
"""

ChecksPolicy = Literal["informative", "required", "goal"]
"""`informative`: voters see the evidence and decide. `required`: besides, an answer cannot win if another one passes a
check that it fails, and fails none that it passes. `goal`: the same; answers that change nothing are checked, too, and
the final files have to pass what fails on the base.
"""

Decide = Literal["auto", "vote", "checks", "synthesise", "judge"]
"""How the winner is found: by votes; by tests that the team writes, and by votes where those do not tell; an agent
writes it from all answers; a judge compares them. `auto`: tests where three answers or more have different files.
"""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to find the winner, as other parts of the program know it; its rules are in `coordination.procedures`."""

    stage: StageKind
    """The stage in which it finds the winner; where it finds none there, votes decide."""
    may_test: bool = False
    """Tests that agents write may decide, where enough answers change files."""
    runs_scripts: bool = False
    """Agents write scripts that run on the files of answers."""
    counts_substance: bool = False
    """Fewer answers can do, if they say the same; elsewhere each one adds something."""


STRATEGIES: Mapping[Decide, Strategy] = {
    "auto": Strategy("vote", may_test=True, runs_scripts=True, counts_substance=True),
    "vote": Strategy("vote", counts_substance=True),
    "checks": Strategy("test", may_test=True, runs_scripts=True, counts_substance=True),
    "synthesise": Strategy("synthesise", runs_scripts=True),
    "judge": Strategy("compare"),
}

Effort = Literal["low", "auto", "high"]
"""How many agents are asked before answers are compared: see `coordination.effort`."""
FIRST_ASKED: Mapping[Effort, int | None] = {"low": 2, "auto": 3, "high": None}
"""So many; None: all."""
LEAST_ANSWERS = 3
"""Of fewer answers tests are not written: nobody but their two authors could write any."""
CHECK_WRITERS = 2
"""So many agents may write a failing test before anybody answers, one after the other."""
CONFIRM = 2
"""So many others say what it has to print."""


def most_asked(effort: Effort, max_agents: int | None, team: int) -> int:
    """Return the maximum number of agents of a team that are asked for an answer."""
    return min(max_agents or (team if effort == "high" else 7), team)


StageReason = Literal[
    "tied",
    "still_tied",
    "differ",
    "few_answers",
    "no_sandbox",
    "no_tests",
    "tests_tell_nothing",
    "tests_tied",
    "start",
    "check_tells",
    "none_passes",
    "no_proof",
    "disagreement",
    "dropped",
    "compare",
    "unchanged",
    "answered",
    "writer_failed",
    "no_verdict",
    "compared",
    "voted",
    "failed",
    "proven",
    "wanted",
    "fails_before",
    "void",
]
"""Why a stage is opened. To vote: votes are tied (a run-off); fewer than three answers, or no sandbox, so that no tests
are written; nobody wrote any; none of them tells answers apart, or too few are passed; the best of them pass as many.
To write tests: the answers' files differ. To answer: these are the first; one at a time, since a check fails on the
base and tells; no answer passes it yet; that the first answers have the same files is `no_proof`; the answers differ;
in place of agents that were dropped. `compare`: one agent votes, and says which answers say the same; then all vote
(`disagreement`), unless they do, or others are asked. Besides, to vote: no answer changes files; whoever was to write
from all failed; the judge told no single best one. To write from all: all have `answered`. To compare: two of them are;
or they are `still_tied` after a run-off. To refute: an answer was voted for. To settle: its files fail tests. To
revise: that is proven. To write a check: one is `wanted`; the one before is void, or its author fell out. To confirm
it: it fails on the unchanged files.
"""

RoundKind = Literal[
    "answer_or_vote",
    "run_off",
    "test",
    "synthesise",
    "compare",
    "refute",
    "settle",
    "revise",
    "check",
    "confirm",
]
"""What ends a round: an answer or a vote, as the rules allow; a vote in a run-off; else what its stage asks for."""

WrittenForm = Literal["json", "fenced_json", "tool_call_tag", "function_tag", "python_tag", "function_call"]
"""How a model wrote a call into its text: as a JSON object, in a code block, between `<tool_call>` (and the like) or
`<function=…>`, in Llama's way, or as `functions.NAME({…})`.
"""

PriceSource = Literal["config", "provider", "genai-prices", "estimate", "bound", "free"]
"""Where the price of a call came from: the user's config, the provider's reply, or a public price list. In an estimate
the list says what the model's own provider takes, and not what the gateway takes that was asked. A bound is the highest
known price of similar models, where the model's own is unknown. Free are models in a private network.
"""


def public_agent_name(place: int) -> str:
    """The public name of the agent at `place` (0-based) in the config: agent_a, agent_b, …, agent_z, agent_aa."""
    letters = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        letters = chr(ord("a") + digit) + letters
    return f"agent_{letters}"


class AgentInfo(Event):
    """Who works on a run. `name` is public, `id` the config's."""

    name: str
    """Its public name, `agent_a`."""
    id: str
    """Its id in the config."""
    backend: str
    """The type of its backend."""
    model: str
    """The model as the config has it."""


class BallotEntry(Event):
    """One answer on a ballot: the neutral name the viewer sees, and the answer's label that the name stands for."""

    name: str
    """The neutral name that the viewer sees."""
    label: str
    """The label of the answer that the name stands for."""


class ShownReason(Event):
    """A reason as a later reader of the answers saw it: `name` is the neutral name of the author's present answer on
    the reader's own ballot.
    """

    name: str
    reason: str
    """The reason, as its author wrote it."""


TextKind = Literal["question", "history", "answers", "changes", "evidence", "notes"]
"""What a model is shown: the question with its comments; earlier turns and attempts; the answers with reasons of votes;
what they change; what checks and tests say; the agent's own notes.
"""


class ShortenedText(Event):
    """Texts of one kind that were shown in part, because a model's window holds no more."""

    text: TextKind
    """The kind."""
    shown: int
    """Characters that were shown."""
    of: int
    """Characters of the whole."""


class Camp(Event):
    """Answers, by label, that say the same in the voters' eyes, and the votes for all of them together."""

    answers: tuple[str, ...]
    """Labels of the answers."""
    votes: int
    """For all of them together."""


CheckObstacle = Literal["program_missing", "no_network", "read_only", "no_toolchain", "not_permitted"]
"""What keeps a check from saying anything of the code: a program, the network, a place to write to, a toolchain, or a
permission that the sandbox does not give.
"""


ChecksVerdict = Literal["passed", "failed", "nothing_checked"]
"""What the checks say of the final files: all that said something passed; some failed; none said anything."""


class WrittenTest(Event):
    """A test that an agent of the team wrote, to tell the answers apart."""

    title: str
    """What the task demands, in one sentence."""
    script: str
    """A shell script that is run on the files of each answer."""
    expected: str
    """What it prints if the files do what the task demands; spaces and lines around it do not count."""


class Claim(Event):
    """A claim or finding of an answer that was written from all answers."""

    text: str
    """The claim, in one sentence."""
    answers: tuple[str, ...]
    """Labels of the answers that it stands in."""
    contradicted_by: tuple[str, ...] = ()
    """Labels of the answers that say otherwise."""
    test: WrittenTest | None = None
    """What shows it on the unchanged files; None: no script can."""


class CheckOutcome(Event):
    """How one check came out on one state of the files: a command of the config, or a test that the team wrote."""

    command: str
    """The check, or the test's script."""
    expected: str | None = None
    """What the script of a test had to print; None: it is a check."""
    result: Literal["passed", "failed", "not_run"]
    """`not_run`: the sandbox could not start it, which says nothing of the files."""
    how: str
    """How it ended, in words: `exit code 1`."""
    code: int | None = None
    """Its exit code; None where it was ended, or did not run."""
    seconds: float
    """How long it took."""
    excerpt: str = ""
    """The lines of its output that tell why it failed, at most `checks.output.MAX_CHARACTERS`; of a pass its last."""
    tests: int | None = None
    """So many tests it ran, as it printed itself, and so code of the answer may have; None where it says nothing."""
    warnings: tuple[str, ...] = ()
    """Why a pass proves less than it seems to, in words."""
    runs: int = 1
    """So often it was run on these files."""
    flaky: bool = False
    """Whether these runs came out differently: then it failed at least once, and counts neither for nor against."""
    obstacle: CheckObstacle | None = None
    """What of the environment it looks to have failed for, and not for the code; None: nothing."""
    cure: str = ""
    """What to change so that it can run, where there is an obstacle, or it misses a file that git ignores."""

    @property
    def why(self) -> str:
        """The line that says what was not so, of a check that failed and said it; else empty."""
        return self.excerpt.partition("\n")[0] if self.result == "failed" else ""

    @property
    def speaks_against(self) -> bool:
        """Whether it fails for the files' sake, and steadily."""
        return self.result == "failed" and not self.flaky and self.obstacle is None

    def add_warnings(self, *warnings: str) -> "CheckOutcome":
        """Add warnings to a pass; another result needs none."""
        if self.result != "passed":
            return self
        return self.model_copy(update={"warnings": tuple(dict.fromkeys((*self.warnings, *warnings)))})

    def warn_if_fewer(self, base: "CheckOutcome | None") -> "CheckOutcome":
        """Add a warning to a pass in which fewer tests ran than on the unchanged files, or that tells of none."""
        if base is None or base.tests is None or (self.tests is not None and self.tests >= base.tests):
            return self
        return self.add_warnings(
            f"fewer tests ran than on the unchanged files: {self.tests or 'none'} instead of {base.tests}"
        )

    def with_another_run(self, second: "CheckOutcome") -> "CheckOutcome":
        """What one more run on the same files makes of it: flaky if it differs. One that could not run adds nothing."""
        runs = self.runs + second.runs
        if second.result == "not_run":
            return self.model_copy(update={"runs": runs})
        worse = self if self.result == "failed" else second
        return worse.model_copy(update={"runs": runs, "flaky": self.flaky or self.result != second.result})


class Usage(Event):
    """Tokens of one model call. Cached and cache-written ones are part of the input, reasoning of the output."""

    input_tokens: int = 0
    """What the model read."""
    cached_input_tokens: int = 0
    """Those of them that came from the provider's cache."""
    cache_write_tokens: int = 0
    """Those of them that were written to the provider's cache."""
    cache_write_long_tokens: int = 0
    """Those of the written ones that are kept for an hour, at a higher price."""
    output_tokens: int = 0
    """What the model wrote."""
    reasoning_tokens: int = 0
    """Those of them that were thoughts."""
    web_searches: int = 0
    """Searches that the provider ran itself; they are billed apart."""
    estimated: bool = False
    """Counted by us from the length of the texts, because the provider told no numbers (see `backends.metering`)."""
    at_least: bool = False
    """The agent told of some of its model calls only: a lower bound."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def split_cached(self) -> tuple[int, int, int]:
        """Return cached tokens, cache-written ones, and those of these that are kept for an hour. They are never more
        than the input, even if the provider says so.
        """
        cached = min(self.cached_input_tokens, self.input_tokens)
        written = min(self.cache_write_tokens, self.input_tokens - cached)
        return cached, written, min(self.cache_write_long_tokens, written)


class PriceBound(Event):
    """The highest known price, at which the calls of a model of unknown price are counted."""

    scope: Literal["family", "provider", "list"]
    """Among which models it is the highest: those of the same name but for version and date, those of the provider, or
    all that are listed."""
    of: str
    """The family's or the provider's name."""
    input_usd_per_million: float = 0.0
    """Input tokens, of a short input."""
    output_usd_per_million: float = 0.0
    """Output tokens, of a short input."""

    def __str__(self) -> str:
        what = {"family": f"a {self.of} model", "provider": f"a model from {self.of}", "list": "any listed model"}
        usd = f"${self.input_usd_per_million:g} and ${self.output_usd_per_million:g}"
        price = f"{usd} per million input and output tokens"
        return f"{price}, the highest known price of {what[self.scope]}"


class Cost(Event):
    """The cost of a model call. `usd` None: the price is unknown, which is not the same as nothing."""

    usd: float | None = None
    """US dollars; None: nobody knows a price, which is not the same as nothing."""
    source: PriceSource | None = None
    """Where the price came from."""
    bound: PriceBound | None = None
    """The price at which the call is counted, where its own is unknown."""
    saved_usd: float = 0.0
    """US dollars that the provider's cache saved, as far as prices are known: negative if it was only written."""
    discounted_tokens: int = 0
    """Cached input tokens that are not counted where they count by their price."""


class Spent(Event):
    """What calls of models cost together, those of nested runs included.

    Tokens and money of tries without a reply are in the sums, too. `usd` is the known part: a call of which nobody
    knows the price is in `unpriced_calls`, and not in `usd`.
    """

    calls: int = 0
    """Calls of models that came to a reply."""
    calls_without_usage: int = 0
    """Those whose provider told no tokens, so that theirs are our estimate."""
    partly_counted_calls: int = 0
    """Those of which an agent told a part only: their tokens are a lower bound."""
    lost_calls: int = 0
    """Tries that have to be paid for and brought no reply: cut off by us, or broken in the middle. All estimated."""
    input_tokens: int = 0
    """What models read."""
    cached_input_tokens: int = 0
    """Those of them that came from providers' caches."""
    cache_write_tokens: int = 0
    """Those of them that were written to providers' caches."""
    output_tokens: int = 0
    """What models wrote."""
    reasoning_tokens: int = 0
    """Those of them that were thoughts."""
    usd: float = 0.0
    """US dollars, as far as prices are known."""
    saved_usd: float = 0.0
    """US dollars that providers' caches saved, as far as prices are known."""
    discounted_tokens: int = 0
    """Cached input tokens that are not counted where they count by their price."""
    unpriced_calls: int = 0
    """Calls whose price nobody knows."""
    estimated_calls: int = 0
    """Calls whose price is the model's own provider's, and not that of the gateway which was asked."""
    bounded_calls: int = 0
    """Calls of unknown price, counted at the highest known price of similar models."""
    free_calls: int = 0
    """Calls of models in a private network, which cost nothing."""
    seconds: float = 0.0
    """Of all replies together."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def known_usd(self) -> float | None:
        """None when calls were made and the price of none is known."""
        priced = self.calls + self.lost_calls > self.unpriced_calls
        return self.usd if priced or not self.unpriced_calls else None

    @property
    def settled_usd(self) -> float | None:
        """The whole cost; None where the price of a call is unknown."""
        if self.unpriced_calls:
            return None
        return self.usd

    @property
    def is_free(self) -> bool:
        """True if calls were made, all of them of models in a private network."""
        return 0 < self.free_calls == self.calls + self.lost_calls

    @property
    def rounded_usd(self) -> float | None:
        """`known_usd` without the noise of adding up; nothing that anybody bills is lost."""
        return None if self.known_usd is None else round(self.known_usd, 9)

    def __add__(self, other: Self) -> Self:
        return self.model_copy(update={name: getattr(self, name) + getattr(other, name) for name in self.__dict__})


class ToolCallRecord(Event):
    """`arguments` is the JSON text as the model wrote it."""

    id: str
    """Of the call."""
    name: str
    """Of the tool."""
    arguments: str
    """The JSON text as the model wrote it."""
    form: Literal["tool_call"] | WrittenForm = "tool_call"
    """How the call was written."""


class CitationRecord(Event):
    """A page that the provider's own search found for a reply. `title` may be empty."""

    url: str
    """Its address."""
    title: str = ""
    """It may be empty."""


class ChangedFile(Event):
    """A file that an answer changes. `path` begins with the name of the directory (`NAME/src/a.py`); what is no text in
    it is escaped. `added` and `removed` are lines; None for a binary file.
    """

    path: str
    """It begins with the name of the directory (`NAME/src/a.py`); what is no text in it is escaped."""
    kind: Literal["added", "deleted", "modified", "renamed"]
    """What happened to it."""
    added: int | None = None
    """Lines; None for a binary file."""
    removed: int | None = None
    """Lines; None for a binary file."""
    earlier_path: str | None = None
    """Where a renamed file was before."""

    def __str__(self) -> str:
        renamed = f" (was {self.earlier_path})" if self.earlier_path is not None else ""
        lines = "binary" if self.added is None else f"+{self.added} -{self.removed}"
        return f"{self.kind} {self.path}{renamed} {lines}"


class Changes(Event):
    """What an answer makes of the base of the run."""

    tree: str
    """Id of the answer's own tree in the run's private repository."""
    files: tuple[ChangedFile, ...] = ()
    """The first of them, sorted by path."""
    more: int = 0
    """How many further files are changed."""
    added: int = 0
    """Lines, in all of them."""
    removed: int = 0
    """Lines, in all of them."""
    patch: str | None = None
    """The file with the whole difference, relative to the run directory; None: nothing is changed."""
    patch_bytes: int = 0
    """Size of that file."""
    notes: tuple[str, ...] = ()
    """What could not be taken, in words."""

    @property
    def count(self) -> int:
        """The number of changed files."""
        return len(self.files) + self.more

    def __str__(self) -> str:
        if not self.count:
            return "no file changed"
        files = "1 file" if self.count == 1 else f"{self.count} files"
        return f"{files} changed, +{self.added} -{self.removed} lines"


class BegunWith(Event):
    """Changes of an earlier run, not applied, that every copy begins with."""

    run_id: str
    """The earlier run."""
    agent: str
    """Whose changes they are, by the id of its config."""
    files: int
    """How many files it changed."""


class CopiedDirectory(Event):
    """A directory of the caller's that every agent has a copy of, under this name. `notes` say what is not in it."""

    name: str
    """What agents call it."""
    path: str
    """Where it is on the caller's machine."""
    writable: bool
    """Whether changes may be applied to it."""
    files: int
    """How many files were copied."""
    notes: tuple[str, ...] = ()
    """What is not in the copy."""
