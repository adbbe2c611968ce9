"""What happens between agents: answers, checks and votes, until a winner writes the final answer."""

from typing import Literal

from massgen_mcp.errors import DropReason, LimitKey
from massgen_mcp.events.parts import (
    Camp,
    Challenge,
    Changes,
    CheckOutcome,
    Claim,
    Event,
    Outcome,
    ShortenedText,
    StageKind,
    StageReason,
    WrittenForm,
    WrittenTest,
)

ActionForm = Literal["tool_call", "text", "vote_line"] | WrittenForm
"""How a model acted: by calling a tool, by a call written as text, by plain text taken as its answer, or by a line such
as `vote: agent2`.
"""


class AnswerSubmitted(Event):
    """A new answer stands. It voids every standing vote, since no voter had seen it."""

    type: Literal["answer_submitted"] = "answer_submitted"
    agent: str
    label: str
    content: str
    """The answer."""
    based_on_revision: int
    """The revision of the ballot that its author saw."""
    revision: int
    """The revision of the ballot with it."""
    voided_votes: tuple[str, ...] = ()
    """The agents whose votes were voided."""
    path: str | None = None
    """Directory of the answer, relative to the run directory."""
    form: ActionForm = "tool_call"
    changes: Changes | None = None
    """What it changes of the caller's files. None: the run has no base."""
    claims: tuple[Claim, ...] | None = None
    """Of an answer that was written from all answers: what it claims; of findings one for each, in their order."""


class VoteCast(Event):
    """An agent voted. `label` is the answer that stood under the chosen name on the ballot that the voter saw."""

    type: Literal["vote_cast"] = "vote_cast"
    agent: str
    label: str
    reason: str
    """Why, in the voter's words."""
    revision: int
    """The revision of the ballot that the voter saw."""
    same_as: tuple[str, ...] | None = None
    """Labels of the other answers that say the same as `label`, as the voter sees it. None: it did not say."""
    run_off: bool = False
    """It was cast in a run-off; the agent's vote before that stands beside it."""
    form: ActionForm = "tool_call"
    constrained: bool = False
    """The voter's model takes no tools: its server may have held it to a choice, and `same_as` is found by the words of
    the answers. Such votes alone are no consensus, unless all answers have the same words, numbers or files."""
    repeated: bool = False
    """The voter's model wrote its own answer once more, word for word, when it was asked to choose. Where all standing
    votes are such, no agent has chosen: the voters are dropped, and answers that agree decide."""


class WinnerChosen(Event):
    """Coordination is over. `votes` counts standing votes by answer label."""

    type: Literal["winner_chosen"] = "winner_chosen"
    agent: str
    label: str
    """The label of its answer."""
    outcome: Outcome
    votes: dict[str, int]
    """Standing votes by label."""
    early: bool = False
    """Decided although live agents that had answered had not voted."""
    camps: tuple[Camp, ...] = ()
    """The standing answers by what they say, in the order of the config. Empty in journals of before there were any."""
    run_off: dict[str, int] | None = None
    """Votes of the run-off, by label of its candidates; None: there was none."""
    drawn: tuple[str, ...] = ()
    """The labels of the answers that are equal in all that decides. The one that `label` names stands for all of them:
    they say the same, have the same files, or are tied. Empty: votes, or something else, told them apart."""
    judge: str | None = None
    """The agent that judged last between the answers that were tied after a run-off; None: none did."""
    agreeing: tuple[str, ...] = ()
    """The labels of the answers that say the same by text, numbers or files, where no agent was left to vote and these
    are more than half of what was asked for. Empty: something else decided."""
    asked: int | None = None
    """So many agents were asked for an answer; None: all at once."""
    of: int | None = None
    """So many would have been asked at most."""
    excluded: tuple[str, ...] = ()
    """The labels of answers that could not win, because they fail checks that another one passes."""
    challenge: Challenge | None = None
    """What came of scripts against it; None: none were to be written, or tests had decided."""


class StageOpened(Event):
    """From now on `agents` do one thing, for the answers `subjects`. Answers are accepted only if it asks for them.

    A run-off (`tied`) is a vote among the most voted answers of the tied camps, one of each, by the live agents that
    wrote no answer of a tied camp, or, where there are none, by all live agents.
    """

    type: Literal["stage_opened"] = "stage_opened"
    kind: StageKind
    """What the agents do."""
    subjects: tuple[str, ...]
    """Labels of the answers that it is about."""
    agents: tuple[str, ...]
    """The agents that are asked."""
    because: StageReason
    """Why it is opened."""
    camps: tuple[Camp, ...] = ()
    """In a run-off: all camps, tied or not."""
    lead: int = 0
    """So many answers say what most of them do, as far as was known."""
    rival: int = 0
    """So many say what the second most do."""
    left: int = 0
    """So many agents may be asked for an answer after these."""
    by_fallback: bool = False
    """The model of the agent's fallback does it, because the model of no other agent is from a vendor that neither of
    the two answers comes from. The fallback's vendor is that of both or of neither.
    """
    elected: WinnerChosen | None = None
    """In a challenge (`refute`, `settle`, `revise`): the winner, as far as it stands."""


