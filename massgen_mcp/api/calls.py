"""From Python: `massgen_mcp.run`, one question to one team, and `massgen_mcp.batch`, many. START HERE."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Unpack

from massgen_mcp.api.options import RunArguments, RunOptions
from massgen_mcp.threads import imported


async def run(
    query: str,
    config: str | Path | None = None,
    model: str | None = None,
    models: Sequence[str] | None = None,
    num_agents: int | None = None,
    use_docker: bool = False,
    enable_filesystem: bool = True,
    enable_logging: bool = False,
    output_file: str | Path | None = None,
    **kwargs: Unpack[RunOptions],
) -> dict[str, Any]:
    """Ask a team of agents and wait for its final answer.

    Name the team by one of `config` (a path, or `@examples/NAME`), `config_dict`, `model` (one agent, or `num_agents`
    of them) or `models` (one agent each, or `num_agents` agents that take the models in turn). Without any of them it
    is `.massgen/config.yaml` of the current directory, else the user's own config, else the default team. A model is a
    plain name such as `gpt-5`, or `backend/model`.

    With `enable_filesystem=False` agents have no workspace and no file tools. With `enable_logging=True` the run is
    kept in `.massgen/massgen_logs` of the current directory; otherwise nothing of it stays. `output_file` gets the
    final answer. With `use_docker=True` agents run commands in containers; without Docker no run begins. `RunOptions`
    lists the further arguments.

    Returns a dictionary:

    - `final_answer` (text, never empty), `config_used`, `session_id`, `outcome`, `voted`;
    - `usage`: `prompt_tokens`, `completion_tokens` and `total_tokens` of all calls;
    - `cost`: `usd` (the known part in US dollars, or None), `unpriced_calls`, `estimated_calls`;
    - `degraded`: the agents that were dropped, each with `agent_id`, `reason` and `message`;
    - with logging `log_directory` and `final_answer_path`;
    - of several agents `selected_agent`, `vote_results`, `answers` and `agent_mapping`;
    - `applied`, where directories that were given with `write` are changed.

    A notebook shows what happens while the run works, and draws the dictionary.

    Raises `RunNotCompleted` when the run ends without a final answer; its `result` is that dictionary with the best
    answer so far. Raises `MassgenError` when the run cannot begin; its `code` is for programs, its text says what to
    do. When the caller is cancelled, so is the run.
    """
    await imported("massgen_mcp.api.notebook", "massgen_mcp.api.performing", "massgen_mcp.api.request")
    from massgen_mcp.api.notebook import this_notebook
    from massgen_mcp.api.performing import perform
    from massgen_mcp.api.request import prepared

    given: RunArguments = {
        **kwargs,
        "config": config,
        "model": model,
        "models": models,
        "num_agents": num_agents,
        "use_docker": use_docker,
        "enable_filesystem": enable_filesystem,
        "enable_logging": enable_logging,
        "output_file": output_file,
    }
    request, notebook = await prepared(query, given), this_notebook()
    if notebook is None:
        return await perform(request)
    return await perform(request, notebook.record, drawn=notebook.result)


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
    await imported("massgen_mcp.api.request", "massgen_mcp.runs.batch", "massgen_mcp.runs.store.opening")
    import json

    from massgen_mcp.agents.sections import with_given_keys
    from massgen_mcp.api.request import prepared
    from massgen_mcp.home import find_home
    from massgen_mcp.request.build import RunRequest
    from massgen_mcp.runs import batch as batches
    from massgen_mcp.runs.service import RunService
    from massgen_mcp.runs.store.opening import local_engine

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
    with (
        batches.ResultsFile.opened(Path(results)) as file,
        closing(RunService(local_engine(find_home(environ)), environ)) as service,
    ):
        batch = batches.Batch(asked, file, lambda _: None)
        await batch.ask(request_of, service, concurrency, max_usd)
    return [dict(result) for result in batch.results]
