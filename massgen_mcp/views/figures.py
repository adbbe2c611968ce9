"""Time, tokens and money in a few characters."""

from massgen_mcp.money.spending import Spent
from massgen_mcp.views.spent import dollars


def clock(seconds: float) -> str:
    """01:15, or 1:02:03 from an hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def count(number: int) -> str:
    """850, 3.1k, 37k, 1.2M."""
    if number < 1000:
        return str(number)
    thousands = number / 1000
    if thousands < 1000:
        return f"{thousands:.1f}k" if thousands < 10 else f"{thousands:.0f}k"
    return f"{thousands / 1000:.1f}M"


def spent_figures(spent: Spent) -> list[str]:
    """Money, as far as prices are known, and tokens; nothing before the first call is paid for."""
    if not spent.tokens:
        return []
    return [cost_of(spent), f"{count(spent.tokens)} tokens"]


def cost_of(spent: Spent) -> str:
    """`$0.0412`, with a plus if some of it is of unknown price; unknown is never shown as nothing."""
    if spent.known_usd is None:
        return "cost n/a"
    return dollars(spent.known_usd) + ("+" if spent.unpriced_calls else "")
