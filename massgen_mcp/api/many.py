"""`massgen_mcp.batch`: many questions to a team, from Python."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from massgen_mcp.api.options import RunArguments
from massgen_mcp.threads import imported


async def batch(
    questions: str | Path | Sequence[str | Mapping[str, Any]],
    results: str | Path,
    *,
    concurrency: int = 4,
    max_usd: float | None = None,
    max_usd_each: float | None = None,
    **kwargs: Unpack[RunArguments],
) -> list[dict[str, Any]]:
    """Ask many questions, `concurrency` of them at once, each as a run in the background.

    `questions` is a file with a JSON object on each line, or a list of such dictionaries or texts: `question`, and if
    you like `id`, `config`, `cwd`, `max_usd`. Each result becomes a line of the file `results` as soon as it is there.
    A second call with the same file asks, and pays, only for what is not completed in it. No run begins that could
    make all together cost more than `max_usd`; `max_usd_each` replaces the cap of the config. The other
    arguments, which say who is asked and how, are those of `run`.

    Returns the results in the order of the questions, each with `id`, `question`, `state`, `answer`, `outcome`, `weak`,
    `usd`, `seconds`, `run_id` and `error`. Questions for which the budget had no room have none.

    Raises `MassgenError` before anything is paid for, naming every wrong line. When the caller is cancelled, runs that
    were begun go on, and the next call has their results.
    """
    await imported("massgen_mcp.api.request", "massgen_mcp.runs.batch", "massgen_mcp.runs.store.local")
    from massgen_mcp.agents.given_keys import with_given_keys
    from massgen_mcp.api.request import prepared
    from massgen_mcp.home import find_home
    from massgen_mcp.request.build import RunRequest
    from massgen_mcp.runs import batch as batches
    from massgen_mcp.runs.service import RunService
    from massgen_mcp.runs.store.local import local_engine

    if isinstance(questions, str | Path):
        asked = batches.read_questions(Path(questions), Path(results))
    else:
        entries = [{"question": one} if isinstance(one, str) else one for one in questions]
        asked = batches.questions_of(map(json.dumps, entries), "questions")

    async def request_of(question: batches.BatchQuestion) -> RunRequest:
        own: RunArguments = {"config": question.config} if question.config else kwargs
        limit, cwd = question.max_usd or max_usd_each, Path.cwd() / (question.cwd or "")
        return (await prepared(question.question, own, max_usd=limit, cwd=cwd)).request

    environ = with_given_keys(os.environ)
    with batches.ResultsFile.opened(Path(results)) as file:
        service = RunService(local_engine(find_home(environ)), environ)
        try:
            batch = batches.Batch(asked, file, lambda _: None)
            await batch.ask(request_of, service, concurrency, max_usd)
        finally:
            service.close()
    return [dict(result) for result in batch.results]
