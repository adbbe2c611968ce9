"""AG2 agents that run code and talk in groups, in whole runs: real AG2, a double of its models, the real sandbox."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.backends.frameworks.ag2_agent import code_blocks
from massgen_mcp.config.access.permissions import CommandPlace, RunCommands
from massgen_mcp.config.loader import config_from_data, missing_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import ProviderBackendConfig
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelReplied, RuleViolated, ToolFinished, ToolStarted
from massgen_mcp.events.parts import Usage
from massgen_mcp.events.run import RunFailed
from massgen_mcp.markers import materials
from massgen_mcp.money.tariff import tariff_of
from massgen_mcp.request.reach import reach_of
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.backends.ag2 import ENVIRON, call, said, section, used
from tests.raw_double import Seen, answering, reply
from tests.teams import Ended, run_team

CODE = "Look:\n```python\nprint(6 * 7)\n```\nThat is it."
GEMINI = "gemini-2.5-flash"
EXECUTION: dict[str, Any] = {"executor": {"type": "LocalCommandLineCodeExecutor", "timeout": 60, "work_dir": "made"}}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {**ENVIRON, "MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home"))}


def coder(url: str, execution: dict[str, Any] = EXECUTION, **settings: Any) -> Config:
    backend = section(url)
    backend["agent_config"] |= {"code_execution_config": execution}
    return config_from_data({"agents": [{"id": "coder", "backend": backend}], **settings}, "team.yaml")


def texts(seen: Seen) -> str:
    return "\n".join(str(message.get("content") or "") for message in seen.body["messages"])


async def played(
    path: Path, environ: dict[str, str], replies: Sequence[bytes], config: Callable[[str], Config]
) -> tuple[Ended, list[Seen]]:
    """A run in which the model gives one reply after the other, the last one for ever."""
    async with answering(lambda _, number: replies[min(number, len(replies) - 1)]) as double:
        return await run_team(path, config(double.url), environ=environ), double.requests


async def test_code_runs_in_the_agents_workspace_and_its_output_comes_with_the_next_message(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    files = "Two:\n```sh\n# filename: one.sh\necho one > a.txt\n```\n```python\nprint(open('a.txt').read() * 2)\n```"
    replies = (said({"content": files}), used("new_answer", content="42"))
    ended, (_, told) = await played(tmp_path, environ, replies, coder)
    (executed,) = ended.of(ToolFinished)
    assert (executed.name, executed.is_error) == ("run_command", False)
    assert executed.result.startswith("[exit code 0, ")
    assert executed.result.endswith("\none\none")
    assert len(ended.of(ToolStarted)) == 1, "it is on disk before it runs, and never runs twice"
    roles = [message["role"] for message in told.body["messages"]]
    assert roles == ["system", "user", "user", "assistant", "user"], "as AG2 tells it, and not as a call of ours"
    assert told.body["messages"][3] == {"role": "assistant", "content": files}
    assert told.body["messages"][4]["content"].startswith("What came of your code:\n")
    assert "one\none" in next(materials(told.body["messages"][4]["content"])).text
    assert "are run in a sandbox, in made of your workspace" in told.body["messages"][0]["content"]
    made = ended.directory.path / "final" / "agent_a" / "workspace" / "made"
    assert {file.name for file in made.iterdir()} >= {"one.sh", "a.txt"}


async def test_what_fails_is_told_and_nothing_after_it_runs(tmp_path: Path, environ: dict[str, str]) -> None:
    failing = "```python\nimport sys; sys.exit(3)\n```\n```sh\necho never\n```"
    replies = (said({"content": failing}), used("new_answer", content="42"), said({"content": "42"}))
    ended, _ = await played(tmp_path, environ, replies, coder)
    (executed,) = ended.of(ToolFinished)
    assert executed.result.startswith("[exit code 3, ")
    assert "never" not in executed.result


async def test_only_what_is_said_alone_in_a_known_language_once_and_before_the_final_answer_runs(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    unknown = "```\nls\n```\n```html\n<p>\n```\n```console\n$ ls\n```"
    answer = {"content": CODE, "tool_calls": [call("new_answer", '{"content": "42"}')]}
    first = iter([{"content": unknown}, {"content": CODE}, {"content": CODE}])

    def respond(seen: Seen, number: int) -> bytes:
        del number
        offered = {tool["function"]["name"] for tool in seen.body["tools"]}
        if "vote" in offered:
            (own,) = [shown.name for shown in materials(seen.body["messages"][-1]["content"]) if shown.yours]
            return used("vote", agent_id=own, reason="Mine.")
        if "new_answer" not in offered:
            return said({"content": CODE})
        return said(next(first, answer))

    other = {"id": "other", "backend": {"type": "scripted", "script": [{"answer": "41"}, {"vote": "42"}]}}
    async with answering(respond) as double:
        agents = [coder(double.url).model_dump(mode="json")["agents"][0], other]
        ended = await run_team(tmp_path, config_from_data({"agents": agents}, "t"), environ=environ)
    assert len(ended.of(ToolStarted)) == 1
    assert "blocks are run" in texts(double.requests[0])
    assert "blocks are run" not in texts(double.requests[-1]), "the final answer is only text"
    assert [violation.code for violation in ended.of(RuleViolated)] == ["no_action", "no_action"]
    assert ended.snapshot.final_answer == CODE


async def test_in_planning_mode_code_is_described_and_where_no_sandbox_holds_its_model_is_not_asked(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    replies = (said({"content": CODE}), used("new_answer", content="42"), said({"content": "42"}))
    planning = {"orchestrator": {"coordination": {"enable_planning_mode": True}}}
    ended, _ = await played(tmp_path / "plan", environ, replies, lambda url: coder(url, **planning))
    assert [finished.result[:12] for finished in ended.of(ToolFinished)] == ["Not executed"]
    assert ended.of(ToolStarted) == []
    elsewhere = {"orchestrator": {"commands": {"sandbox": "sandbox-exec"}}}
    ended, asked = await played(tmp_path / "bare", environ, replies, lambda url: coder(url, **elsewhere))
    assert [failed.reason for failed in ended.of(RunFailed)] == ["sandbox_denied"]
    assert [*asked] == []


async def test_only_the_agent_that_runs_code_has_commands_and_the_older_spelling_means_the_same(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    older = {"work_dir": "made", "timeout": 60, "use_docker": False, "last_n_messages": 3}
    assert coder("http://127.0.0.1:1", older) == coder("http://127.0.0.1:1")
    seen: dict[str, set[str]] = {}

    def respond(request: Seen, number: int) -> bytes:
        del number
        offered = {tool["function"]["name"] for tool in request.body.get("tools", [])}
        who = "coder" if "You are a coder." in texts(request) else "other"
        seen[who] = seen.get(who, set()) | offered
        if "vote" in offered:
            own = [shown.name for shown in materials(request.body["messages"][-1]["content"]) if shown.yours]
            return used("vote", agent_id=own[0], reason="Mine.")
        return used("new_answer", content=f"42 says {who}") if "new_answer" in offered else said({"content": "42"})

    async with answering(respond) as double:
        model = {"type": "chatcompletion", "model": "m", "base_url": f"{double.url}/v1", "api_key_env": "MY_KEY"}
        agents = [coder(double.url, older).model_dump(mode="json")["agents"][0], {"id": "other", "backend": model}]
        ended = await run_team(tmp_path, config_from_data({"agents": agents}, "t"), environ=environ)
    assert ended.snapshot.state == "completed"
    assert "run_command" in seen["coder"]
    assert "run_command" not in seen["other"]


async def test_a_model_whose_server_takes_no_tools_runs_its_code_too(tmp_path: Path, environ: dict[str, str]) -> None:
    def respond(seen: Seen, number: int) -> bytes:
        del number
        if "tools" in seen.body:
            return without_tools()
        if "42\n" not in texts(seen):
            return said({"content": CODE})
        return said({"content": '{"name": "new_answer", "arguments": {"content": "It is 42."}}'})

    async with answering(respond) as double:
        ended = await run_team(tmp_path, coder(double.url), environ=environ)
    assert ended.snapshot.final_answer == "It is 42."
    (executed,) = ended.of(ToolFinished)
    assert executed.result.endswith("\n42")


def without_tools() -> bytes:
    told = {"error": {"message": "registry.ollama.ai/library/m does not support tools", "type": "api_error"}}
    return reply(json.dumps(told).encode(), status="400 Bad Request", media_type="application/json")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```python\nprint(1)\n```", [("python3", "print(1)")]),
        ("  ```PY \r\nprint(1)\r\n  ```\r\n", [("python3", "print(1)")]),
        ("```sh\na\n```\nthen\n```bash\nb\n\n```", [("sh", "a"), ("bash", "b")]),
        ("```python\nx = 1\n```sh\ny\n```", [("python3", "x = 1\n```sh\ny")]),
        ("```python\nnot closed", []),
        ("```\nls\n```\n```python title=x\nls\n```", []),
        ("say ```python\nprint(1)\n```", []),
        ("```python\n" * 200_000, []),
    ],
)
def test_which_blocks_of_a_reply_are_code(text: str, found: list[tuple[str, str]]) -> None:
    assert [(block.program, block.code) for block in code_blocks(text)] == found


def test_a_config_whose_agents_run_code_is_one_that_starts_programs(tmp_path: Path) -> None:
    found = reach_of(coder("http://127.0.0.1:1"), ENVIRON, tmp_path).permissions
    assert RunCommands("agents", CommandPlace()) in found


# -- groups -----------------------------------------------------------------------------------------------------------


def group(url: str, **settings: Any) -> Config:
    def model(name: str) -> dict[str, Any]:
        return {"api_type": "openai", "model": name, "base_url": f"{url}/v1", "api_key_env": "MY_KEY"}

    config: dict[str, Any] = {
        "llm_config": model("m-usual"),
        "agents": [
            {"type": "assistant", "name": "Coder", "system_message": "You write code."},
            {
                "type": "assistant",
                "name": "Tester",
                "description": "Runs tests.",
                "llm_config": model("m-tester"),
                "code_execution_config": EXECUTION,
            },
        ],
        "pattern": {
            "type": "auto",
            "initial_agent": "Coder",
            "group_manager_args": {"llm_config": model("m-manager")},
            "summary_method": "last_msg",
        },
        "max_rounds": 10,
        **settings,
    }
    other = {"id": "other", "backend": {"type": "scripted", "script": [{"answer": "41"}, {"vote": "tested"}]}}
    price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
    backend = {"type": "ag2", "group_config": config, "price": price}
    return config_from_data({"agents": [{"id": "group", "backend": backend}, other]}, "t")


def of_group(seen: Seen) -> bytes:
    """Coder, Tester with code, Tester, then whoever acts for the group."""
    told = texts(seen)
    match seen.body["model"]:
        case "m-manager":
            return said({"content": "I choose User." if "All tests passed" in told else "Tester"})
        case "m-tester":
            return said({"content": "All tests passed." if "What came of your code:" in told else CODE})
        case _:
            offered = {tool["function"]["name"] for tool in seen.body.get("tools", [])}
            if "vote" in offered and "said:" in told:
                own = [shown.name for shown in materials(told) if "tested" in shown.text]
                return used("vote", agent_id=own[-1], reason="It is tested.")
            if "new_answer" in offered:
                return used("new_answer", content="42, and tested.")
            return said({"content": "def f(): return 42"})


async def test_a_group_talks_with_a_manager_runs_its_tests_and_acts_as_one_agent(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    async with answering(lambda seen, _: of_group(seen)) as double:
        ended = await run_team(tmp_path, group(double.url), environ=environ)
        requests = double.requests
    assert (ended.snapshot.state, ended.snapshot.degraded) == ("completed", [])
    assert ended.snapshot.winner is not None
    assert ended.snapshot.winner.agent == "agent_a"
    first = [reply for reply in ended.of(ModelReplied, "agent_a") if reply.call_id.startswith("agent_a.1.1.")]
    assert [(reply.model, [call.name for call in reply.tool_calls]) for reply in first] == [
        ("m-usual", ["next_speaker"]),
        ("m-manager", ["next_speaker"]),
        ("m-tester", ["run_command"]),
        ("m-tester", ["next_speaker"]),
        ("m-manager", ["next_speaker"]),
        ("m-usual", ["new_answer"]),
    ]
    executed = [finished for finished in ended.of(ToolFinished) if finished.name == "run_command"]
    assert executed[0].result.endswith("\n42")
    coder_asked, manager_asked, tester_asked, _, _, user_asked = requests[:6]
    assert "You write code." in texts(coder_asked)
    for one in (coder_asked, tester_asked):
        assert not {"new_answer", "vote", "next_speaker"} & {tool["function"]["name"] for tool in one.body["tools"]}
    assert "tools" not in manager_asked.body
    assert "Tester: Runs tests." in texts(manager_asked)
    assert "Coder said:\ndef f(): return 42" in texts(manager_asked)
    assert "Coder said:\ndef f(): return 42" in texts(tester_asked)
    assert "Tester said:\nAll tests passed." in texts(user_asked)
    assert [tool["function"]["name"] for tool in user_asked.body["tools"]] == ["new_answer"]
    assert "next_speaker" not in json.dumps([seen.body for seen in requests])


async def test_a_talk_ends_after_its_rounds_and_a_manager_who_names_nobody_is_passed_over(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    def respond(seen: Seen, number: int) -> bytes:
        del number
        return said({"content": "Hm."}) if seen.body["model"] in ("m-manager", "m-tester") else of_group(seen)

    async with answering(respond) as double:
        ended = await run_team(tmp_path, group(double.url, max_rounds=3), environ=environ)
    assert ended.snapshot.state == "completed"
    first = [reply for reply in ended.of(ModelReplied, "agent_a") if reply.call_id.startswith("agent_a.1.1.")]
    spoke = [reply.model for reply in first]
    assert spoke == ["m-usual", "m-manager", "m-tester", "m-manager", "m-usual", "m-usual"]


async def test_a_group_goes_on_where_its_talk_was_cut_off(tmp_path: Path, environ: dict[str, str]) -> None:
    async with answering(lambda seen, _: of_group(seen)) as double:
        ended = await run_team(tmp_path, group(double.url), environ=environ)
        journal = ended.directory.path / "events.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        tested = next(at for at, line in enumerate(lines) if b"All tests passed" in line and b"model_replied" in line)
        journal.write_bytes(b"".join(lines[: tested + 1]))
        before = len(double.requests)
        again = await execute_run(RunFiles(ended.directory.path), "run-test", RunContext(environ))
        after = [seen.body["model"] for seen in double.requests[before:]]
    assert again.state == "completed"
    assert after[:2] == ["m-manager", "m-usual"], "neither Coder nor Tester of the first talk is asked again"


def test_every_model_of_a_group_has_its_own_host_key_and_price(tmp_path: Path) -> None:
    models = {name: {"api_type": name, "model": model} for name, model in (("openai", "gpt-5"), ("google", GEMINI))}
    google = {"name": "Reviewer", "llm_config": models["google"]}
    pattern = {"type": "auto", "initial_agent": "Reviewer"}
    talk = {"llm_config": models["openai"], "agents": [google], "pattern": pattern}
    config = config_from_data({"agents": [{"id": "g", "backend": {"type": "ag2", "group_config": talk}}]}, "t")
    assert missing_keys(config, {}) == ["OPENAI_API_KEY", "GOOGLE_API_KEY"]
    keys = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "g"}
    reach = reach_of(config, keys, tmp_path)
    assert reach.hosts == ("api.openai.com", "generativelanguage.googleapis.com")
    assert [str(pair.key) for pair in reach.keys] == ["OPENAI_API_KEY", "GEMINI_API_KEY"]
    backend = config.agents[0].backend
    tariff, spent = tariff_of(backend, keys), Usage(input_tokens=1_000_000, output_tokens=0)
    costs = [tariff.cost(spent, model=model).usd for model in ("gpt-5", GEMINI)]
    assert costs == [
        tariff_of(other, keys).cost(spent).usd
        for other in (
            ProviderBackendConfig(type="openai", model="gpt-5"),
            ProviderBackendConfig(type="gemini", model=GEMINI),
        )
    ]
    assert costs[0] != costs[1]
    assert tariff.worst_usd(1_000_000, 0) == max(cost or 0 for cost in costs)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"agents": []}, "agents: expected at least 1, found 0"),
        ({"agents": [{"name": "User"}]}, "group_config: agents in a group need distinct names"),
        ({"agents": [{"name": "Manager"}]}, "group_config: agents in a group need distinct names"),
        (
            {"pattern": {"type": "auto", "initial_agent": "Bo"}},
            "pattern.initial_agent: expected one of Coder, Tester",
        ),
        ({"pattern": {"type": "round_robin", "initial_agent": "Coder"}}, "pattern.type: expected 'auto'"),
        ({"user_agent": {"name": "Boss"}}, "group_config: user_agent has the name User"),
        ({"max_round": 3}, "max_round: unknown key; did you mean 'max_rounds'?"),
        ({"user_agent": {"code_execution_config": {"use_docker": True}}}, "use_docker: code runs in the same sandbox"),
    ],
)
def test_a_group_that_cannot_talk_is_refused_by_place(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(MassgenError) as caught:
        group("http://127.0.0.1:1", **wrong)
    assert str(caught.value).startswith("t: agents[0].backend.group_config")
    assert told in str(caught.value)
