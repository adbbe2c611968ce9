"""Words and forms that no sentence for people or clients should have, and how many each place still has.

The counts of `forms.json` may only fall; README and the pages that have none keep none.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.words.sentences import CODE_SPAN, Sentence

KEPT = Path(__file__).with_name("forms.json")
"""One line per place."""

FORMS: Mapping[str, re.Pattern[str]] = {
    "name the actor": re.compile(r"\b(nobody|somebody|whoever|whomever|anybody)\b", re.IGNORECASE),
    "name the thing": re.compile(r"\b(whatever|there is no such)\b", re.IGNORECASE),
    "use a word that readers know": re.compile(
        r"\b(doors?|wires?|ballots?|camps?|(?<!a )lot|(?<!test )runners?|members?)\b", re.IGNORECASE
    ),
    "say it with a usual verb": re.compile(
        r"\b(told|tells? of|hears?|heard|heeds?|vouched|mends?|mended|begun|sees? to|cares? for|takes? part"
        r"|came to|comes? to|is to be had|set aside|hands? on|drawn by|worked off)\b",
        re.IGNORECASE,
    ),
    "say what changes or counts": re.compile(
        r"\b(that|which|who|votes?|reason|answer|file|it|they|line|table) stands?\b"
        r"|\bstands? (in|at|below|beside|there)\b"
        r"|\bso (many|much) (of|runs|levels|agents)\b",
        re.IGNORECASE,
    ),
    "begin with a noun or a verb": re.compile(
        r"^(?:(?:What|Who|Whose|Whom|Whether|Of|Those|So many|So much)\b(?=.*\.$)"
        r"|(?:what|who|whose|whom|whether|so many|so much)\b(?!.*\?$))"
    ),
    "put also or too elsewhere": re.compile(r", too\b(?!\s\w)|\btoo[.;:]?$|\balso[.;:]?$"),
}
"""Each with the advice that its name gives. Text in backticks isn't looked at."""


def find_forms(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """Yield each sentence that has a banned form, with the advice."""
    for sentence in sentences:
        text = CODE_SPAN.sub("x", sentence.text)
        for advice, form in FORMS.items():
            if found := form.search(text):
                yield sentence, f"{found[0]!r}: {advice}"


def count_forms(sentences: Iterable[Sentence]) -> dict[str, int]:
    """Count the sentences of each place that have a banned form."""
    listed = list(sentences)
    counts = Counter(dict.fromkeys(sorted({one.place for one in listed}), 0))
    counts.update(one.place for one in {sentence for sentence, _ in find_forms(listed)})
    return dict(counts)


def read_counts() -> dict[str, int]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


def write_counts(counts: Mapping[str, int]) -> None:
    lines = [f"{json.dumps(place)}: {count}" for place, count in counts.items()]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def find_more(kept: Mapping[str, int], counted: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each place that has more than before."""
    for place, count in counted.items():
        before = kept.get(place, 0)
        if count > before:
            listing = f"python -m tests.words forms '{place}'"
            yield f"{place}: {count} sentences have a banned form, {before} had before; `{listing}` lists them"
