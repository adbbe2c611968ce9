"""The files of deploy/: as far as they can be tried without root, systemd and a builder of images."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from pathspec import GitIgnoreSpec

from massgen_mcp.home import OAUTH_CLIENT_VARIABLE, OAUTH_SECRET_VARIABLE
from massgen_mcp.server.http.gate import HEALTH
from massgen_mcp.server.http.operating import READY
from tests.cluster.stage import cluster
from tests.commands import run_command
from tests.harness import ROOT, SERVER_MODULE, TempHome, home
from tests.needs import found, needs
from tests.postgres import shared_server

__all__ = ["home"]

DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "massgen-mcp.service").read_text()
WORKER_UNIT = (DEPLOY / "massgen-mcp-worker.service").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()


STARTED_WITH = {
    "unit": (re.findall(r"^ExecStart=\S+ (.*)$", UNIT, re.MULTILINE)[0].split(), "token"),
    "worker's unit": (re.findall(r"^ExecStart=\S+ (.*)$", WORKER_UNIT, re.MULTILINE)[0].split(), "MASSGEN_MCP_STORE"),
    "container": (json.loads(re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)[0])[1:], "token"),
}
"""The arguments of the program, and what it misses when it is started with them alone."""


@pytest.mark.parametrize("name", ["massgen-mcp.service", "massgen-mcp-worker.service"])
def test_systemd_finds_nothing_to_warn_of_in_the_units(tmp_path: Path, name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert [line for line in text.splitlines() if not re.match(r"#|\[\w+\]$|\w+=|$", line)] == []
    if shutil.which("systemd-analyze"):
        unit = tmp_path / name
        unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.MULTILINE))
        checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(("arguments", "missing"), STARTED_WITH.values(), ids=STARTED_WITH)
def test_the_program_takes_the_options_that_it_is_started_with(
    home: TempHome, arguments: list[str], missing: str
) -> None:
    """It gets as far as to say what is missing here."""
    ended = run_command(home, SERVER_MODULE, *(word.replace("%d", str(home.work)) for word in arguments))
    assert ended.returncode == 1, f"not the code of a wrong command line: {ended.stderr}"
    assert missing in ended.stderr


def rendered(template: str) -> list[dict[str, Any]]:
    """A template of the chart with its own values. It has values and one condition, so no Helm is needed to know."""
    values = yaml.safe_load((DEPLOY / "helm" / "values.yaml").read_text())

    def value(found: re.Match[str]) -> str:
        said = reduce(getitem, found[1].split("."), values)
        return json.dumps(said) if found[2] else str(said)

    text = (DEPLOY / "helm" / "templates" / template).read_text()
    text = text.replace("{{- if .Values.postgres.enabled }}\n", "").replace("{{- end }}\n", "")
    filled = re.sub(r"\{\{ \.Values\.([a-zA-Z.]+)( \| toJson)? \}\}", value, text)
    assert filled.count("{{") == 0
    return list(yaml.safe_load_all(filled))


def containers() -> dict[str, dict[str, Any]]:
    """Of the compose file and the chart, by name: whole command lines, variables, paths that are asked, and directories
    that are mounted to be written.
    """
    image = json.loads(re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)[0])
    found: dict[str, dict[str, Any]] = {}
    for name, one in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].items():
        command = [*one.get("entrypoint", image), *one.get("command", ())]
        found[f"compose {name}"] = {
            "command": command,
            "variables": [*one.get("environment", {})],
            "paths": asked(json.dumps(one.get("healthcheck", {}))),
            "mounted": [volume.split(":")[1] for volume in one["volumes"]],
        }
    for template in ("server.yaml", "worker.yaml", "postgres.yaml"):
        for document in rendered(template):
            for one in document["spec"].get("template", {"spec": {"containers": []}})["spec"]["containers"]:
                probes = [
                    one[probe]["httpGet"]["path"]
                    for probe in one
                    if probe.endswith("Probe") and "httpGet" in one[probe]
                ]
                variables = [variable["name"] for variable in one["env"]]
                command = [*one.get("command", image), *one.get("args", ())]
                found[f"helm {one['name']}"] = {
                    "command": command,
                    "variables": variables,
                    "paths": probes,
                    "mounted": [mount["mountPath"] for mount in one["volumeMounts"] if not mount.get("readOnly")],
                }
    return found


def asked(text: str) -> list[str]:
    """The paths at which a health check asks the server."""
    return re.findall(r"http://127\.0\.0\.1:8765(/\w+)", text)


def test_the_compose_file_and_the_chart_start_server_worker_and_postgres() -> None:
    kinds = ("postgres", "server", "worker")
    assert sorted(containers()) == [*(f"compose {kind}" for kind in kinds), *(f"helm {kind}" for kind in kinds)]
    assert containers()["helm server"]["paths"] == [HEALTH, READY]
    assert (containers()["compose server"]["paths"], asked(CONTAINER)) == ([READY], [HEALTH])
    (made,) = re.findall(r"install -d -o massgen -g massgen -m 700 (.*)$", CONTAINER, re.MULTILINE)
    assert {path for name, one in containers().items() if "postgres" not in name for path in one["mounted"]} == set(
        made.split()
    ), "else a new volume would be root's"
    installed = re.findall(r"'/src\[([\w,]+)\]'", CONTAINER)[0].split(",")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(installed) <= set(extras)
    assert "cluster" in installed
    assert {OAUTH_CLIENT_VARIABLE, OAUTH_SECRET_VARIABLE} <= {*containers()["compose server"]["variables"]}


@pytest.mark.parametrize("name", [f"{file} {kind}" for file in ("compose", "helm") for kind in ("server", "worker")])
def test_a_container_is_started_with_what_the_program_takes(home: TempHome, name: str) -> None:
    """Nothing of what its variables name is here, and it gets as far as to say so."""
    container = containers()[name]
    program, *arguments = container["command"]
    assert program == "massgen-mcp"
    known = run_command(home, SERVER_MODULE, "help", "all").stdout
    ours = [variable for variable in container["variables"] if variable.startswith("MASSGEN_")]
    assert [variable for variable in ours if variable not in known] == []
    missing = {variable: f"{home.work}/no-such-file" for variable in ours if variable != "MASSGEN_MCP_FILES"}
    ended = run_command(home.with_variables(**missing), SERVER_MODULE, *arguments)
    assert ended.returncode == 1, f"not the code of a wrong command line: {ended.stderr}"
    assert "MASSGEN_MCP_STORE" in ended.stderr


@needs("postgres")
async def test_a_dump_of_the_database_has_the_runs_and_their_answers(home: TempHome, tmp_path: Path) -> None:
    """With the directory of their files."""
    tools = Path(os.path.realpath(found("postgres") or "")).parent
    with cluster(home.with_variables(MASSGEN_MCP_FILES=str(tmp_path / "files")), shared_server()) as machines:
        machines.add_worker()
        begun = run_command(machines.home, SERVER_MODULE, "start", "q", "--config", "@examples/scripted", "--json")
        run_id = json.loads(begun.stdout)["run_id"]
        assert run_command(machines.home, SERVER_MODULE, "wait", run_id).returncode == 0
        answer = json.loads(run_command(machines.home, SERVER_MODULE, "result", run_id, "--json").stdout)["answer"]
        dump = tmp_path / "massgen.dump"
        await anyio.run_process([tools / "pg_dump", "--format=custom", f"--file={dump}", machines.url])
        empty = shared_server().empty_database()
        await anyio.run_process([tools / "pg_restore", "--exit-on-error", f"--dbname={empty}", dump])
        restored = machines.home.with_variables(MASSGEN_MCP_STORE=empty, MASSGEN_MCP_HOME=str(tmp_path / "other"))
        told = run_command(restored, SERVER_MODULE, "result", run_id, "--json")
        assert json.loads(told.stdout)["answer"] == answer
        shared_server().drop(empty)


def test_the_container_file_copies_what_an_installation_needs() -> None:
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", CONTAINER, re.MULTILINE) for word in line.split()]
    project = (ROOT / "pyproject.toml").read_text()
    needed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "massgen_mcp",
        *re.findall(r'^"(\w+)" = "massgen_mcp/', project, re.M),
    }
    assert set(copied) == needed
    assert all((ROOT / name).exists() for name in copied)


def test_the_wheel_holds_every_data_file_of_the_package() -> None:
    """It takes all of the package but what `.gitignore` names, as long as nothing says otherwise."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert set(build) == {"targets"}
    assert build["targets"]["wheel"] == {
        "packages": ["massgen_mcp"],
        "force-include": {"configs": "massgen_mcp/configs"},
    }
    ignored = GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())
    files = [path.relative_to(ROOT) for path in (ROOT / "massgen_mcp").rglob("*") if path.is_file()]
    data = [str(path) for path in files if path.suffix not in (".py", ".pyc")]
    assert {f"massgen_mcp/page/template/{name}" for name in ("run.html", "web.js", "app.js", "statistics.js")} < set(
        data
    )
    assert [name for name in data if ignored.match_file(name)] == []


def test_where_there_is_no_store_a_copy_is_refused_in_a_sentence(tmp_path: Path) -> None:
    refused = subprocess.run(
        [DEPLOY / "backup.sh", tmp_path, tmp_path / "copy"], capture_output=True, text=True, check=False
    )
    told = f"backup.sh: there is no runs.sqlite3 in {tmp_path}, so nothing was copied\n"
    assert (refused.returncode, refused.stderr, [*tmp_path.iterdir()]) == (1, told, [])


async def test_a_copy_of_the_state_directory_has_the_runs_and_their_answers(home: TempHome, tmp_path: Path) -> None:
    async with home.client() as client:
        begun = await client.call_tool("start_run", {"question": "q", "config": "scripted", "wait_seconds": 45})
        await anyio.run_process([DEPLOY / "backup.sh", home.path, tmp_path / "copy"])
    assert begun.structured_content is not None
    restored = replace(home, path=tmp_path / "copy")
    shutil.rmtree(home.path / "runs")
    result = run_command(restored, SERVER_MODULE, "result", begun.structured_content["run_id"], "--json")
    assert json.loads(result.stdout)["answer"] == begun.structured_content["answer"]
    restored.close()
