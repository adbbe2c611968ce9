"""Writes the list of MassGen's examples, and what came of each, into docs/python.md."""

import re
from pathlib import Path

PAGE = Path(__file__).parent / "python.md"
EXAMPLES = Path(__file__).parent.parent / "tests" / "api" / "programmatic_api.md"
BEGIN, END = "<!-- list: written by `make docs` -->\n", "<!-- end of the list -->\n"


def page() -> str:
    """The page with the list as the examples have it now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_list()}\n{END}{after}"


def _list() -> str:
    found = re.findall(
        r"^## (\d+)\. (.+?)\n\n(.+?)\n\n```\w+\n(.+?)\n", EXAMPLES.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    plain = {text for *_, text, _ in found if re.match(r"Runs(\.$|, (after|with) )|The same(\.|, | names, )", text)}
    same = ", ".join(number for number, _, outcome, _ in found if outcome in plain)
    rows = [f"| {number} | {title} | {outcome} |" for number, title, outcome, _ in found if outcome not in plain]
    return "\n".join(
        [
            f"Blocks {same} work unchanged.\n",
            "| block | topic | result here |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
