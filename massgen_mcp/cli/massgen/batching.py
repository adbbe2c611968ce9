"""`massgen batch FILE`: asks many questions, tells of each result, and sums up."""

import os
from dataclasses import replace
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_OK
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.massgen.team import given_of, look_before
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.config.adjusted import RequestedLimits
from massgen_mcp.request.build import RunRequest, adjusted_team, build_request
from massgen_mcp.request.team import Team
from massgen_mcp.runs.batch import Batch, BatchQuestion, ResultLine, ResultsFile, describe, read_questions, summary


async def ask_batch(options: Options) -> int:
    """Returns the exit code. Raises `MassgenError` for whatever keeps it from beginning."""
    file = Path(options.question or "")
    path = options.output_file or file.with_suffix(".results.jsonl")
    questions = read_questions(file, path)
    teams: dict[tuple[str | None, Path], Team] = {}

    async def request_of(question: BatchQuestion) -> RunRequest:
        """A team is looked at once."""
        cwd, chosen = Path.cwd() / (question.cwd or ""), replace(options, output_file=None)
        if question.config is not None:
            chosen = replace(chosen, config=question.config, models=(), backend=None, num_agents=None)
        limits = RequestedLimits(max_usd=question.max_usd or options.max_usd_each)
        given = given_of(chosen, question.question, cwd=cwd, environ=os.environ)
        given = replace(given, caller_answers=False, limits=limits)
        if (team := teams.get((question.config, cwd))) is None:
            team = teams[question.config, cwd] = await adjusted_team(given)
            for note in await look_before(chosen, team):
                print_error(f"Note: {note}")
        return await build_request(replace(given, team=team))

    with ResultsFile.opened(path) as results, run_service(here=True) as service:

        def show(result: ResultLine) -> None:
            why = f": {result['error']}" if result["error"] else ""
            ended = f"{describe(result)}{why}"
            print_error(f"{len(batch.results)}/{len(questions)} {result['id']}: {ended}")

        batch = Batch(questions, results, show)
        if batch.completed:
            print_error(f"{len(batch.completed)} of {len(questions)} questions are already done.")
        await batch.ask(request_of, service, options.concurrency, options.max_usd)
    print_line(f"{len(questions)} questions: {summary(batch)}; {path}")
    return EXIT_OK if len(batch.completed) == len(questions) else EXIT_EXECUTION
