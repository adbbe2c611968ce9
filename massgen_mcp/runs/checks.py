"""What a caller may ask of a run: questions, texts and controls, held against their limits. Stores and asks nothing."""

from massgen_mcp.config.models import MAX_USD
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.engine.rows import Action
from massgen_mcp.runs.run_view import RunView

MAX_QUESTION_CHARACTERS = 1_000_000
MAX_MESSAGE_CHARACTERS = 20_000


def check_question(question: str) -> None:
    """Raises `MassgenError` invalid_arguments for a question that no model could be asked."""
    if not question.strip():
        raise MassgenError("invalid_arguments", "the question is empty")
    if len(question) > MAX_QUESTION_CHARACTERS:
        raise MassgenError(
            "invalid_arguments",
            f"the question has {len(question)} characters, at most {MAX_QUESTION_CHARACTERS} are allowed; "
            "put large material into files and name them in context_paths",
        )
    check_text("the question", question)


def check_text(what: str, text: str) -> None:
    if not is_unicode(text):
        raise MassgenError("invalid_arguments", f"{what} is not valid Unicode text")


def is_unicode(text: str) -> bool:
    """Whether the text can be stored: half of a surrogate pair, as for a byte that was no UTF-8, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_action(view: RunView, action: Action, message: str) -> None:
    if action in ("steer", "answer"):
        if not message.strip():
            raise MassgenError("invalid_arguments", f"{action} needs a `message`")
        if len(message) > MAX_MESSAGE_CHARACTERS:
            raise MassgenError("invalid_arguments", f"`message` has more than {MAX_MESSAGE_CHARACTERS} characters")
        check_text("message", message)
        if view.ended:
            raise MassgenError("invalid_action", f"run {view.row.run_id} is {view.state}; it hears nothing any more")
    if action == "answer" and view.snapshot.input_required is None:
        raise MassgenError("invalid_action", f"run {view.row.run_id} is {view.state} and asks nothing; use steer")
    asked = view.snapshot.input_required
    if action == "answer" and asked is not None and asked.kind == "budget_reached":
        raise MassgenError("invalid_action", "the run waits for its budget: use raise_budget, finish_now or cancel")


def checked_raise(view: RunView, value: float | None) -> str:
    """The new cap as it is stored. Raises `MassgenError` where it would raise nothing."""
    if view.ended:
        raise MassgenError("invalid_action", f"run {view.row.run_id} is {view.state}; it spends nothing any more")
    cap = view.snapshot.max_usd or 0.0
    if value is None or not cap < value <= MAX_USD:
        told = f"raise_budget needs a `value` above the cap of {cap:g} US dollars, at most {MAX_USD:g}"
        raise MassgenError("invalid_arguments", told)
    return repr(value)
