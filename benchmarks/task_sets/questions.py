"""A hundred short questions with one answer each, ten of each kind, made from a seed.

`tests/evaluation/second_ways.py` finds every answer anew from the words of the question, in another way.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from fractions import Fraction
from itertools import permutations, product
from random import Random
from typing import Any

SEED = 20261126
OF_EACH = 10
NAMES: tuple[str, ...] = ("Ada", "Bo", "Cy", "Dee", "Eli")
WORDS = ("barrel", "lantern", "meadow", "parallel", "sleepless", "balloon", "cellar", "tunnel", "needle", "willow")


def questions() -> Iterator[dict[str, Any]]:
    for make in KINDS:
        random = Random(f"{SEED}/{make.__name__}")
        asked: dict[str, str] = {}
        while len(asked) < OF_EACH:
            question, answer = make(random)
            asked[question] = answer
        for number, (question, answer) in enumerate(asked.items(), start=1):
            yield {"id": f"{make.__name__}-{number}", "input": question, "target": answer}


def remainder(random: Random) -> tuple[str, str]:
    a, b, c, m = random.randint(200, 999), random.randint(200, 999), random.randint(100, 999), random.randint(11, 97)
    return f"What is the remainder when {a} * {b} + {c} is divided by {m}?", str((a * b + c) % m)


def weekday(random: Random) -> tuple[str, str]:
    day = date(2001, 1, 1) + timedelta(days=random.randint(0, 9000))
    later = random.randint(100, 2000)
    name = (day + timedelta(days=later)).strftime("%A")
    return f"{day:%Y-%m-%d} is a {day:%A}. Which day of the week is it {later} days later? Name it in English.", name


def letters(random: Random) -> tuple[str, str]:
    words = random.sample(WORDS, 6)
    letter = random.choice("aeln")
    text = " ".join(words)
    return f"How often is the letter {letter} in these words: {text}?", str(text.count(letter))


def register(random: Random) -> tuple[str, str]:
    value = start = random.randint(3, 20)
    steps: list[str] = []
    for _ in range(7):
        n = random.randint(2, 9)
        kind = random.choice(("add", "subtract", "multiply", "halve"))
        if kind == "halve":
            steps.append("if the number is even, halve it")
            value = value // 2 if value % 2 == 0 else value
        else:
            steps.append(f"{kind} {n}")
            value = {"add": value + n, "subtract": value - n, "multiply": value * n}[kind]
    return f"Begin with {start}. Then, in this order: {'; '.join(steps)}. Which number is it now?", str(value)


def line(random: Random) -> tuple[str, str]:
    """Clues are added until one order is left."""
    order = random.sample(NAMES, len(NAMES))
    left: list[tuple[str, ...]] = [*permutations(NAMES)]
    clues: list[str] = []
    while len(left) > 1:
        one, other = random.sample(NAMES, 2)
        apart = order.index(other) - order.index(one)
        if apart == 1:
            clue, fits = f"{one} stands directly before {other}", _directly(one, other)
        elif apart > 1:
            clue, fits = f"{one} stands somewhere before {other}", _before(one, other)
        else:
            continue
        kept = [each for each in left if fits(each)]
        if len(kept) < len(left):
            clues.append(clue)
            left = kept
    place = random.choice(("second", "third", "fourth"))
    answer = order[("first", "second", "third", "fourth").index(place)]
    return f"{', '.join(sorted(NAMES))} stand in a line. {'. '.join(clues)}. Who is {place}?", answer


def _directly(one: str, other: str) -> Callable[[tuple[str, ...]], bool]:
    return lambda order: order.index(other) - order.index(one) == 1


def _before(one: str, other: str) -> Callable[[tuple[str, ...]], bool]:
    return lambda order: order.index(one) < order.index(other)


def liars(random: Random) -> tuple[str, str]:
    """Statements are drawn until there is one way in which they can be."""
    names = NAMES[:4]
    while True:
        said = [(speaker, random.choice(names), random.randint(0, 4), random.random() < 0.5) for speaker in names]
        fits = [
            honest
            for honest in product((True, False), repeat=len(names))
            if all(
                honest[names.index(a)] == ((honest.count(False) == n) if of_all else not honest[names.index(b)])
                for a, b, n, of_all in said
            )
        ]
        if len(fits) == 1 and all(a != b or of_all for a, b, _, of_all in said):
            break
    words = [
        f'{a} says: "{f"Exactly {n} of us always lie" if of_all else f"{b} always lies"}"' for a, b, n, of_all in said
    ]
    begin = "Each of Ada, Bo, Cy and Dee either always tells the truth or always lies."
    return f"{begin} {'. '.join(words)}. How many of the four always lie?", str(fits[0].count(False))


def paths(random: Random) -> tuple[str, str]:
    width, height = random.randint(3, 5), random.randint(3, 5)
    blocked = (random.randint(1, width - 1), random.randint(1, height - 1))
    ways = {(0, 0): 1}
    for x, y in product(range(width + 1), range(height + 1)):
        if (x, y) != (0, 0):
            ways[x, y] = 0 if (x, y) == blocked else ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
    goal = f"from (0, 0) to ({width}, {height})"
    rule = f"with steps of 1 to the right or up only, and without passing through ({blocked[0]}, {blocked[1]})"
    return f"How many ways are there {goal}, {rule}?", str(ways[width, height])


def base(random: Random) -> tuple[str, str]:
    number, of, to = random.randint(200, 3000), random.choice((3, 5, 7)), random.choice((4, 6, 8, 9))
    return (
        f"The number {_written(number, of)} is written in base {of}. Write it in base {to}, digits only.",
        _written(number, to),
    )


def _written(number: int, to: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, to)
        digits = f"{digit}{digits}"
    return digits


def dice(random: Random) -> tuple[str, str]:
    one, other = random.choice((4, 6, 8)), random.choice((6, 8, 10, 12))
    least = random.randint(5, one + other - 2)
    good = sum(a + b >= least for a, b in product(range(1, one + 1), range(1, other + 1)))
    share = Fraction(good, one * other)
    question = f"A die with {one} sides and a die with {other} sides are thrown once. How likely is a sum of at least"
    return f"{question} {least}? Answer with a fraction in lowest terms, such as 2/3.", str(share)


def coins(random: Random) -> tuple[str, str]:
    values = sorted(random.sample((2, 3, 4, 5, 7, 9), 3))
    amount = random.randint(20, 40)
    ways = [1] + [0] * amount
    for value in values:
        for at in range(value, amount + 1):
            ways[at] += ways[at - value]
    told = f"{values[0]}, {values[1]} and {values[2]}"
    question = f"In how many ways can {amount} be paid with coins of {told}, as many of each as one likes?"
    return f"{question} The order of the coins does not matter.", str(ways[amount])


KINDS: tuple[Callable[[Random], tuple[str, str]], ...] = (
    *(remainder, weekday, letters, register, line, liars, paths, base, dice, coins),
)
