"""What came of an evaluation: as lines of a terminal, as data, as a drawing of cost against accuracy, and as a page."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from massgen_mcp.evaluation.comparing import Comparison, Evaluation, Row
from massgen_mcp.page.document import hash_source
from massgen_mcp.statistics.sums import share
from massgen_mcp.statistics.words import counts_text, share_text, table
from massgen_mcp.views.spent import count, dollars

HEADS = ("RIGHT", "USD PER ITEM", "TOKENS PER ITEM", "FAILED", "")
DIFFERENCES = (0.10, 0.05, 0.03)
WIDTH, HEIGHT, LEFT, BELOW, LABEL = 640, 360, 60, 40, 14
STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem; text-align: left; }
tr + tr { border-top: 1px solid #ccc; } svg { max-width: 100%; height: auto; }
"""


def headline(found: Evaluation, source: str) -> str:
    usd = sum(line["usd"] or 0.0 for line in found.results.all)
    unknown = "" if all(line["priced"] for line in found.results.all) else ", plus calls with unknown prices"
    mixed = " The runs used different versions of configs, prompts or packages." if found.mixed else ""
    asked = f"{len(found.whole)} of {len(found.items)} items of {source}"
    return f"{asked}: {found.stopped}. {dollars(usd)} spent{unknown}.{mixed}"


def rows(found: Evaluation) -> list[tuple[str, ...]]:
    return [_cells(row) for row in found.rows()]


def _cells(row: Row) -> tuple[str, ...]:
    each, usd, tokens = max(1, row.items), "", ""
    if row.tokens:
        tokens = count(round(row.tokens / each))
        usd = "n/a" if row.usd is None else dollars(row.usd / each)
    return row.name, share_text(share(row.count, row.items)), usd, tokens, counts_text(row.failed), row.note


def sentences(comparison: Comparison) -> list[str]:
    """What was counted, and the one sentence that may be claimed."""
    one, other, paired = comparison.first, comparison.second, comparison.paired
    needed = ", ".join(
        f"{100 * difference:.0f} points {n:,}" for difference in DIFFERENCES if (n := paired.needed(difference))
    )
    counted = (
        f"{one} and {other}: both right {paired.both}, only {one} {paired.only_first}, only {other} "
        f"{paired.only_second}, neither {paired.neither}; {100 * paired.difference:+.1f} points "
        f"({100 * paired.low:+.1f} to {100 * paired.high:+.1f}), {paired.p_text} (McNemar, exact)"
    )
    claim = paired.claim(one, other, settled=comparison.settled)
    return [counted, *([f"number of items needed to show a difference of {needed}"] if needed else []), claim]


def report_lines(found: Evaluation, source: str) -> Iterator[str]:
    yield headline(found, source)
    yield from table("WHO", HEADS, rows(found))
    for comparison in found.comparisons():
        yield ""
        yield from sentences(comparison)


def as_data(found: Evaluation, source: str) -> dict[str, Any]:
    made = [
        {"name": row.name, "right": row.count, "items": row.items, "usd": row.usd, "tokens": row.tokens,
         "failed": dict(row.failed), "note": row.note}
        for row in found.rows()
    ]  # fmt: skip
    pairs = [
        {"first": one.first, "second": one.second, "both": one.paired.both, "only_first": one.paired.only_first,
         "only_second": one.paired.only_second, "neither": one.paired.neither, "difference": one.paired.difference,
         "low": one.paired.low, "high": one.paired.high, "p": one.paired.p, "settled": one.settled,
         "claim": sentences(one)[-1]}
        for one in found.comparisons()
    ]  # fmt: skip
    return {"told": headline(found, source), "items": len(found.whole), "rows": made, "comparisons": pairs}


def drawing(found: Sequence[Row]) -> str:
    """Cost against accuracy as SVG: dollars, or tokens where some price is unknown; with 95 % of each share."""
    drawn = [row for row in found if row.items and row.tokens]
    in_dollars = all(row.usd is not None for row in drawn)
    costs = [((row.usd or 0.0) if in_dollars else row.tokens) / row.items for row in drawn]
    most = max(costs, default=0) or 1
    parts: list[str] = []
    labels: list[tuple[float, float]] = []
    for share_of in range(0, 101, 20):
        y = _y(share_of / 100)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share_of} %</text>')
    for row, cost in zip(drawn, costs, strict=True):
        x, within = LEFT + 20 + cost / most * (WIDTH - LEFT - 40), share(row.count, row.items)
        low, high, y = _y(within.low or 0.0), _y(within.high or 0.0), _y(row.count / row.items)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="#888" stroke-width="2"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#06c"/>')
        price = dollars(cost) if in_dollars else count(round(cost))
        beside, anchor = (x - 9, "end") if x > WIDTH / 2 else (x + 9, "start")
        label = f"{escape(row.name)} ({price})"
        height = y + 4
        while any(abs(x - there) < WIDTH / 2 and abs(height - above) < LABEL for there, above in labels):
            height -= LABEL
        labels.append((x, height))
        parts.append(f'<text x="{beside:.1f}" y="{height:.1f}" text-anchor="{anchor}">{label}</text>')
    unit = "US dollars" if in_dollars else "tokens"
    parts.append(
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{unit} for an item, up to the right; share that is right, upwards</text>'
    )
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>\n'


def _y(part: float) -> float:
    return 20 + (1 - part) * (HEIGHT - BELOW - 40)


def page(found: Evaluation, source: str) -> str:
    """One file without scripts, that asks nobody for anything."""
    policy = f"default-src 'none'; style-src {hash_source(STYLE)}"
    cells = [("WHO", *HEADS), *rows(found)]
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in cells)
    comparisons = "".join(f"<p>{'<br>'.join(map(escape, sentences(one)))}</p>\n" for one in found.comparisons())
    measured = sorted({f"{line['id'].partition('/')[0]}: {'; '.join(line['measured'])}" for line in found.results.all})
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Evaluation</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}"><style>{STYLE}</style>\n'
        f"<h1>Evaluation</h1>\n<p>{escape(headline(found, source))}</p>\n{drawing(found.rows())}"
        f"<table>\n{body}</table>\n{comparisons}<h2>Measured with</h2>\n"
        f"<p>Each line lists a name, the digests of its config and of the prompts, and versions.</p>\n"
        f"<p>{'<br>'.join(map(escape, measured))}</p>\n</html>\n"
    )
