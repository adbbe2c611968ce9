"""Files of runs of several machines that share no directory: they go through an object store."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from massgen_mcp.certificates import trusted
from massgen_mcp.home import FILES_VARIABLE
from tests.changes.conftest import Repository, repository
from tests.cluster.git_host import git_host
from tests.cluster.stage import Cluster, cluster
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, call, home, http_server, wait_until
from tests.needs import needs
from tests.postgres import shared_server
from tests.soak.counting_model import counting_model

__all__ = ["home", "repository"]

pytestmark = [needs("postgres"), pytest.mark.uncounted]


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    """What a person sets to keep files in a bucket of S3; the service is a local one."""
    from moto.server import ThreadedMotoServer  # a second, in every process that reads the tests

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    names = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_REGION": "us-east-1",
    }
    try:
        httpx2.put(f"{names['AWS_ENDPOINT_URL']}/runs", verify=trusted()).raise_for_status()
        yield {FILES_VARIABLE: "s3://runs/massgen", **names}
    finally:
        server.stop()


@pytest.fixture(params=["directory", "s3"])
def machines(request: pytest.FixtureRequest, home: TempHome) -> Iterator[Cluster]:
    where = request.getfixturevalue("s3") if request.param == "s3" else {FILES_VARIABLE: str(home.work / "objects")}
    with cluster(home, shared_server(), **where) as made:
        yield made


EDITS = {"project/old.txt": "new\n", "project/sub/more.txt": "more\n"}


def write(path: str, content: str) -> dict[str, Any]:
    return {"call": "write_file", "arguments": {"path": path, "content": content}}


async def test_a_run_goes_through_four_machines_and_its_patch_to_a_fifth(
    machines: Cluster, repository: Repository
) -> None:
    """Started and applied where the directory is, watched through another's server, its first worker killed while it
    waits for the model, ended by another; of what the model was asked only that is asked again which got no reply.
    """
    home = machines.home
    repository.commit(**{"old.txt": "old\n"})
    before = repository.fingerprint()
    steps = [("write_file", {"path": path, "content": text}) for path, text in EDITS.items()]
    watcher, first, second = (machines.machine(name) for name in ("watcher", "first", "second"))
    async with counting_model({"maker": steps}, 0) as model:
        model.held_from = len(steps) + 1
        backend = {"type": "chatcompletion", "model": "local", "base_url": model.base_url}
        ada = {"id": "ada", "backend": backend, "system_message": "<<maker.1>>"}
        config = home.config("makers", ada)
        asked = ["start", "change it", "--config", config, "--context", str(repository.path), "--json"]
        started = run_command(home, SERVER_MODULE, *asked)
        assert started.returncode == 0, started.stderr
        run_id = json.loads(started.stdout)["run_id"]
        first.add_worker()
        async with http_server(watcher.home) as server, server.client("auto") as client:
            seen = await call(client, "wait_run", run_id=run_id, until="change", cursor=0, timeout_seconds=30)
            assert seen["status"] == "running"
            await wait_until(lambda: model.sent.total() == model.held_from)
            await call(client, "control_run", run_id=run_id, action="steer", message="Go on.")
            first.workers[0].send(signal.SIGKILL)
            second.add_worker()
            model.go_on.set()
            done = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
            assert done["status"] == "completed", done
            result = await call(client, "get_result", run_id=run_id)
            assert {file["path"] for file in result["files"]["listed"]} == set(EDITS)
            patch = await call(client, "get_result", run_id=run_id, view="diff")
            assert "+more" in patch["answer"]
        assert model.sent.total() == len(steps) + 2, "each step, and the answer once more"
        assert result["usage"]["model_calls"] == model.sent.total(), "each is charged once"
    assert repository.fingerprint() == before, "nobody else changes it"
    applied = run_command(home, SERVER_MODULE, "apply", run_id)
    assert applied.returncode == 0, applied.stderr
    assert (repository.path / "old.txt").read_text() == "new\n"
    assert (repository.path / "sub" / "more.txt").read_text() == "more\n"
    elsewhere = machines.machine("elsewhere").home
    other = home.work / "checkout"
    other.mkdir()
    (other / "old.txt").write_text("old\n")
    brought = run_command(elsewhere, SERVER_MODULE, "apply", run_id, "--directory", str(other))
    assert brought.returncode == 0, brought.stderr
    assert (other / "sub" / "more.txt").read_text() == "more\n"


async def test_a_worker_clones_what_a_run_names_from_hosts_that_its_operator_names(
    home: TempHome, repository: Repository
) -> None:
    repository.commit(**{"old.txt": "old\n"})
    token = "git-token-that-nobody-else-sees"
    config = home.config("makers", agent("ada", write("project/old.txt", "new\n"), {"answer": "made"}))
    with (
        git_host(repository.path.parent, token) as (address, certificate),
        cluster(home, shared_server(), **{FILES_VARIABLE: str(home.work / "objects")}) as machines,
    ):
        paths = [{"path": f"{address}/{repository.path.name}", "permission": "write"}]
        worker, server = machines.machine("worker"), machines.machine("server")
        async with server.home.client() as client:
            for hosts, outcome in (("", "failed"), (f"localhost={token}", "completed")):
                worker.home = worker.home.with_variables(MASSGEN_MCP_GIT_HOSTS=hosts, GIT_SSL_CAINFO=str(certificate))
                at_work = worker.add_worker()
                started = await call(client, "start_run", question="q", config=config, context_paths=paths)
                run_id = started["run_id"]
                done = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
                assert done["status"] == outcome, done
                assert ("on this worker doesn't allow localhost" in str(done)) == (outcome == "failed"), done
                at_work.kill()
        refused = run_command(server.home, SERVER_MODULE, "apply", run_id)
        assert (refused.returncode, "pass your clone of https://localhost" in refused.stderr) == (1, True)
        applied = run_command(server.home, SERVER_MODULE, "apply", run_id, "--directory", str(repository.path))
        assert applied.returncode == 0, applied.stderr
        assert (repository.path / "old.txt").read_text() == "new\n"
    assert token not in "".join(file.read_text(errors="replace") for file in home.work.parent.rglob("*.log"))


def test_the_doctor_tells_of_the_shared_store_its_workers_and_its_files(home: TempHome) -> None:
    def told(at: TempHome) -> dict[str, tuple[str, str]]:
        done = run_command(at, SERVER_MODULE, "doctor", "--json")
        return {check["name"]: (check["level"], check["message"]) for check in json.loads(done.stdout)["checks"]}

    with cluster(home, shared_server(), **{FILES_VARIABLE: str(home.work / "objects")}) as machines:
        without = told(machines.home)
        assert without["workers"] == ("warn", "no worker serves default (alive: none)")
        machines.add_worker()
        found = told(machines.home)
        assert [found[name][0] for name in ("shared store", "workers", "clock", "shared files")] == ["ok"] * 4, found
        assert found["workers"][1] == "alive: 1 of default"
        away = told(machines.home.with_variables(MASSGEN_MCP_FILES="/proc/no-such-place"))
        assert away["shared files"][0] == "fail", away
    gone = told(home.with_variables(MASSGEN_MCP_STORE=f"postgresql://nobody@/none?host={home.work}"))
    assert gone["shared store"][0] == "fail", gone
    assert "cannot be reached" in gone["shared store"][1]
