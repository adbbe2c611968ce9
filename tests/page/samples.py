"""Runs to look at, played by scripted agents in this process, and their reports as the product writes them."""

from pathlib import Path
from typing import Any

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.runs.view.reporting import write_report
from tests.teams import Act, Ended, run_team

QUESTION = "Should we rewrite it or refactor it?"

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "</script><script>alert(3)</script>",
    "<!-- <script>",
    "abc\u202egnp.exe\u202c\u2066\u2069",
    "\x1b[31mred\x1b]0;title\x07\x00",
    "[press me](javascript:alert(4))",
    "[press me](data:text/html,<script>alert(5)</script>)",
    "![picture](http://127.0.0.1:9/picture.png)",
    "<svg onload=alert(6)><iframe src=javascript:alert(7)></iframe>",
    "\"'><base href=http://127.0.0.1:9/><style>*{display:none}</style>",
    "| a | b |\n|---|---|\n| <b onclick=alert(8)>x</b> | `<u>` |",
    "```html\n<script>alert(9)</script>\n```",
    "[" * 3_000 + "*" * 3_000 + "`" * 3_001,
    "> " * 500 + "deep",
    "\n".join("  " * depth + "- item" for depth in range(60)),
    "\u2028\u2029${alert(10)}",
)
"""Texts that want to be something else than text."""


def agent(name: str, *script: dict[str, Any], **settings: Any) -> dict[str, Any]:
    backend = {"type": "scripted", "model": f"model-of-{name}", "script": list(script), **settings}
    return {"id": name, "backend": backend}


def price(usd: float) -> dict[str, Any]:
    return {"price": {"input_usd_per_million": usd, "output_usd_per_million": 5 * usd}}


async def reported(
    path: Path, *agents: dict[str, Any], question: str = QUESTION, act: Act | None = None, **settings: Any
) -> Ended:
    """Play a run to its end, and write its report as whoever executes a run does."""
    config = config_from_data({"agents": agents, **settings}, "test", environ={})
    environ = {"MASSGEN_MCP_HOME": str(path / "home")}
    ended = await run_team(path, config, question=question, act=act, environ=environ)
    write_report(ended.directory, ended.snapshot, None, {})
    return ended


async def disagreeing(path: Path) -> Ended:
    """Three agents: ada votes for herself, bo's second answer voids that, ada comes round to bo, cleo dissents."""
    return await reported(
        path,
        agent(
            "ada",
            {"answer": "Rewrite it."},
            {"vote": "own", "reason": "Mine."},
            {"vote": "piece", "reason": "Safer."},
            **price(2),
        ),
        agent(
            "bo",
            {"answer": "Replace it\n\n- in nine months, slowly\n- piece by piece"},
            {"answer": "Replace it\n\n- in six months, slowly\n- piece by piece\n- with tests", "delay_seconds": 0.2},
            {"vote": "own", "reason": "It can stop after any step."},
            presentation="**Neither**: replace it piece by piece.",
            **price(5),
        ),
        agent(
            "cleo", {"answer": "Mend it."}, {"vote": "Mend", "reason": "Less work.", "delay_seconds": 0.4}, **price(1)
        ),
    )


async def failing(path: Path) -> Ended:
    """Nobody is left, and there is no answer."""
    broken = {"fail": "auth"}
    return await reported(path, agent("ada", broken), agent("bo", broken), agent("cleo", {"say": "Hm."}, *[broken] * 9))


async def hostile(path: Path) -> Ended:
    """Whatever can be said is said by somebody who means harm; the question is a word of a million letters."""
    text = "\n\n".join(HOSTILE)
    return await reported(
        path,
        agent("ada", {"answer": text}, {"vote": "own", "reason": text}, {"vote": "own", "reason": text}),
        agent("bo", {"answer": f"{text} too"}, {"vote": "own", "reason": f"\u202e{text}"}),
        question=f"<script>alert(11)</script>\u202e{'q' * 1_000_000}",
    )


PRICES = "".join(f"price_{number} = {number}\n" for number in range(30))
CHECKS = ("sh check.sh", "grep -q told notes")


async def checked(path: Path, notes: str = "told\n") -> Ended:
    """Three agents work on code with checks, of which the second does not pass before: ada breaks something and changes
    what judges it, bo does it right and changes it once more in the end, cleo only talks. `notes`: what bo writes.
    """
    project = path / "project"
    project.mkdir(parents=True)
    (project / "prices").write_text(PRICES)
    (project / "notes").write_text("nothing\n")
    (project / "check.sh").write_text("echo looked at the prices\ngrep -qx 'price_20 = 20' prices || "
                                      "{ echo 'FAILED: price_20 is wrong'; exit 3; }\n"
                                      "echo Ran $(grep -c . prices) tests in 0.1s\n")  # fmt: skip

    def write(name: str, text: str) -> dict[str, Any]:
        return {"call": "write_file", "arguments": {"path": f"project/{name}", "content": text}}

    wrong = PRICES.replace("price_7 = 7", "price_7 = 9").replace("price_20 = 20", "price_20 = 21")
    right = PRICES.replace("price_7 = 7", "price_7 = 8").replace("price_28 = 28\n", "")
    return await reported(
        path,
        agent("ada", write("prices", wrong), write("check.sh", "exit 0\n"), {"answer": "All green."}, {"vote": "told"}),
        agent(
            "bo",
            *(write("prices", right), write("notes", notes), {"answer": "Price seven is eight, and it is told."}),
            {"vote": "told"},
            presentation="Price seven is eight now.",
        ),
        agent("cleo", {"answer": "I would not touch it."}, {"vote": "touch"}),
        question="Make price seven eight.",
        orchestrator={
            "context_paths": [{"path": str(project), "permission": "write"}],
            "checks": CHECKS,
            "checks_policy": "required",
            "decide": "vote",
        },
    )


async def weak(path: Path) -> Ended:
    """Ten agents; the winner has three of ten votes."""
    names = ("ada", "bo", "cleo", "dan", "eve", "fay", "gus", "hal", "ida", "jon")
    votes = ("ada", "ada", "ada", "bo", "bo", "cleo", "cleo", "dan", "eve", "fay")
    team = (
        agent(name, {"answer": f"{name} says: mend it."}, {"vote": f"{of} says", "reason": f"As {of} says."})
        for name, of in zip(names, votes, strict=True)
    )
    return await reported(path, *team)


async def tested(path: Path) -> Ended:
    """Three agents write a script each, and tests about the others'; those choose, and one test does not count."""
    project = path / "project"
    project.mkdir(parents=True)
    (project / "double.sh").write_text("exit 1\n")

    def tests(*numbers: tuple[int, int]) -> dict[str, Any]:
        written = [
            {"title": f"The double of {one} is {two}.", "script": f"sh double.sh {one}", "expected": str(two)}
            for one, two in numbers
        ]
        return {"call": "submit_tests", "arguments": {"tests": written}}

    def doubles(name: str, code: str, *numbers: tuple[int, int]) -> dict[str, Any]:
        write = {"call": "write_file", "arguments": {"path": "project/double.sh", "content": f"echo $(( {code} ))\n"}}
        return agent(name, write, {"answer": f"It is {code}."}, tests(*numbers))

    return await reported(
        path,
        doubles("ada", "$1 + 2", (3, 6), (5, 10)),
        doubles("bo", "$1 * $1", (4, 8), (2, 4)),
        doubles("cleo", "$1 * 2", (0, 0)),
        question="Write double.sh.",
        orchestrator={"context_paths": [{"path": str(project), "permission": "write"}], "decide": "checks"},
    )
