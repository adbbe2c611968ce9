"""Asks everybody, and tells what came of it."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random

from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_INTERRUPTED, EXIT_OK
from massgen_mcp.cli.massgen.evaluating.options import EvalOptions, team_name
from massgen_mcp.cli.massgen.options import Options, names_config
from massgen_mcp.cli.massgen.team import given_of, look_before
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.config.adjusted import RequestedLimits
from massgen_mcp.errors import MassgenError
from massgen_mcp.evaluation.comparing import ONE, Evaluation
from massgen_mcp.evaluation.report import as_data, drawing, page, report_lines
from massgen_mcp.evaluation.scoring import Scorer, item_of_run
from massgen_mcp.evaluation.tasks import Item, read_items
from massgen_mcp.request.build import CallerRequest, adjusted_team, build_request
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.request.team import Team
from massgen_mcp.runs.batch import Result, ResultsFile
from massgen_mcp.server.results.reply import as_json
from massgen_mcp.views.plain_text import counted


async def evaluate(options: EvalOptions) -> int:
    """Returns the exit code. Raises `MassgenError` for whatever keeps it from beginning."""
    files = [OutputFile(path.absolute(), "--html") for path in _pages(options.html)]
    for file in files:
        file.check()
    items = await _own_items() if options.from_runs else read_items(options.tasks)
    items = Random("items").sample(items, min(len(items), options.items or len(items)))
    scorer = await Scorer.ready(items)
    teams = {team_name(config): Options(config=config) for config in options.teams}
    asked = {name: await _found(chosen, options) for name, chosen in {**teams, ONE: _one(options.against)}.items()}
    if len(asked[ONE][1].config.agents) != 1:
        raise MassgenError(
            "invalid_arguments", f"--against {options.against}: name one model, or a config of one agent"
        )

    async def request_of(who: str, question: str) -> RunRequest:
        given, team = asked[who]
        return await build_request(replace(given, question=question, team=team))

    def told(result: Result) -> None:
        print_error(f"{result['id']}: {'right' if result['right'] else 'wrong'} ({result['state']})")

    with ResultsFile.opened(options.results) as results, run_service() as service:
        found = Evaluation(
            items, [*teams], scorer, results, service, request_of, told, options.budget, options.concurrency
        )
        await found.run()
        if options.json:
            print_line(as_json(as_data(found, options.tasks)))
        for line in () if options.json else report_lines(found, options.tasks):
            print_line(line)
        for file, text in zip(files, (page(found, options.tasks), drawing(found.rows())), strict=False):
            file.write(text.encode("utf-8", "replace"))
    return EXIT_OK if found.done else EXIT_EXECUTION


async def _own_items() -> list[Item]:
    """Questions of this user's runs of which it is marked what is right. Raises `MassgenError` without any."""
    with run_service() as service:
        marked = await service.marked_right()
    found = [item_of_run(view.row.run_id, view.snapshot.question, right) for view, right in marked]
    items = [item for item in found if item is not None]
    told = f"{counted(len(marked), 'run')} marked right, {len(items)} of them with an answer short enough to compare"
    if not items:
        how = "`massgen-mcp mark ID right` marks one"
        raise MassgenError("invalid_arguments", f"--from runs: {told}; {how}")
    print_error(f"{told}. These are your questions: nothing is shown of others.")
    return items


def _pages(html: Path | None) -> list[Path]:
    return [] if html is None else [html, html.with_suffix(".svg")]


def _one(against: str) -> Options:
    return Options(config=against) if names_config(against) else Options(models=(against,))


async def _found(chosen: Options, options: EvalOptions) -> tuple[CallerRequest, Team]:
    given = given_of(chosen, "-", cwd=Path.cwd(), environ=os.environ)
    given = replace(given, caller_answers=False, limits=RequestedLimits(max_usd=options.max_usd_each))
    team = await adjusted_team(given)
    for note in await look_before(chosen, team):
        print_error(f"Note: {note}")
    return given, team


def interrupted() -> int:
    print_error("Stopped. Runs that were begun go on in the background; the same command goes on from here.")
    return EXIT_INTERRUPTED
