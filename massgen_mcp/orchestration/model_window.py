"""How much one agent's model reads in one call, as far as it is known, and how much of it a request takes."""

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.orchestration.team import Member
from massgen_mcp.orchestration.window import SHOWN


def abilities_of(member: Member) -> Abilities:
    """What its model was found not to take; nobody remembers it where the member shares nothing with others."""
    return member.limiter.abilities(member.backend.model, member.own_tools) if member.limiter else Abilities()


def window_of(member: Member, abilities: Abilities) -> int | None:
    """Tokens, as a refusal told, else as the price list has it. None: nobody knows."""
    return abilities.window or member.tariff.window()


def readable_bytes(member: Member) -> int | None:
    """About so much text may open a conversation. None: nobody knows."""
    abilities = abilities_of(member)
    window = window_of(member, abilities)
    return None if window is None else abilities.bytes_of(SHOWN * window)
