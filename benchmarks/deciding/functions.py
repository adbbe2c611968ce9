"""The tasks: small functions, each with what it is to do as its docstring."""


def clamp(n: int) -> int:
    """`n`, but at least -5 and at most 12."""
    if n < -5:
        return -5
    if n > 12:
        return 12
    return n


def digits(n: int) -> int:
    """The sum of the decimal digits of `n`, without its sign."""
    total = 0
    n = abs(n)
    while n > 0:
        total += n % 10
        n //= 10
    return total


def collatz(n: int) -> int:
    """Halve an even number, take an odd one times three plus one: how many steps from abs(n) + 1 to 1?"""
    n = abs(n) + 1
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def leap(n: int) -> bool:
    """Whether the year abs(n) * 25 is a leap year in the Gregorian calendar."""
    year = abs(n) * 25
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def grade(n: int) -> str:
    """A from 15, B from 10, C from 5, D from 0, else F."""
    if n >= 15:
        return "A"
    if n >= 10:
        return "B"
    if n >= 5:
        return "C"
    if n >= 0:
        return "D"
    return "F"


def divisors(n: int) -> int:
    """How many positive integers divide abs(n) + 1."""
    n = abs(n) + 1
    return sum(1 for d in range(1, n + 1) if n % d == 0)


def is_prime(n: int) -> bool:
    """Whether `n` is a prime number."""
    if n < 2:
        return False
    return all(n % d != 0 for d in range(2, n))


def fee(n: int) -> int:
    """Parking for `n` hours: nothing below 1, 3 for the first, 2 for each further one, at most 20."""
    if n < 1:
        return 0
    return min(20, 3 + 2 * (n - 1))


def sign_change(n: int, m: int) -> bool:
    """Whether one of the two is negative and the other positive."""
    return (n < 0 and m > 0) or (n > 0 and m < 0)


def gcd(n: int, m: int) -> int:
    """The greatest common divisor of both, without signs; 0 if both are 0."""
    n, m = abs(n), abs(m)
    while m > 0:
        n, m = m, n % m
    return n


def between(n: int, m: int) -> int:
    """How many integers lie strictly between the two."""
    return max(0, abs(n - m) - 1)


def ceil_div(n: int, m: int) -> int:
    """`n` divided by abs(m) + 1, rounded up."""
    m = abs(m) + 1
    return (n + m - 1) // m


def overlap(a: int, b: int, c: int, d: int) -> int:
    """The length of what the intervals from min to max of (a, b) and of (c, d) have in common."""
    low = max(min(a, b), min(c, d))
    high = min(max(a, b), max(c, d))
    return max(0, high - low)


def median3(a: int, b: int, c: int) -> int:
    """The middle one of three numbers."""
    return a + b + c - min(a, b, c) - max(a, b, c)


def triangle(a: int, b: int, c: int) -> str:
    """Of sides of these lengths (without signs): `none`, `equilateral`, `isosceles` or `scalene`."""
    a, b, c = sorted((abs(a), abs(b), abs(c)))
    if a == 0 or a + b <= c:
        return "none"
    if a == c:
        return "equilateral"
    return "isosceles" if a == b or b == c else "scalene"


def second(xs: list[int]) -> int:
    """The second largest different number; 0 if there is none."""
    found = sorted(set(xs))
    return found[-2] if len(found) >= 2 else 0


def longest_run(xs: list[int]) -> int:
    """The length of the longest row of equal neighbours."""
    best = run = 0
    last = None
    for x in xs:
        run = run + 1 if x == last else 1
        last = x
        best = max(best, run)
    return best


def rises(xs: list[int]) -> int:
    """How often a number is larger than the one before it."""
    return sum(1 for i in range(1, len(xs)) if xs[i] > xs[i - 1])


def max_slice(xs: list[int]) -> int:
    """The largest sum of neighbouring numbers; 0 for none at all."""
    best = total = 0
    for x in xs:
        total = max(0, total + x)
        best = max(best, total)
    return best


def rotate(xs: list[int]) -> list[int]:
    """The first two numbers moved to the end."""
    if len(xs) < 2:
        return xs
    return xs[2:] + xs[:2]


def peaks(xs: list[int]) -> int:
    """How many numbers, not at either end, are larger than both neighbours."""
    return sum(1 for i in range(1, len(xs) - 1) if xs[i - 1] < xs[i] and xs[i] > xs[i + 1])


def moves_zeros(xs: list[int]) -> list[int]:
    """All zeros at the end, the others in their order."""
    return [x for x in xs if x != 0] + [0] * xs.count(0)


def running(xs: list[int]) -> list[int]:
    """At each place the largest number so far."""
    out: list[int] = []
    for x in xs:
        out.append(x if not out or x > out[-1] else out[-1])
    return out


def balance(xs: list[int]) -> int:
    """The first place with equal sums before and after it, else -1."""
    for i in range(len(xs)):
        if sum(xs[:i]) == sum(xs[i + 1 :]):
            return i
    return -1


def pairs(xs: list[int]) -> int:
    """How many pairs of places hold numbers that sum to 0."""
    return sum(1 for i in range(len(xs)) for j in range(i + 1, len(xs)) if xs[i] + xs[j] == 0)


