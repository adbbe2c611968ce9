"""What the page of a run is given to draw: one model, whoever draws it and wherever it comes from.

Times are seconds since the run began. Texts of models, tools and people are in it as they were written: whoever draws
them has to show them as text. An amount of money is in words, so that an unknown one cannot be taken for nothing.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from massgen_mcp.events.parts import ChangedFile
from massgen_mcp.run_state.status import RunStatus

CallEnd = Literal["replied", "failed", "stopped", "lost", "open"]
"""How a model call ended. `lost`: with the process that waited for it; `open`: it has not ended."""

PagePhase = Literal[
    "First answers", "Reading, improving, voting", "Final answer", "Judging it", "Making room", "Nested runs"
]

MomentKind = Literal["answer", "vote", "failure", "steering", "step"]
"""What a moment is about. `failure`: something went wrong or was refused; `steering`: a word of or for the caller."""


PageTone = Literal["good", "bad", "busy"]
"""How a state is to be taken."""

CallerAction = Literal["answer", "steer", "raise_budget", "finish_now", "cancel", "resume", "apply"]
"""What a caller can do with a run: by `control_run`, and by `apply_result`."""


class PagePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Text(PagePart):
    """Something that somebody wrote. `left_out`: so many characters of it are not here."""

    text: str
    left_out: int = 0


class Lane(PagePart):
    """One agent. `name` is the one in the records, `id` the config's."""

    name: str
    id: str
    model: str
    dropped: str = ""
    """Why it takes part no more."""
    dropped_at: float | None = None
    author: bool = False
    """It wrote the answer that the run ended with."""
    changed: str = ""
    """What it made of the caller's files last, in words; empty: nothing."""


class PageModelCall(PagePart):
    """A model call. `say`: how it ended, in words."""

    agent: str
    start: float
    end: float
    phase: PagePhase
    ended: CallEnd
    say: str


class PageToolCall(PagePart):
    """A tool that ran for an agent. `shown`: what it was to do, where that is known."""

    agent: str
    start: float
    end: float
    name: str
    shown: str
    failed: bool


class PageChanges(PagePart):
    """What an answer, or the run, makes of the caller's files."""

    say: str
    """How many files and lines, in words."""
    files: tuple[ChangedFile, ...]
    more: int
    """How many further files are changed."""
    notes: tuple[str, ...]
    """What could not be taken, in words."""
    patch: str | None
    """Its key in `RunPage.patches`; None: nothing is changed."""


CheckResult = Literal["passed", "failed", "not_run"]


class PageCheck(PagePart):
    """How one check came out on some files."""

    command: str
    result: CheckResult
    how: str
    """How it ended, in words: `exit code 1`."""
    seconds: float
    lines: Text | None
    """Of its output: those that tell why it failed, the last ones of a pass."""
    failed_before: bool
    """It did not pass on the unchanged files either."""
    own: CheckResult | None
    """How it came out with the answer's own versions of protected files, where it changed such."""
    flaky: bool
    """It passed and failed on the same files."""
    tests: int | None
    """So many ran, as far as its output tells."""
    warnings: tuple[str, ...]
    """Why a pass proves less than it seems to."""
    cure: str
    """What helps where it failed for the environment; else empty."""


class Checked(PagePart):
    """What the checks said of the unchanged files (`base`), of those of an answer, of the final ones, or of those that
    a dropped agent left (`unfinished`).
    """

    subject: Literal["base", "answer", "final", "unfinished"]
    agent: str | None
    answer: str | None
    """Key of the answer."""
    checks: tuple[PageCheck, ...]
    """Empty: nothing is changed in the files, or they could not be checked (`problem`)."""
    restored: tuple[str, ...]
    """Protected files that were changed: they were checked as they are in the base."""
    problem: str


class Checks(PagePart):
    """`policy`: what follows from them, in words; `decided`: what did follow."""

    policy: str
    decided: tuple[str, ...]
    checked: tuple[Checked, ...]
    """The unchanged files first, the others in the order of time."""


class PageTest(PagePart):
    """A test that an agent of the team wrote. Answers by key."""

    by: str
    title: str
    script: Text
    expected: Text
    """What it has to print."""
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    void: str
    """Why it does not count; empty where it does."""


class Tests(PagePart):
    """`say`: what to know of all of them, in words."""

    say: tuple[str, ...]
    tests: tuple[PageTest, ...]


class CheckRun(PagePart):
    """A check while it ran. `agent`: whose files it judged; None: the unchanged ones, or nobody knows yet."""

    agent: str | None
    start: float
    end: float
    result: CheckResult
    say: str


