"""A backend that plays a script, and asks nobody."""

from typing import Any, Literal

from pydantic import Field, model_validator

from massgen_mcp.config.models.backend_base import Price, PricedBackendConfig
from massgen_mcp.config.models.common import ModelName, Settings


class ScriptStep(Settings, frozen=True):
    """One model call of a scripted agent. Exactly one of `answer`, `vote`, `say`, `call`, `fail` and `hang` is set."""

    answer: str | None = None
    """Submit this text with `new_answer`."""
    vote: str | None = None
    """Vote for the answer whose text contains this, or for `own`, `first` or `last` on the ballot."""
    reason: str = "It answers the question best."
    """With `vote`: the reason that is given."""
    same_as: tuple[str, ...] | None = None
    """With `vote`: the other answers that say the same, each named like the one that is voted for."""
    say: str | None = None
    """Reply with text and no tool call: the final answer in a presentation, a rule violation elsewhere."""
    call: str | None = None
    """Call the tool of this name."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """With `call`: the arguments of the call."""
    fail: (
        Literal[
            "auth",
            "quota_exhausted",
            "rate_limited",
            "model_not_found",
            "unreachable",
            "provider_error",
            "broken_stream",
        ]
        | None
    ) = None
    """Fail as a provider would."""
    hang: bool = False
    """Never answer."""
    delay_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Wait this long before the step."""

    @model_validator(mode="after")
    def _exactly_one_action(self) -> "ScriptStep":
        chosen = [name for name in ("answer", "vote", "say", "call", "fail") if getattr(self, name) is not None]
        if len(chosen) + self.hang != 1:
            raise ValueError("a script step has exactly one of: answer, vote, say, call, fail, hang")
        return self


class ScriptedBackendConfig(PricedBackendConfig, frozen=True):
    """A deterministic stand-in for a model, for demos, tests and documentation. It calls nobody."""

    type: Literal["scripted"]
    """Calls nobody."""
    model: ModelName = "scripted"
    """The name that is shown as its model."""
    price: Price | None = Price(input_usd_per_million=0, output_usd_per_million=0)
    """It calls nobody. `null`: as if nobody knew the price."""
    script: tuple[ScriptStep, ...] = ()
    """Worked off one step per model call. When it is used up, or empty, the agent answers once, writes no tests,
    or its answer from all, votes for the answer that comes first in alphabetical order, and presents its own answer.
    """
    presentation: str | None = None
    """What a winner writes as the final answer; without it the winner repeats its latest answer."""
    chunk_delay_seconds: float = Field(default=0.0, ge=0, le=60)
    """Pause between streamed pieces of text, so that a demo looks alive."""
