"""Asks the person at the client what a run needs to know, while a tool call waits for that run.

A client of a handshake revision is sent a request during the call. One of 2026-07-28 gets the question as the result of
the call, and calls again with the answer; nothing of it is kept here, so any server process can take that.
"""

from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.client.decisions import can_be_asked, decision_in, form_of, question_key


class ClientAsked(Exception):
    """Ends a tool call: its result is a question to the client."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the client is asked")
        self.result = result


async def heed_answers(context: Context[Any, Any], service: RunService, run_id: str) -> set[str]:
    """Carry out what the person decided, if the client calls again with it. An answer to a question that is not open
    any more changes nothing. Returns the keys of the questions on which the person decided nothing. Raises as
    `RunService.control`.
    """
    answers = {key: one for key, one in (context.input_responses or {}).items() if isinstance(one, ElicitResult)}
    if not answers:
        return set()
    view = await service.look(run_id)
    if answer := answers.get(question_key(view) or ""):
        await _carry_out(service, view, answer)
    return {key for key, answer in answers.items() if answer.action != "accept"}


async def ask(
    context: Context[Any, Any], service: RunService, view: RunView, declined: set[str], *, repeatable: bool
) -> bool:
    """Ask what the run needs to know and carry out what is decided. False if the client cannot be asked, or the person
    decided nothing, now or as `declined` says. Raises `ClientAsked` where the question has to be the result of the
    call, which must be `repeatable` then.
    """
    key = question_key(view)
    if key is None or key in declined or not can_be_asked(context.client_capabilities):
        return False
    request = form_of(view)
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if not repeatable:
            return False
        raise ClientAsked(InputRequiredResult(input_requests={key: request}))
    params = request.params
    if not context.session.can_send_request or not isinstance(params, ElicitRequestFormParams):
        return False
    try:
        answer = await context.session.elicit_form(params.message, params.requested_schema, context.request_id)
    except MCPError:  # it cannot after all: the model is told instead
        return False
    view = await service.look(view.row.run_id)
    return question_key(view) != key or await _carry_out(service, view, answer)


async def _carry_out(service: RunService, view: RunView, answer: ElicitResult) -> bool:
    decision = decision_in(view, answer)
    if decision is not None:
        await service.control(view.row.run_id, decision.action, decision.message, decision.value)
    return decision is not None