class Answer(PagePart):
    """`key` tells it from every other answer of the run; a label is used again by a further attempt."""

    key: str
    label: str
    agent: str
    at: float
    text: Text
    earlier: str | None = None
    """Key of the same agent's answer before it."""
    won: bool = False
    changes: PageChanges | None
    """None: the run has no copies of the caller's files."""


class PageVote(PagePart):
    """`answer`: key of the answer it was cast for. `void_at`: when something made it void."""

    agent: str
    answer: str
    at: float
    reason: Text
    void_at: float | None = None
    changed_from: str | None = None
    """Key of the answer that the same agent voted for before, where that was somebody else's."""
    run_off: bool
    stands: bool
    """It is counted now."""
    dissent: bool
    """It stands, and is for an answer that says something else than the winner's."""


class PageMoment(PagePart):
    """One thing that happened, in a plain sentence. `detail`: the beginning of what was written with it."""

    at: float
    agent: str | None
    say: str
    detail: str
    kind: MomentKind


class Doing(PagePart):
    """What an agent is doing at this moment, in a few words, and the newest line that it wrote."""

    agent: str
    what: str
    line: str = ""


class ShownAnswer(PagePart):
    """`name` is the neutral one that the viewer saw."""

    name: str
    answer: str


class PagePrompt(PagePart):
    """What an agent was sent at one moment besides the question."""

    at: float
    agent: str
    what: str
    ballot: tuple[ShownAnswer, ...] = ()
    texts: tuple[Text, ...] = ()
    """Reasons of votes, messages of the caller, and notes of the team, as far as they were shown."""


class Sum(PagePart):
    """What was spent on one agent, model or phase. `share`: of the largest one, from 0 to 1."""

    name: str
    calls: int
    tokens: str
    cost: str
    share: float


class Sums(PagePart):
    """`measure`: what the shares are of; tokens, where the price of a call is unknown."""

    measure: Literal["cost", "tokens"]
    by_agent: tuple[Sum, ...]
    by_model: tuple[Sum, ...]
    by_phase: tuple[Sum, ...]
    notes: tuple[str, ...]


class TimeLinePlace(PagePart):
    """`place`, from 0 to 1, is where the time `at` lies on the time line; between two of them it lies in proportion."""

    at: float
    place: float


class TimeLine(PagePart):
    """`idle`: stretches in which nobody worked, drawn shorter than they were."""

    end: float
    places: tuple[TimeLinePlace, ...]
    idle: tuple[tuple[float, float], ...]


class Nested(PagePart):
    """A run that was started inside this one. `run`: it as a page of its own, where its record can be read."""

    run_id: str
    agent: str | None
    start: float
    end: float | None
    state: str
    say: str
    run: "RunPage | None" = None


class RunPage(PagePart):
    run_id: str
    state: RunStatus
    tone: PageTone
    ended: bool
    actions: tuple[CallerAction, ...]
    """What its caller can do with it as it stands, in this order."""
    max_usd: float | None
    """The cap of its cost as it stands; None where it has none."""
    started_at: float | None
    """Seconds since the epoch."""
    question: Text
    headline: str
    """How it stands, or its outcome as a sentence."""
    cautions: tuple[str, ...]
    """What a reader must know besides, a sentence each."""
    facts: tuple[str, ...]
    story: str
    """What the team is at, in a sentence; empty once the run has ended."""
    reason: Text | None
    """Why it ended otherwise than completed, or what it asks."""
    helps: tuple[str, ...]
    """What helps against what failed."""
    answer: Text | None
    """The final answer, or else the best one that it ended with."""
    final: bool
    """The answer is the final one of a completed run."""
    decided_at: float | None
    decided: tuple[str, ...]
    """What decided beyond the votes."""
    agents: tuple[Lane, ...]
    time_line: TimeLine
    calls: tuple[PageModelCall, ...]
    tools: tuple[PageToolCall, ...]
    answers: tuple[Answer, ...]
    votes: tuple[PageVote, ...]
    moments: tuple[PageMoment, ...]
    shown: tuple[PagePrompt, ...]
    sums: Sums
    nested: tuple[Nested, ...]
    changes: PageChanges | None
    """What the run makes of the caller's files; as in `Answer`."""
    applied_at: float | None = None
    """When they were applied to those files, in seconds since the epoch; None: they are not."""
    patches: dict[str, Text]
    """Unified diffs by key; answers with the same files share one."""
    checks: Checks | None
    """None: the run has none."""
    tests: Tests | None
    """Those that the team wrote about each other's answers; None: it wrote none."""
    check_runs: tuple[CheckRun, ...]
    doing: tuple[Doing, ...] = ()
    """Of each agent, while the run goes on and is watched; a page that stays has none."""
    notes: tuple[str, ...]
    """What is left out here."""
    redacted: bool
    """The texts are left out on purpose."""
