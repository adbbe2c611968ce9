"""Notices to an agent about what it has left. They stay in its conversation, because a provider's cache serves only
what never changes; so each is given again only when much less is left. Pure.
"""

from dataclasses import dataclass

from massgen_mcp.orchestration import prompts

WARNED_STEPS = 5
"""So many replies before the last one an agent is told how many there are."""
WARNED_SHARE = 0.6
"""Of the budget, when that is gone; at 0.8 no answer is begun any more."""
WARNED_FAILURES = 3
"""After the same failing call so many times in a row an agent is told to try something else."""
_SHARE_AGAIN = 0.05
_SECONDS_AGAIN = 0.6


@dataclass(frozen=True, slots=True)
class Remainder:
    """The rest of an agent's limits. `seconds` None: enough. `share`: of the budget, that is gone. `missing`: servers
    of tools that do not answer. `failures`: how often the tool `failing` was called with the same arguments and failed,
    in a row.
    """

    steps: int
    seconds: float | None = None
    share: float = 0.0
    missing: tuple[str, ...] = ()
    failing: str = ""
    failures: int = 0


@dataclass(slots=True)
class Notices:
    """The notices of one conversation."""

    seconds: float | None = None
    share: float = 0.0
    missing: tuple[str, ...] = ()

    def get_due(self, rest: Remainder) -> str:
        """The text of what should be said now; empty for nothing."""
        notes: list[str] = []
        if rest.steps == 1:
            notes.append(prompts.LAST_STEP)
        elif rest.steps <= WARNED_STEPS:
            notes.append(prompts.LAST_STEPS.format(left=rest.steps))
        if rest.failures >= WARNED_FAILURES:
            notes.append(prompts.SAME_FAILURE.format(name=rest.failing, times=rest.failures))
        if rest.seconds is not None and self._is_much_less(rest.seconds):
            notes.append(prompts.LAST_SECONDS.format(seconds=f"{max(0.0, rest.seconds):.0f}"))
        if self._is_much_more(rest.share):
            notes.append(prompts.LAST_MONEY.format(percent=f"{rest.share:.0%}"))
        if rest.missing and rest.missing != self.missing:
            notes.append(prompts.MISSING_SERVERS.format(names=", ".join(rest.missing)))
        return " ".join(notes)

    def remember(self, rest: Remainder) -> None:
        """Take it that what was due has been said."""
        if rest.seconds is not None and self._is_much_less(rest.seconds):
            self.seconds = rest.seconds
        if self._is_much_more(rest.share):
            self.share = rest.share
        self.missing = rest.missing

    def _is_much_less(self, seconds: float) -> bool:
        return self.seconds is None or seconds <= _SECONDS_AGAIN * self.seconds

    def _is_much_more(self, share: float) -> bool:
        return share >= max(WARNED_SHARE, self.share + _SHARE_AGAIN)
