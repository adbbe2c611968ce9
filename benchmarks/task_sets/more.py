"""Further functions for the coding tasks, beside those of `benchmarks.deciding`."""


def roman(n: int) -> str:
    """The Roman numeral of abs(n) + 1, with IV, IX and XL for four, nine and forty."""
    n = abs(n) + 1
    out = ""
    for value, letters in ((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while n >= value:
            out += letters
            n -= value
    return out


def gray(n: int) -> str:
    """The Gray code of abs(n) in binary digits, `0` for 0: n, changed by an exclusive or with its own half."""
    n = abs(n)
    return format(n ^ (n // 2), "b")


def digital_root(n: int) -> int:
    """The digits of abs(n) * 37 are summed up, and those of the sum again, until one digit is left."""
    n = abs(n) * 37
    while n > 9:
        n = sum(int(digit) for digit in str(n))
    return n


def zeckendorf(n: int) -> list[int]:
    """The different Fibonacci numbers 1, 2, 3, 5, ... with the sum abs(n), no two of them neighbours, largest first."""
    n = abs(n)
    numbers = [1, 2]
    while numbers[-1] <= n:
        numbers.append(numbers[-1] + numbers[-2])
    out: list[int] = []
    for number in reversed(numbers):
        if number <= n:
            out.append(number)
            n -= number
    return out


def josephus(n: int, m: int) -> int:
    """abs(n) + 1 people stand in a circle and are numbered from 1. Counting from the first, every (abs(m) + 1)-th of
    those who are left leaves, until one is left: the number of that one.
    """
    people = list(range(1, abs(n) + 2))
    step = abs(m) + 1
    place = 0
    while len(people) > 1:
        place = (place + step - 1) % len(people)
        people.pop(place)
    return people[0]


def clock(n: int, m: int) -> str:
    """The time, as HH:MM on a clock of 24 hours, n quarters of an hour and m minutes after midnight; before, if that is
    negative.
    """
    minutes = (n * 15 + m) % 1440
    return f"{minutes // 60:02}:{minutes % 60:02}"


def inversions(xs: list[int]) -> int:
    """How many pairs of places hold a larger number before a smaller one."""
    return sum(1 for i in range(len(xs)) for j in range(i + 1, len(xs)) if xs[i] > xs[j])


def increasing(xs: list[int]) -> int:
    """The length of the longest row of numbers that grow strictly, when others between them may be left out."""
    best: list[int] = []
    for i, x in enumerate(xs):
        best.append(1 + max((best[j] for j in range(i) if xs[j] < x), default=0))
    return max(best, default=0)


def water(xs: list[int]) -> int:
    """Walls as high as the numbers, those below 0 as 0, each one wide, stand in a row: how much rain stays between?"""
    walls = [max(0, x) for x in xs]
    return sum(min(max(walls[: i + 1]), max(walls[i:])) - wall for i, wall in enumerate(walls))


def stock(xs: list[int]) -> int:
    """The largest gain of buying at one of these prices and selling at a later one, once; 0 where none is a gain."""
    best = 0
    for i, x in enumerate(xs):
        best = max(best, max(xs[i:]) - x)
    return best


def ranks(xs: list[int]) -> list[int]:
    """For each number its place among the different numbers, the largest is 1; equal ones have the same."""
    order = sorted(set(xs), reverse=True)
    return [order.index(x) + 1 for x in xs]


def caesar(s: str) -> str:
    """Every letter moved on in the alphabet by the place of its word (the first word by 1), Z goes on with A; words are
    parted by single blanks, and all else stays.
    """
    out: list[str] = []
    for shift, word in enumerate(s.split(" "), start=1):
        moved = ""
        for c in word:
            if "a" <= c <= "z":
                moved += chr((ord(c) - 97 + shift) % 26 + 97)
            elif "A" <= c <= "Z":
                moved += chr((ord(c) - 65 + shift) % 26 + 65)
            else:
                moved += c
        out.append(moved)
    return " ".join(out)


def tally(s: str) -> str:
    """Each different character and how often it is there, as in `a2b1`: the most frequent first, of equally frequent
    ones the one that came first.
    """
    seen = list(dict.fromkeys(s))
    seen.sort(key=lambda c: -s.count(c))
    return "".join(f"{c}{s.count(c)}" for c in seen)


def decoded(s: str) -> str:
    """Each digit is left out and repeats the character after it so often; of digits in a row only the last one does."""
    out = ""
    times = 1
    for c in s:
        if c.isdigit():
            times = int(c)
        else:
            out += c * times
            times = 1
    return out


def shared(s: str, t: str) -> str:
    """The longest text that is in both without a gap; of several the one that begins first in the first text."""
    for length in range(len(s), 0, -1):
        for start in range(len(s) - length + 1):
            if s[start : start + length] in t:
                return s[start : start + length]
    return ""
