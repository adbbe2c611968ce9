"""What readers of answers are shown of the files that each changes: the list, and how each file's difference begins.

Made of what an answer's event and its kept patch hold, so that a resumed round shows the same.
"""

from collections.abc import Iterable, Mapping

from massgen_mcp.events.parts import BallotEntry, Changes
from massgen_mcp.orchestration.answer_store import AnswerStore
from massgen_mcp.orchestration.live_run import LiveRun

MAX_SHOWN_BYTES = 24_000
"""Of the differences of all answers together; each has an equal part of it, and in that each file."""
MAX_FILES = 40
"""Of each answer, by name."""


def shown_changes(live_run: LiveRun, entries: Iterable[BallotEntry], store: AnswerStore) -> Mapping[str, str]:
    """By the neutral name of each answer. Empty where the run has no base."""
    by_label = {answer.label: answer.changes for answer in live_run.state.answers}  # the last of a label is meant
    changes = {entry.name: found for entry in entries if (found := by_label.get(entry.label)) is not None}
    changing = sum(1 for one in changes.values() if one.patch is not None)
    part = MAX_SHOWN_BYTES // max(1, changing)
    return {name: _shown(name, one, store.patch(one, part)) for name, one in changes.items()}


def _shown(name: str, changes: Changes, patch: str) -> str:
    notes = [f"({note})" for note in changes.notes]
    if not changes.count:
        return "\n".join(["No file is changed.", *notes])
    files = [str(file) for file in changes.files[:MAX_FILES]]
    further = changes.count - len(files)
    lines = [f"{changes}:", *files, *([f"and {further} more"] if further else []), *notes, "", patch.rstrip()]
    if changes.patch_bytes > len(patch.encode()):
        lines.append(f"[cut here; all {changes.patch_bytes:,} bytes are in peers/{name}/changes.patch]")
    return "\n".join(lines)
