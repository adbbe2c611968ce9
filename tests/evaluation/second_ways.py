"""The answer to each of the hundred questions, found from its words in another way than the one that made it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import permutations, product

NAMES = ("Ada", "Bo", "Cy", "Dee", "Eli")
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _remainder(text: str) -> str:
    a, b, c, m = _numbers(text)
    return str((sum(a % m for _ in range(b)) + c) % m)


def _weekday(text: str) -> str:
    """By Zeller's congruence for the day that lies later."""
    year, month, day, later = _numbers(text)
    there = date.fromordinal(date(year, month, day).toordinal() + later)
    y, m = (there.year - 1, there.month + 12) if there.month < 3 else (there.year, there.month)
    found = (there.day + 13 * (m + 1) // 5 + y + y // 4 - y // 100 + y // 400) % 7
    return DAYS[(found + 6) % 7]


def _letters(text: str) -> str:
    letter, words = re.findall(r"letter (\w) in these words: (.*)\?", text)[0]
    return str(Counter(words)[letter])


def _register(text: str) -> str:
    start, steps = re.findall(r"Begin with (\d+)\. Then, in this order: (.*)\. Which", text)[0]
    value = Fraction(start)
    for step in steps.split("; "):
        match step.split():
            case ["add", n]:
                value += int(n)
            case ["subtract", n]:
                value -= int(n)
            case ["multiply", n]:
                value *= int(n)
            case _:
                value = value / 2 if (value / 2).denominator == 1 else value
    return str(value)


def _line(text: str) -> str:
    directly = re.findall(r"(\w+) stands directly before (\w+)", text)
    before = re.findall(r"(\w+) stands somewhere before (\w+)", text)
    orders = [
        order
        for order in map(" ".join, permutations(NAMES))
        if all(f"{a} {b}" in order for a, b in directly) and all(re.search(f"{a}.*{b}", order) for a, b in before)
    ]
    (order,) = orders
    place = ("first", "second", "third", "fourth").index(re.findall(r"Who is (\w+)\?", text)[0])
    return order.split()[place]


def _liars(text: str) -> str:
    said = re.findall(r'(\w+) says: "(?:Exactly (\d) of us always lie|(\w+) always lies)"', text)
    found: set[int] = set()
    for lying in product((0, 1), repeat=4):
        lies = dict(zip(NAMES[:4], lying, strict=True))
        if all(bool(lies[a]) != ((sum(lying) == int(n)) if n else bool(lies[b])) for a, n, b in said):
            found.add(sum(lying))
    (number,) = found
    return str(number)


def _paths(text: str) -> str:
    _, _, width, height, _, x, y = _numbers(text)

    @cache
    def ways(at: tuple[int, int]) -> int:
        if at == (x, y) or at[0] > width or at[1] > height:
            return 0
        return 1 if at == (width, height) else ways((at[0] + 1, at[1])) + ways((at[0], at[1] + 1))

    return str(ways((0, 0)))


def _base(text: str) -> str:
    digits, of, to = re.findall(r"number (\d+) is written in base (\d)\. Write it in base (\d)", text)[0]
    number, power, out = int(digits, int(of)), 1, ""
    while power * int(to) <= number:
        power *= int(to)
    while power:
        out, number, power = out + str(number // power), number % power, power // int(to)
    return out


def _dice(text: str) -> str:
    one, other, least = _numbers(text)[:3]
    bad = sum(min(other, max(0, least - 1 - a)) for a in range(1, one + 1))
    return str(1 - Fraction(bad, one * other))


def _coins(text: str) -> str:
    amount, *values = _numbers(text)
    counts = (range(amount // value + 1) for value in values)
    return str(sum(sum(c * v for c, v in zip(each, values, strict=True)) == amount for each in product(*counts)))


SECOND_WAYS: Mapping[str, Callable[[str], str]] = {
    "remainder": _remainder, "weekday": _weekday, "letters": _letters, "register": _register, "line": _line,
    "liars": _liars, "paths": _paths, "base": _base, "dice": _dice, "coins": _coins,
}  # fmt: skip
