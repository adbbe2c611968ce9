"""A question about code from end to end, over MCP: the tests decide between three answers, and the patch comes back."""

import subprocess
from pathlib import Path
from typing import Any

from tests.checks.project import commit
from tests.harness import TempHome, agent, call, home

__all__ = ["home"]

SHOP = {
    "shop/__init__.py": "",
    "shop/prices.py": """\
def total(prices):
    return sum(prices)


def with_discount(prices, percent):
    return total(prices) * percent / 100
""",
    "tests/__init__.py": "",
    "tests/test_prices.py": """\
import unittest

from shop.prices import total, with_discount


class Prices(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([10, 20]), 30)

    def test_discount(self):
        self.assertEqual(with_discount([10, 30], 25), 30)
""",
    "tests/test_shop.py": """\
import unittest

from shop.prices import total


class Shop(unittest.TestCase):
    def test_nothing_costs_nothing(self):
        self.assertEqual(total([]), 0)
""",
}
WHOLE, BUG = "python3 -m unittest -q tests.test_shop", "python3 -m unittest -q tests.test_prices"


def edit(old: str, new: str, name: str = "shop/prices.py") -> dict[str, Any]:
    return {"call": "edit_file", "arguments": {"path": f"shop-repo/{name}", "old": old, "new": new}}


RIGHT = edit("total(prices) * percent / 100", "total(prices) * (100 - percent) / 100")
BREAKS = [
    edit("total(prices) * percent / 100", "total(prices) * (100 - percent) / 100"),
    edit("return sum(prices)", "return sum(prices) if prices else None"),
]
"""It mends the bug, and breaks what was right."""


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True, text=True).stdout


def passes(place: Path, check: str) -> bool:
    return subprocess.run(check.split(), cwd=place, check=False, capture_output=True).returncode == 0


async def test_of_three_answers_to_a_code_question_the_one_that_passes_wins_and_its_patch_is_applied(
    home: TempHome, tmp_path: Path
) -> None:
    repository = tmp_path / "shop-repo"
    for name, text in SHOP.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    commit(repository)
    (repository / "notes.txt").write_text("unfinished work of the person\n")
    before = git(repository, "status", "--porcelain")

    loud = [{"answer": "Fixed. Every test passes, trust me."}, {"vote": "trust me"}, {"vote": "took the rest"}]
    config = home.config(
        "team",
        agent("breaks", *BREAKS, *loud),
        agent("wrong", edit("[10, 30], 25), 30)", "[10, 30], 25), 10)", "tests/test_prices.py"),
              {"answer": "The test expected too much."}, {"vote": "trust me"}, {"vote": "took the rest"}),
        agent("right", RIGHT, {"answer": "It took the percentage, not what it took the rest from."},
              {"vote": "trust me"}, {"vote": "took the rest"}),
        orchestrator={"checks_policy": "goal"},
    )  # fmt: skip
    async with home.client() as client:
        started = await call(
            client, "start_run", config=config, question="test_discount fails. Mend it.", checks=[WHOLE, BUG],
            context_paths=[{"path": str(repository), "permission": "write"}],
        )  # fmt: skip
        run_id = started["run_id"]
        await call(client, "wait_run", run_id=run_id)
        result = await call(client, "get_result", run_id=run_id)
        assert result["status"] == "completed"
        assert result["winner"] == "right"
        said = {(line["of"], line["command"]): line for line in result["checks"]}
        came = {of: [said[of, command]["result"] for command in (WHOLE, BUG)] for of, _ in said}
        assert came == {
            "base": ["passed", "failed"],
            "agent1.1": ["failed", "passed"],
            "agent2.1": ["passed", "failed"],
            "agent3.1": ["passed", "passed"],
            "final": ["passed", "passed"],
        }
        assert said["agent2.1", BUG]["with_own_files"] == "passed"
        assert "AssertionError: None != 0" in said["agent1.1", WHOLE]["excerpt"]
        assert git(repository, "status", "--porcelain") == before
        assert git(repository, "diff") == ""

        planned = await call(client, "apply_result", run_id=run_id)
        assert git(repository, "diff") == ""
        applied = await call(client, "apply_result", run_id=run_id, dry_run=False)
    assert planned["files"] == applied["files"]
    changed = [
        line
        for line in git(repository, "diff", "-U0").splitlines()
        if line[:1] in "-+" and line[:3] not in ("---", "+++")
    ]
    assert changed == [
        "-    return total(prices) * percent / 100",
        "+    return total(prices) * (100 - percent) / 100",
    ]
    assert git(repository, "status", "--porcelain") == f" M shop/prices.py\n{before}"
    assert passes(repository, WHOLE)
    assert passes(repository, BUG)
