"""`massgen_mcp.run`: one question to one team, from Python. START HERE."""

from collections.abc import Sequence
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
    of them) or `models` (one agent each); without any it is the project's or the user's own config, else a team of the
    providers whose keys are set. A model is a plain name such as `gpt-5`, or `backend/model`.

    With `enable_filesystem=False` agents have no workspace and no file tools. With `enable_logging=True` the run is
    kept below `.massgen/massgen_logs` of the current directory; otherwise nothing of it stays. `output_file` gets the
    final answer. With `use_docker=True` agents run commands in containers; without Docker no run begins. `RunOptions`
    lists what else there is.

    The dictionary has `final_answer`, `config_used`, `session_id`, `usage` (prompt_tokens, completion_tokens,
    total_tokens, over all calls), `cost` (usd, unpriced_calls), `outcome` and `degraded` (agents that fell out);
    with logging `log_directory` and `final_answer_path`; of several agents also `selected_agent`, `vote_results`,
    `answers` and `agent_mapping`.

    Raises `RunNotCompleted` when the run ends without a final answer; its `result` holds what there was. Raises
    `MassgenError` for whatever keeps the run from beginning, with `code` and what to do. When the caller is cancelled,
    so is the run.
    """
    await imported("massgen_mcp.api.performing", "massgen_mcp.api.request")
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
    return await perform(await prepared(query, given))
