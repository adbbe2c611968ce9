"""What one agent's model is told in one piece of work, message by message, and what of it may go to make room in the
model's window. Pure: what is left out, and when, is an event.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import AssistantMessage, Message, UserMessage
from massgen_mcp.events.parts import ShortenedText, TextKind
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.team import Member

FULL = 0.7
"""A conversation that takes a larger part of the window than this is made smaller, ..."""
ROOMY = 0.5
"""... until it takes at most this one: what is cached at the provider is lost only now and then."""
NOTED_WITHIN, NOTED_CHARACTERS = 0.9, 1_000
"""A note is asked for while its request takes at most so much of the window, if need be with so much of each result."""
LONGEST_NOTE = 0.1
"""So much of the window a note takes at most."""
SHOWN = 0.4
"""So much of the window may be taken by what a conversation opens with."""
LEAST_SHOWN = 100
"""Characters of one text."""
LONGEST_SHOWN = 200_000
"""Characters of one text on a ballot, whatever a model can read: every other agent has to pay for it."""

WindowPart = Literal["lasting", "ballot", "note", "work"]
"""Lasting is the question and what the caller says. Of ballots the last one stays. A note takes the place of work."""


@dataclass(frozen=True, slots=True)
class RoomStep:
    """One way to make room. What the last `kept_replies` replies brought stays whole; of earlier results `characters`
    stay each, or None: a note takes the place of all that is earlier.
    """

    kept_replies: int
    characters: int | None = None


ROOM_STEPS = (
    RoomStep(4, 1_000),
    RoomStep(4),
    RoomStep(1, 1_000),
    RoomStep(1),
    RoomStep(0, 4_000),
    RoomStep(0, 500),
    RoomStep(0),
)
"""One after the other, until there is room."""


@dataclass(frozen=True, slots=True)
class _Entry:
    message: Message
    part: WindowPart
    shortened: Callable[[int], Message] | None = None


class Transcript:
    def __init__(self, opening: Iterable[Message]) -> None:
        self._entries = [_Entry(message, "lasting") for message in opening]

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(entry.message for entry in self._entries)

    def add(
        self, message: Message, part: WindowPart = "work", shortened: Callable[[int], Message] | None = None
    ) -> None:
        """`shortened` makes the same message with at most so many characters of its text."""
        self._entries.append(_Entry(message, part, shortened))

    def shortened(self, kept_replies: int, characters: int) -> "Transcript":
        """With so many characters of the results before the last so many replies, and no ballot but the last."""
        end, last = self._end_of_earlier(kept_replies), self._last_ballot
        copy = Transcript(())
        for place, entry in enumerate(self._entries):
            if entry.part == "ballot" and place != last:
                copy.add(UserMessage(prompts.OLDER_BALLOT))
            elif place < end and entry.shortened is not None:
                copy.add(entry.shortened(characters), entry.part, entry.shortened)
            else:
                copy.add(entry.message, entry.part, entry.shortened)
        return copy

    def reopen(self, opening: Iterable[Message]) -> "Transcript":
        """With another opening of as many messages."""
        copy = Transcript(opening)
        copy._entries += self._entries[len(copy._entries) :]
        return copy

    def has_earlier(self, kept_replies: int) -> bool:
        """Whether there is a reply before the last so many."""
        earlier = self._entries[: self._end_of_earlier(kept_replies)]
        return any(isinstance(entry.message, AssistantMessage) for entry in earlier)

    def condensed(self, note: str | None, kept_replies: int) -> "Transcript":
        """With `note` in place of the work before the last so many replies. None: an earlier note stays there."""
        end, last = self._end_of_earlier(kept_replies), self._last_ballot
        copy, notes = Transcript(()), list[Message]()
        for place, entry in enumerate(self._entries[:end]):
            if entry.part == "lasting" or (entry.part == "ballot" and place == last):
                copy.add(entry.message, entry.part)
            elif entry.part == "note":
                notes.append(entry.message)
        for message in [UserMessage(note)] if note else notes or [UserMessage(prompts.NOT_NOTED)]:
            copy.add(message, "note")
        for entry in self._entries[end:]:
            copy.add(entry.message, entry.part, entry.shortened)
        return copy

    @property
    def _last_ballot(self) -> int | None:
        return max((place for place, entry in enumerate(self._entries) if entry.part == "ballot"), default=None)

    def _end_of_earlier(self, kept_replies: int) -> int:
        replies = [place for place, entry in enumerate(self._entries) if isinstance(entry.message, AssistantMessage)]
        if not kept_replies:
            return len(self._entries)
        return replies[-kept_replies] if len(replies) > kept_replies else 0


def within(text: str, most: int | None) -> str:
    """At most so many characters of a text, from its beginning and its end, and how many are not shown."""
    if most is None or len(text) <= most:
        return text
    end = most // 3
    return prompts.LEFT_OUT.format(
        beginning=text[: most - end], count=f"{len(text) - most:,}", end=text[len(text) - end :]
    )


def all_within(texts: Mapping[str, str], most: int | None) -> dict[str, str]:
    return {name: within(text, most) for name, text in texts.items()}


def most_of_each(texts: Iterable[str], room: int) -> int | None:
    """So many characters of each text fit into `room` bytes together; short ones leave more for the others. None: all
    of them fit.
    """
    sizes = sorted((len(text.encode("utf-8", "replace")), len(text)) for text in texts)
    for place, (size, characters) in enumerate(sizes):
        if size * (len(sizes) - place) > room:
            share = room // (len(sizes) - place)
            return max(LEAST_SHOWN, share * characters // size)
        room -= size
    return None


Texts = Mapping[TextKind, Sequence[str]]
"""What a conversation opens with, by kind."""


def list_texts(texts: Texts) -> list[str]:
    return [text for those in texts.values() for text in those]


def measure_shortened(texts: Texts, most: int | None) -> tuple[ShortenedText, ...]:
    """Return how much of each kind is shown where at most `most` characters of each text are; none that is whole."""
    if most is None:
        return ()
    shares = (
        ShortenedText(text=kind, shown=sum(min(len(one), most) for one in those), of=sum(map(len, those)))
        for kind, those in texts.items()
    )
    return tuple(share for share in shares if share.shown < share.of)


# ---------------------------------------------------------------------------------------------------------------------
# How much one agent's model reads in one call, as far as it is known, and how much of it a request takes.


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
