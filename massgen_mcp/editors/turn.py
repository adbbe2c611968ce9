"""One turn of an editor: its prompt as the question of a run, and the run as the editor is told of it, with its story
and stages while it goes on, the answer, and the changes as one edit that the person allows or not. The run is the
store's; nothing of it depends on the editor.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.run import InputRequired
from massgen_mcp.json_rpc import AgentRefused, JsonRpcConnection, fields
from massgen_mcp.markers import marked
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import Phase
from massgen_mcp.runs.patches.application import Application
from massgen_mcp.runs.patches.applying import ApplyRequest
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.decisions import Decision, undecided
from massgen_mcp.server.results import Ways, applied
from massgen_mcp.server.results.words import reason_of
from massgen_mcp.views.ending import helps, outcome_line
from massgen_mcp.views.event_lines import spoken_line
from massgen_mcp.views.firmness import cautions
from massgen_mcp.views.names import name_agent
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.styled import text_of

STAGES: Mapping[Phase, str] = {
    "answering": "Each agent answers",
    "voting": "Agents read each other's answers, improve their own and vote",
    "presenting": "The winner writes the final answer",
}
STATUS = ("in_progress", "pending")
APPLY, GO_ON, LEAVE = "apply", "go_on", "leave"
OFFERS = {
    APPLY: ("Apply", "allow_once"),
    GO_ON: ("Not yet: continue from these changes with my next prompt", "reject_once"),
    LEAVE: ("Leave my files unchanged", "reject_once"),
}
WAYS = Ways(
    "Allow the changes in the editor.",
    "Prompt again, or apply the changes by hand: `massgen result --view diff` shows them.",
)


class Turn:
    """What is told goes to `session_id` at the other end of `connection`. `applies`: changes are offered to the
    person.
    """

    def __init__(self, service: RunService, connection: JsonRpcConnection, session_id: str, *, applies: bool) -> None:
        self._service, self._connection, self._session_id = service, connection, session_id
        self._applies = applies
        self._run_id: str | None = None
        self._seen = 0
        self._plan: list[dict[str, str]] = []
        self._asking: anyio.CancelScope | None = None
        self.cancelled = False
        self.goes_on = False
        """Whether the next turn begins with what this one changed and nobody applied."""

    async def cancel(self) -> None:
        """Have the run ended; also one that is only about to begin."""
        self.cancelled = True
        if self._asking is not None:
            self._asking.cancel()
        if self._run_id is not None:
            await self._service.control(self._run_id, "cancel")

    async def follow(self, run_id: str) -> None:
        """Until the run has ended, or needs an answer that the next prompt may give."""
        self._run_id = run_id
        if self.cancelled:
            await self.cancel()
        while True:
            view = await self._followed(run_id)
            asked = view.snapshot.input_required
            if asked is None or asked.kind != "budget_reached" or self.cancelled:
                break
            decision = await self._budget(view, asked)
            await self._service.control(run_id, decision.action, decision.message, decision.value)
        if view.ended:
            await self.ended(view)
            await self._offer(view)
        elif asked is not None:
            who = name_agent(view.snapshot, asked.agent) if asked.agent else "The team"
            await self.say(f"{who} asks: {asked.text}\n\nReply with your answer in your next message.")
        else:
            advice = ""
            if not view.row.moved:
                advice = f" `massgen resume {run_id}` continues it."
            await self.say(f"The run is waiting: {reason_of(view)}.{advice}")

    async def ended(self, view: RunView) -> None:
        """The answer, and how it came about."""
        run = view.snapshot
        if run.best_answer:
            await self.say(run.best_answer)
        lines = [text_of(outcome_line(run)), *cautions(run), *helps(run)]
        await self.say("\n\n".join(["\n\n---", *lines] if run.best_answer else lines))

    async def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        await self._send_update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def _send_update(self, update: dict[str, Any]) -> None:
        await self._connection.tell("session/update", {"sessionId": self._session_id, "update": update})

    async def _followed(self, run_id: str) -> RunView:
        view = await self._service.watcher.get_run(run_id)
        async with aclosing(self._service.watcher.follow(run_id, text=False)) as news:
            async for view, records in news:
                for record in records:
                    if record.seq > self._seen and (line := spoken_line(record, view.snapshot)):
                        await self.say(f"{line}\n\n", "agent_thought_chunk")
                    self._seen = max(self._seen, record.seq)
                await self._show_plan(view.snapshot)
        return view

    async def _show_plan(self, run: RunState) -> None:
        phases = list(STAGES)
        now = phases.index("presenting" if run.phase == "evaluating" else run.phase)
        if run.state == "completed":
            now = len(phases)
        plan = [
            {"content": STAGES[phase], "priority": "medium", "status": "completed" if at < now else STATUS[at > now]}
            for at, phase in enumerate(phases)
            if phase != "voting" or len(run.agents) != 1
        ]
        if plan != self._plan:
            self._plan = plan
            await self._send_update({"sessionUpdate": "plan", "entries": plan})

    # -- what the person is asked -------------------------------------------------------------------------------------

    async def _budget(self, view: RunView, asked: InputRequired) -> Decision:
        more = 2 * (view.max_usd or 0.0)
        decisions = {
            "raise": ((f"Continue with {more:g} US dollars", "allow_once"), Decision("raise_budget", value=more)),
            "finish": (("Decide with the existing answers", "allow_once"), Decision("finish_now")),
            "stop": (("Stop the run", "reject_once"), Decision("cancel")),
        }
        call = {"toolCallId": f"budget-{self._seen}", "title": asked.text, "kind": "other", "status": "pending"}
        chosen = await self._ask(call, {name: option for name, (option, _) in decisions.items()})
        if self.cancelled:
            return Decision("cancel")
        return decisions[chosen][1] if chosen in decisions else undecided(view) or Decision("finish_now")

    async def _offer(self, view: RunView) -> None:
        """What the winner changed, as one edit with the difference of each file."""
        run_id, run = view.row.run_id, view.snapshot
        if not self._applies or self.cancelled or run.best_changes is None or not run.best_changes.count:
            return
        try:
            planned = await self._service.applier.apply(run_id, ApplyRequest(dry_run=True))
            if planned.state != "clean":
                await self.say(f"\n\n{_applied_text(run_id, planned)}")
                return
            files = await self._service.applier.read_texts(view, planned)
        except MassgenError as error:
            await self.say(f"\n\nNot applied: {error}")
            return
        differences: list[dict[str, Any]] = [
            {"type": "diff", "path": str(one.path), "oldText": one.before, "newText": one.after} for one in files
        ]
        although = ""
        if run.work_done.unproven:
            although = " even though required checks fail"
        call: dict[str, Any] = {
            "toolCallId": f"apply-{run_id}",
            "title": f"Apply {counted(len(planned.changes), 'changed file')}{although}",
            "kind": "edit",
            "status": "pending",
            "content": [*differences, _text_block(_applied_text(run_id, planned))],
            "locations": [{"path": str(one.path)} for one in files],
        }
        await self._send_update({"sessionUpdate": "tool_call", **call})
        status, text = await self._decided(run_id, await self._ask(call, OFFERS))
        update = {"toolCallId": call["toolCallId"], "status": status, "content": [*differences, _text_block(text)]}
        await self._send_update({"sessionUpdate": "tool_call_update", **update})

    async def _decided(self, run_id: str, chosen: str | None) -> tuple[str, str]:
        self.goes_on = chosen == GO_ON
        if chosen != APPLY:
            return "failed", f"Not applied. To apply the changes later: `massgen apply {run_id}`"
        try:
            done = await self._service.applier.apply(run_id, ApplyRequest(dry_run=False))
        except MassgenError as error:
            return "failed", f"Not applied: {error}"
        return "completed" if done.state in ("applied", "unchanged") else "failed", _applied_text(run_id, done)

    async def _ask(self, call: Mapping[str, Any], options: Mapping[str, tuple[str, str]]) -> str | None:
        """The option that the person chose; None: none, or there is no way to ask."""
        shown = [{"optionId": one, "name": name, "kind": kind} for one, (name, kind) in options.items()]
        with anyio.CancelScope() as self._asking:
            try:
                params = {"sessionId": self._session_id, "toolCall": dict(call), "options": shown}
                reply = await self._connection.ask("session/request_permission", params)
            except AgentRefused:
                return None
            match reply:
                case {"outcome": {"outcome": "selected", "optionId": str(chosen)}}:
                    return chosen
                case _:
                    return None
        return None


def _applied_text(run_id: str, application: Application) -> str:
    return applied(run_id, application, WAYS).text()


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


ONLY_TEXT = "massgen sends only text to models; describe it in words"


def question_of(blocks: Sequence[object], cwd: Path) -> str:
    """Files that are named, or come along, are called as the agents find them in their copies of `cwd`. Raises
    `MassgenError` invalid_arguments for what is no text.
    """
    return "".join(_block_text(fields(block), cwd) for block in blocks).strip()


def _block_text(block: Mapping[str, Any], cwd: Path) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            return f"`{_called(uri, cwd)}`"
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            name = _called(uri, cwd).replace('"', "'").replace("\n", " ")
            return f"\n\n{marked('file', text, '', name=name)}\n\n"
        case _:
            kind = str(block.get("type"))[:40]
            raise MassgenError("invalid_arguments", f"the prompt contains {kind!r}, but {ONLY_TEXT}")


def _called(uri: str, cwd: Path) -> str:
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or not path.is_relative_to(cwd):
        return uri
    lines = f" ({parts.fragment})" if parts.fragment else ""
    return f"{cwd.name / path.relative_to(cwd)}{lines}"
