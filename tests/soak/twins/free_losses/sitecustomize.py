"""A known-bad twin: a product that does not charge for calls that were lost with their process."""

# pyright: reportPrivateUsage=false

from massgen_mcp.backends.metering import Meter
from massgen_mcp.orchestration import model_calls
from massgen_mcp.orchestration.team import Member


def _nothing(member: Member, meter: Meter) -> model_calls._Bill:
    del member, meter
    return model_calls._NOTHING


model_calls._estimate = _nothing
