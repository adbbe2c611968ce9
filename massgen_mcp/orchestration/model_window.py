"""How much one agent's model reads in one call, as far as it is known, and how much of it a request takes."""

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.orchestration.team import Member
from massgen_mcp.orchestration.window import SHOWN


def abilities_of(member: Member) -> Abilities:
    """What its model was found not to take, also for others who ask the same one."""
    return member.limiter.abilities(member.backend.model, member.own_tools) if member.limiter else member.abilities


async def learn_window(member: Member) -> None:
    """From the price list, or else from the server itself, where it tells."""
    await member.tariff.ready()
    if member.tariff.window() is None:
        await abilities_of(member).ask_window(member.backend)


def window_of(member: Member, abilities: Abilities) -> int | None:
    """Tokens, as the server or a refusal told, else as the price list has it. None: nobody knows."""
    return abilities.window or member.tariff.window()


def readable_bytes(member: Member) -> int | None:
    """About so much text may open a conversation. None: nobody knows."""
    abilities = abilities_of(member)
    window = window_of(member, abilities)
    return None if window is None else abilities.bytes_of(SHOWN * window)
