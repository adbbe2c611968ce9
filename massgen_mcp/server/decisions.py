"""What a run asks its caller, as a form for the person at the client, and what the filled-in form decides.

Knows no era of the protocol: whoever asks carries the form there and the answer back.
"""

import hashlib
from dataclasses import dataclass

from mcp.types import ClientCapabilities, ElicitRequest, ElicitRequestFormParams, ElicitResult

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.run import InputRequired
from massgen_mcp.runs.engine import Action
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.plain_text import preview

QUESTION_CHARACTERS = 2_000
NO_ANSWER = "No answer: the user declined to answer. Decide yourself, and state your assumptions."
_BUDGET_ACTIONS: tuple[Action, ...] = ("raise_budget", "finish_now", "cancel")


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with the run, as `RunService.control` takes it."""

    action: Action
    message: str = ""
    value: float | None = None


def can_be_asked(capabilities: ClientCapabilities | None) -> bool:
    """Whether the client shows forms to a person. One that names no kind of elicitation shows forms."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def question_key(view: RunView) -> str | None:
    """The name of the run's open question, the same in every process and never another one's; None without one."""
    asked = view.snapshot.input_required
    if asked is None:
        return None
    caller = view.snapshot.caller
    facts = "\0".join([asked.kind, asked.agent or "", asked.text, str(len(caller.decisions)), str(len(caller.raises))])
    return f"{asked.kind}-{hashlib.blake2b(facts.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def form_of(view: RunView) -> ElicitRequest:
    """The run's open question. Raises `ValueError` without one."""
    asked = view.snapshot.input_required
    if asked is None:
        raise ValueError("the run has no open question")
    run = f"Team run {view.row.run_id} ({preview(view.snapshot.question, 100)})"
    if asked.kind == "budget_reached":
        cap = view.max_usd or 0.0
        message = f"{run} has reached its budget of {cap:g} US dollars: {_question(asked)}."
        properties: dict[str, object] = {
            "decision": {
                "type": "string",
                "title": "Decision",
                "enum": list(_BUDGET_ACTIONS),
                "enumNames": ["Continue with a larger budget", "Decide with the existing answers", "Stop the run"],
            },
            "max_usd": {
                "type": "number",
                "title": "New budget in US dollars",
                "description": f"To continue the run, enter a new total budget of more than {cap:g}.",
                "default": 2 * cap,
            },
        }
        required = ["decision"]
    else:
        message = f"{run}: {asked.agent or 'the run'} asks: {_question(asked)}"
        properties = {"answer": {"type": "string", "title": "Answer", "minLength": 1}}
        required = ["answer"]
    schema = {"type": "object", "properties": properties, "required": required}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def build_raise_form(view: RunView, value: float) -> ElicitRequest:
    """Return the question whether the run may spend up to `value` US dollars. To accept the form is to agree."""
    run = f"Team run {view.row.run_id} ({preview(view.snapshot.question, 100)})"
    message = f"{run}: raise its budget to ${value:g}? Current budget: ${view.max_usd or 0:g}."
    schema: dict[str, object] = {"type": "object", "properties": {}}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def is_raise_form(params: object) -> bool:
    return isinstance(params, ElicitRequestFormParams) and not params.requested_schema.get("properties")


def decision_in(view: RunView, filled_in: ElicitResult) -> Decision | None:
    """What the person decided; None where they declined. Raises `MassgenError` invalid_arguments."""
    asked = view.snapshot.input_required
    if asked is None or filled_in.action != "accept":
        return None
    content = filled_in.content or {}
    if asked.kind != "budget_reached":
        answer = content.get("answer")
        if not isinstance(answer, str):
            raise MassgenError("invalid_arguments", "the form needs an `answer` as text")
        return Decision("answer", message=answer)
    chosen, value = content.get("decision"), content.get("max_usd")
    action: Action | None = next((one for one in _BUDGET_ACTIONS if one == chosen), None)
    if action is None:
        raise MassgenError("invalid_arguments", f"the form needs a `decision`, one of: {', '.join(_BUDGET_ACTIONS)}")
    if action != "raise_budget":
        return Decision(action)
    return Decision(action, value=value if isinstance(value, int | float) and not isinstance(value, bool) else None)


def undecided(view: RunView) -> Decision | None:
    """What is done where the person decided nothing and nobody else is there to decide; None without a question."""
    asked = view.snapshot.input_required
    if asked is None:
        return None
    return Decision("finish_now") if asked.kind == "budget_reached" else Decision("answer", message=NO_ANSWER)


def _question(asked: InputRequired) -> str:
    return preview(asked.text, QUESTION_CHARACTERS)
