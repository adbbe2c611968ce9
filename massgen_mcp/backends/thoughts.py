"""Thoughts that a model streams as text, in tags before its reply, told apart from the reply. Pure.

Only what comes first is a thought: the same tags further on are text like any other.
"""

import re
from collections.abc import Iterator

from massgen_mcp.backends.base import ReasoningPart, TextPart

_CLOSED_BY = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<thoughts>": "</thoughts>",
    "<reasoning>": "</reasoning>",
    "<reflection>": "</reflection>",
    "[THINK]": "[/THINK]",  # Magistral
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<|begin_of_thought|>": "<|end_of_thought|>",  # Sky-T1, OpenThinker
    "◁think▷": "◁/think▷",  # Kimi
    "<|START_THINKING|>": "<|END_THINKING|>",  # Cohere
    "<|channel|>analysis<|message|>": "<|end|>",  # gpt-oss
    "<|start|>assistant<|channel|>analysis<|message|>": "<|end|>",
}
"""How models open their thoughts, in any case of letters, and how they close them."""

_LONGEST = max(map(len, _CLOSED_BY))
_LONE_END = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
"""Templates of DeepSeek-R1 and QwQ put the opening tag into the prompt, so that only the closing one is written."""


_SPOKEN = re.compile(
    r"\A\s*(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)(?: <\|constrain\|>\w+)?<\|message\|>"
    r"(?P<harmony>.*?)"
    r"(?:<\|(?:return|end)\|>)?\s*\Z"
    r"|\A\s*<\|START_(?:RESPONSE|TEXT)\|>(?P<cohere>.*?)(?:<\|END_(?:RESPONSE|TEXT)\|>)?\s*\Z"
    r"|\Aanalysis(?P<thought>[^<].*)assistantfinal(?P<bare>.*)\Z",
    re.DOTALL,
)
"""A reply between the marks of its model's template, which servers take off where they know the model."""
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "<|return|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", "</s>", "<end_of_turn>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
)
"""They end a reply, and some servers let them through."""


class ThoughtsApart:
    """Splits one reply's text as it is streamed, cut anywhere."""

    def __init__(self) -> None:
        self._held = ""
        """What cannot be told yet."""
        self._end: str | None = None
        """The tag that ends the thought that is open."""
        self._speaks = False
        """The reply itself has begun."""
        self._thought = False

    def add(self, text: str) -> Iterator[ReasoningPart | TextPart]:
        self._held += text
        while self._held:
            if self._speaks:
                yield TextPart(self._take(len(self._held)))
            elif self._end is None:
                if not self._is_clear():
                    return
            else:
                found = re.search(re.escape(self._end), self._held, re.IGNORECASE)
                until = found.start() if found else len(self._held) - len(self._end) + 1
                if until > 0:
                    yield ReasoningPart(self._take(until))
                if found is None:
                    return
                self._take(len(self._end))
                self._end, self._thought = None, True

    def end(self) -> Iterator[ReasoningPart | TextPart]:
        """What was held back."""
        if self._held:
            held = self._take(len(self._held))
            yield TextPart(held) if self._end is None else ReasoningPart(held)

    def _is_clear(self) -> bool:
        """Whether it is clear how the text goes on."""
        start = self._held.lstrip()
        for opening, closing in _CLOSED_BY.items():
            if start[: len(opening)].lower() == opening.lower():
                self._held, self._end = start[len(opening) :], closing
                return True
        if len(start) < _LONGEST and any(opening.lower().startswith(start.lower()) for opening in _CLOSED_BY):
            return False
        if self._thought:
            self._held = start  # the blank lines after a thought belong to it
        self._speaks = True
        return True

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken


def thoughts_apart(text: str) -> tuple[str, str]:
    """The thoughts that a whole reply begins with, and the reply."""
    split = ThoughtsApart()
    thoughts, texts = list[str](), list[str]()
    for part in (*split.add(text), *split.end()):
        (thoughts if isinstance(part, ReasoningPart) else texts).append(part.text)
    reply = "".join(texts)
    if reply == text and (lone := _LONE_END.search(reply)):
        before = reply[: lone.start()]
        if "<think>" not in before.lower() and before.count("```") % 2 == 0:
            return before.strip(), reply[lone.end() :].lstrip()
    return "".join(thoughts).strip(), reply


def strip_template(reasoning: str, text: str) -> tuple[str, str]:
    """Return a reply's thoughts and text without what the model's own template puts around the text."""
    while token := next(filter(text.rstrip().endswith, END_TOKENS), None):
        text = text.rstrip().removesuffix(token).rstrip()
    if "<|" not in text and not text.startswith("analysis"):
        return reasoning, text
    spoken = _SPOKEN.match(text)
    if spoken is None:
        return reasoning, text
    said = next(given for name in ("harmony", "cohere", "bare") if (given := spoken[name]) is not None)
    return reasoning or (spoken["thought"] or "").strip(), said.strip()
