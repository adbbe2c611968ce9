"""`massgen eval`: what a team is worth beside one model. Asks everybody, and tells what came of it."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import anyio.to_thread

from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_OK
from massgen_mcp.cli.massgen.evaluate_options import team_name
from massgen_mcp.cli.massgen.options import Options, names_config
from massgen_mcp.cli.massgen.team import given_of, look_before
from massgen_mcp.cli.output import print_either, print_error
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.config.adjusted import RequestedLimits, given_path, without_work
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.errors import MassgenError
from massgen_mcp.evaluation.comparing import ONE, Evaluation, display_name
from massgen_mcp.evaluation.report import as_data, drawing, page, report_lines
from massgen_mcp.evaluation.scoring import Scorer, item_of_run
from massgen_mcp.evaluation.tasks import Item, Replayed, read_items
from massgen_mcp.home import find_home
from massgen_mcp.request.build import CallerRequest, RunRequest, adjusted_team, build_request
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.team import Team
from massgen_mcp.runs.batch import ResultLine, ResultsFile
from massgen_mcp.runs.patches.earlier_changes import laid_out
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import as_json
from massgen_mcp.views.plain_text import counted
from massgen_mcp.workspace.snapshot import remove_tree

CHECKS_SECONDS = 600.0
"""For those of one run, tried on what it changed."""


async def evaluate(options: argparse.Namespace) -> int:
    """Returns the exit code. Raises `MassgenError` for whatever keeps it from beginning."""
    files = [OutputFile(path.absolute(), "--page") for path in _pages(options.html)]
    for file in files:
        file.check()
    replayed = find_home(os.environ).path / "checks" / "replayed" / options.results.stem
    items = await _list_own_items(replayed) if options.from_runs else read_items(options.tasks)
    items = Random("items").sample(items, min(len(items), options.items or len(items)))
    scorer = await Scorer.ready(items)
    teams = {team_name(config): Options(config=config) for config in options.teams}
    asked = {name: await _find_team(chosen, options) for name, chosen in {**teams, ONE: _one(options.against)}.items()}
    if len(asked[ONE][1].config.agents) != 1:
        raise MassgenError(
            "invalid_arguments", f"--against {options.against}: name one model, or a config with one agent"
        )

    async def request_of(who: str, item: Item) -> RunRequest:
        given, team = asked[who]
        if isinstance(item, Replayed):
            team = replace(team, config=without_work(team.config))
            given = replace(given, context_paths=[given_path(place) for place in item.places], checks=item.checks)
        return await build_request(replace(given, question=item.question, team=team))

    def show(result: ResultLine) -> None:
        print_error(f"{result['id']}: {'right' if result['right'] else 'wrong'} ({result['state']})")

    with ResultsFile.opened(options.results) as results, run_service() as service:
        found = Evaluation(
            items,
            [*teams],
            scorer,
            results,
            service,
            request_of,
            show,
            options.budget,
            options.concurrency,
            options.samples,
        )
        await found.run()
        document = as_json(as_data(found, options.tasks))
        print_either(report_lines(found, options.tasks), document, as_json=options.json)
        for file, text in zip(files, (page(found, options.tasks), drawing(found.rows())), strict=False):
            file.write(text.encode("utf-8", "replace"))
    return _finish(found, replayed)


def _finish(found: Evaluation, replayed: Path) -> int:
    """Say what was not measured. Returns the exit code."""
    for name in found.unmeasured:
        print_error(
            f"{display_name(name)} has no successful run, so there is nothing to compare; repeat the "
            "command to try again"
        )
    if not found.done or found.unmeasured:
        return EXIT_EXECUTION
    remove_tree(replayed)
    return EXIT_OK


async def _list_own_items(place: Path) -> list[Item]:
    """Questions of this user's runs of which it is known what is right; files of theirs are laid out in `place`. Raises
    `MassgenError` without any.
    """
    with run_service() as service:
        known = await service.outcomes.list_proved()
        found = [await _make_own_item(view, whose, right, place) for view, whose, right in known]
    items = [item for item in found if item is not None]
    known_runs = (
        f"{counted(len(known), 'run')} marked right, {len(items)} of them usable "
        "(they have a short answer, or checks that pass on the changes)"
    )
    if not items:
        how = "mark one with `massgen mark ID right`, or apply a run's changes with `massgen apply ID`"
        raise MassgenError("invalid_arguments", f"--from runs: {known_runs}; {how}")
    print_error(f"{known_runs}. These results apply only to your own questions.")
    return items


async def _make_own_item(view: RunView, whose: str, right: str, place: Path) -> Item | None:
    """None where another answer could not be compared with what proved right."""
    run_id, question, changes = view.row.run_id, view.snapshot.question, view.snapshot.best_changes
    if whose or changes is None or not changes.count:
        return item_of_run(run_id, question, right)
    if (files := await anyio.to_thread.run_sync(laid_out, view, place / run_id)) is None:
        return None
    from massgen_mcp.runs.host.setting_up import try_checks

    paths = [{"path": str(path)} for path in files.after]
    work = {"context_paths": paths, "checks": files.checks}
    nobody = {"agents": [{"id": "nobody", "backend": {"type": "scripted"}}], "orchestrator": work}
    tried = await try_checks(config_from_data(nobody, "--from runs"), os.environ, seconds=CHECKS_SECONDS)
    if any(one.state != "passed" for one in tried):
        return None
    return Replayed(id=run_id, input=question, places=tuple(map(str, files.before)), checks=files.checks)


def _pages(html: Path | None) -> list[Path]:
    if html is None:
        return []
    return [html, html.with_suffix(".svg")]


def _one(against: str) -> Options:
    if names_config(against):
        return Options(config=against)
    return Options(models=(against,))


async def _find_team(chosen: Options, options: argparse.Namespace) -> tuple[CallerRequest, Team]:
    given = given_of(chosen, "-", cwd=Path.cwd(), environ=os.environ)
    given = replace(given, caller_answers=False, limits=RequestedLimits(max_usd=options.max_usd_each))
    team = await adjusted_team(given)
    for note in await look_before(chosen, team):
        print_error(f"Note: {note}")
    return given, team