class WrittenTestsSubmitted(Event):
    """An agent wrote tests that tell the answers apart, which never judge its own answer; or tests against the winner;
    or it said, without seeing an answer, what those have to print; or before anybody answered the one or the other of a
    test that fails on the unchanged files.
    """

    type: Literal["written_tests_submitted"] = "written_tests_submitted"
    agent: str
    tests: tuple[WrittenTest, ...]
    """At most three."""
    form: ActionForm = "tool_call"


class CheckFinished(Event):
    """A check or a test has run. The same files (`tree`) are not put to it again in this run, but to run it twice."""

    type: Literal["check_finished"] = "check_finished"
    tree: str
    """Id of the files by their content."""
    outcome: CheckOutcome
    """How it came out."""


class FilesChecked(Event):
    """All checks have run on the base, on the files of an answer, on those of the final answer, or on those that a
    dropped agent left unfinished.
    """

    type: Literal["files_checked"] = "files_checked"
    subject: Literal["base", "answer", "final", "unfinished"]
    """What was checked."""
    agent: str | None = None
    """Whose files; None for the base."""
    label: str | None = None
    """Of the answer."""
    outcomes: tuple[CheckOutcome, ...] = ()
    """In the order of the config. Empty: the files are those of the base, or could not be checked (`problem`)."""
    fails_before: tuple[str, ...] = ()
    """The commands that did not pass on the base."""
    restored: tuple[str, ...] = ()
    """Protected files that the answer changed, by path: they were checked as they are in the base."""
    own: tuple[CheckOutcome, ...] = ()
    """Where there are such: how the checks come out with the answer's versions of them."""
    problem: str = ""
    """Why the files could not be checked. Nobody is blamed for it."""
    unfollowed: tuple[str, ...] = ()
    """Of the base: what scripts of the checks load that is not put back, in words."""


class FirstAnswersClosed(Event):
    """Agents that have answered no longer wait for the others' first answers."""

    type: Literal["first_answers_closed"] = "first_answers_closed"
    awaited: tuple[str, ...]
    """The agents that are not waited for any more. An answer still counts when it comes before the winner is chosen, if
    the budget has room for the votes that it costs.
    """


class AgentDropped(Event):
    """An agent takes no further part; its answers stay."""

    type: Literal["agent_dropped"] = "agent_dropped"
    agent: str
    reason: DropReason
    message: str
    changes: Changes | None = None
    """What its copies of the caller's files held then, if that is more than its last answer. None: it is not."""
    limit: LimitKey | None = None
    """The limit that it met, if it met one that no other reason tells."""


class ModelReplaced(Event):
    """An agent's own model was ended by a quota, a balance or an outage; its fallback goes on with its work."""

    type: Literal["model_replaced"] = "model_replaced"
    agent: str
    reason: DropReason
    message: str
    """How the agent's own model failed."""
    backend: str
    """The type of the fallback's backend."""
    model: str
    """The model that goes on."""


class PresentationStarted(Event):
    """The winner begins to write the final answer."""

    type: Literal["presentation_started"] = "presentation_started"
    agent: str
    heard: int = 0
    """How many of the caller's messages it is written with."""
    opening: str = ""
    nonce: str = ""
    """As in `RoundStarted`."""
    most: int | None = None
    """As in `RoundStarted`."""
    task: str = ""
    """As in `RoundStarted`."""
    shortened: tuple[ShortenedText, ...] = ()
    """As in `RoundStarted`."""


class AnswerPresented(Event):
    """An attempt's final answer, as the winner wrote it, or (`reused`) as it stood; in a tie the tied answers, as they
    stood.
    """

    type: Literal["answer_presented"] = "answer_presented"
    agent: str
    answer: str
    """The final answer."""
    reused: bool = False
    """Whether it is an answer as it stood, or the tied ones."""
    changes: Changes | None = None
    """As in `RunCompleted`."""


class AnswerEvaluated(Event):
    """The winner's judgement of its own final answer. A judgement that failed counts as content, and says so."""

    type: Literal["answer_evaluated"] = "answer_evaluated"
    agent: str
    sufficient: bool
    """Whether it is good enough."""
    reason: str
    """Why."""
    instructions: str = ""
    """What a further attempt is to do."""


class PresentationFailed(Event):
    """The winner could not write the final answer; its latest answer is used instead."""

    type: Literal["presentation_failed"] = "presentation_failed"
    agent: str
    reason: DropReason
    message: str


CoordinationEvent = (
    AnswerSubmitted
    | VoteCast
    | StageOpened
    | WrittenTestsSubmitted
    | CheckFinished
    | FilesChecked
    | FirstAnswersClosed
    | AgentDropped
    | ModelReplaced
    | WinnerChosen
    | PresentationStarted
    | AnswerPresented
    | AnswerEvaluated
    | PresentationFailed
)