def trim(xs: list[int]) -> list[int]:
    """Without one smallest and one largest number, in order of size; nothing if there are fewer than three."""
    return sorted(xs)[1:-1] if len(xs) > 2 else []


def window(xs: list[int]) -> int:
    """The largest sum of three neighbours; 0 if there are fewer."""
    return max((sum(xs[i : i + 3]) for i in range(len(xs) - 2)), default=0)


def alternates(xs: list[int]) -> int:
    """The numbers at even places minus those at odd ones."""
    return sum(x if i % 2 == 0 else -x for i, x in enumerate(xs))


def mode(xs: list[int]) -> int:
    """The most frequent number; of several the smallest; 0 for none."""
    best = 0
    count = 0
    for x in sorted(set(xs)):
        if xs.count(x) > count:
            best, count = x, xs.count(x)
    return best


def search(xs: list[int]) -> int:
    """In the sorted numbers, the place at which 3 would be put in front of equal ones."""
    xs = sorted(xs)
    low, high = 0, len(xs)
    while low < high:
        middle = (low + high) // 2
        if xs[middle] < 3:
            low = middle + 1
        else:
            high = middle
    return low


def merge(xs: list[int], ys: list[int]) -> list[int]:
    """Both sorted and merged, numbers that are in both only once each time."""
    xs, ys = sorted(xs), sorted(ys)
    out: list[int] = []
    while xs and ys:
        if xs[0] == ys[0]:
            ys.pop(0)
        out.append(xs.pop(0) if not ys or xs[0] <= ys[0] else ys.pop(0))
    return out + xs + ys


def common(xs: list[int], ys: list[int]) -> list[int]:
    """The numbers of the first list that are in the second one, too, each once, by size."""
    return sorted({x for x in xs if x in ys})


def shift(s: str) -> str:
    """Each of the letters a to e becomes the next one, and e becomes a; all else stays."""
    return "".join(chr((ord(c) - 97 + 1) % 5 + 97) if "a" <= c <= "e" else c for c in s)


def vowels(s: str) -> int:
    """How many vowels (a, e, i, o, u) are in it, large or small."""
    return sum(1 for c in s.lower() if c in "aeiou")


def squeeze(s: str) -> str:
    """Equal neighbours once."""
    out = ""
    for c in s:
        if not out or out[-1] != c:
            out += c
    return out


def encode(s: str) -> str:
    """Each row of equal characters as the character, and how many if there is more than one."""
    out = ""
    i = 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out += s[i] + (str(j - i) if j - i > 1 else "")
        i = j
    return out


def palindrome(s: str) -> bool:
    """Whether its letters read the same backwards; large and small ones are the same, and all else is left out."""
    kept = [c.lower() for c in s if c.isalpha()]
    return kept == kept[::-1]


def nesting(s: str) -> int:
    """How deep the brackets go, or -1 if they are not balanced."""
    depth = best = 0
    for c in s:
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        if depth < 0:
            return -1
        best = max(best, depth)
    return best if depth == 0 else -1


def first_once(s: str) -> str:
    """The first character that occurs once; nothing if none does."""
    for c in s:
        if s.count(c) == 1:
            return c
    return ""


def capitals(s: str) -> str:
    """Every word, parted by blanks, with a capital first letter and small ones after it."""
    return " ".join(word[:1].upper() + word[1:].lower() for word in s.split(" "))


def longest_word(s: str) -> str:
    """The longest word, parted by blanks; of several the first."""
    best = ""
    for word in s.split(" "):
        if len(word) > len(best):
            best = word
    return best


def number_in(s: str) -> int:
    """The digits of the text read as one number; 0 if there are none."""
    total = 0
    for c in s:
        if c.isdigit():
            total = total * 10 + int(c)
    return total


def rank(s: str) -> int:
    """The sum of the letters' places in the alphabet (a and A are 1)."""
    return sum(ord(c) - 96 for c in s.lower() if "a" <= c <= "z")


def snake(s: str) -> str:
    """Each capital letter as `_` and its small one, without `_` at the very beginning."""
    out = ""
    for i, c in enumerate(s):
        if c.isupper():
            out += ("_" if i > 0 else "") + c.lower()
        else:
            out += c
    return out


def close(s: str, t: str) -> int:
    """In how many places the two differ; what one has more counts, too."""
    return sum(1 for a, b in zip(s, t, strict=False) if a != b) + abs(len(s) - len(t))


def prefix(s: str, t: str) -> str:
    """What both begin with."""
    n = 0
    while n < len(s) and n < len(t) and s[n] == t[n]:
        n += 1
    return s[:n]


def edits(s: str, t: str) -> int:
    """The fewest single characters to insert, delete or replace to make the first text the second."""
    row = list(range(len(t) + 1))
    for i in range(1, len(s) + 1):
        last, row[0] = row[0], i
        for j in range(1, len(t) + 1):
            step = last + (s[i - 1] != t[j - 1])
            last = row[j]
            row[j] = min(step, row[j] + 1, row[j - 1] + 1)
    return row[-1]
