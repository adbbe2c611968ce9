"""`wait_run`: the status, and when the run has ended the first page of its result instead."""

from pydantic import BaseModel

from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import Json, ResultPart, ToolReply, json_bytes, lines
from massgen_mcp.server.results.result import Result, first_page
from massgen_mcp.server.results.status import Status, status


class Progress(ResultPart):
    changed: bool
    """Whether anything has happened since `cursor`, or since the call began."""
    cursor: int
    """For the next call: the number of the last event."""


class Waited(ToolReply):
    shown: Status | Result
    progress: Progress

    def structured(self) -> Json:
        shown = self.shown.structured()
        following = shown.pop("next_step")
        return {**shown, **self.progress.model_dump(), "next_step": following}

    def text(self) -> str:
        changed = "changed" if self.progress.changed else "unchanged"
        return lines(self.shown.body(), f"{changed}, cursor {self.progress.cursor}", self.shown.next_step)

    @classmethod
    def schema_sources(cls) -> tuple[type[BaseModel], ...]:
        return (Progress, Status, Result)


def waited(view: RunView, before: int) -> Waited:
    """`before`: the number of the last event that the caller knew of."""
    seq = view.snapshot.seq
    progress = Progress(changed=seq > before or view.ended, cursor=seq)
    if not view.ended or view.damage is not None:
        return Waited(shown=status(view), progress=progress)
    return Waited(shown=first_page(view, spare=json_bytes(progress.model_dump())), progress=progress)
