"""What a run and its caller have to say to each other."""

from dataclasses import dataclass, field

from massgen_mcp.events.run import BudgetRaised, CallerMessage, InputGiven, InputRequired


@dataclass
class Caller:
    """Mutable while being folded; treat it as read-only."""

    asked: InputRequired | None = None
    """What the caller has to decide before the run continues."""
    questions: int = 0
    """Number of times that the caller had to decide, the open question included."""
    decisions: dict[tuple[str | None, str], str] = field(default_factory=dict[tuple[str | None, str], str])
    """What the caller decided, by the agent that asked and its question."""
    by_control: dict[int, str] = field(default_factory=dict[int, str])
    """The caller's messages to the team, by the number of the control, in order."""
    raises: set[int] = field(default_factory=set[int])
    """The numbers of the controls that raised the budget."""

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(self.by_control.values())

    def carried_out(self, control: int) -> bool:
        """Whether the control of this number, a message or a raise of the budget, has been carried out."""
        return control in self.by_control or control in self.raises

    def apply(self, event: CallerMessage | BudgetRaised | InputRequired | InputGiven) -> None:
        """Fold one more event in."""
        match event:
            case CallerMessage():
                self.by_control[event.control] = event.message
            case BudgetRaised():
                self.raises.add(event.control)
                if self.asked is not None and self.asked.kind == "budget_reached":
                    self.asked = None  # a kill may have come before `InputGiven`
            case InputRequired():
                self.questions += 1
                self.asked = event
            case InputGiven():
                if self.asked is not None:
                    self.decisions[self.asked.agent, self.asked.text] = event.text
                self.asked = None
