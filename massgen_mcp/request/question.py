"""What may be asked, and what was asked before: texts of a caller, held against their limits; earlier turns. Pure."""

from pydantic import BaseModel

from massgen_mcp.errors import MassgenError

MAX_QUESTION_CHARACTERS = 1_000_000


def check_question(question: str) -> None:
    """Raises `MassgenError` invalid_arguments for a question that no model could be asked."""
    if not question.strip():
        raise MassgenError("invalid_arguments", "the question is empty")
    if len(question) > MAX_QUESTION_CHARACTERS:
        raise MassgenError(
            "invalid_arguments",
            f"the question has {len(question)} characters; the limit is {MAX_QUESTION_CHARACTERS}. "
            "Put long texts in files and list the files in context_paths",
        )
    check_text("the question", question)


def check_text(what: str, text: str) -> None:
    if not is_unicode(text):
        raise MassgenError("invalid_arguments", f"{what} isn't valid Unicode text; use UTF-8")


def is_unicode(text: str) -> bool:
    """Whether the text can be stored: half of a surrogate pair, as for a byte that was no UTF-8, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class EarlierTurn(BaseModel, frozen=True, defer_build=True, extra="forbid", hide_input_in_errors=True):
    """A turn of the same session that has ended: what was asked, and the final answer."""

    question: str
    """What was asked."""
    answer: str
    """The final answer."""
    opening: str = ""
    """The nonce around its question; the next turn keeps it, so that a provider's cache knows the conversation."""
