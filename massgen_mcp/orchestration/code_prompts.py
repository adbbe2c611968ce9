"""What agents read of their work where they have copies of the caller's directories: how to go about it, which checks
judge it, and what to look at in the work of others. Pure.

Short on purpose, and the same during a phase as far as it can be: models read it with every call.
"""

from collections.abc import Iterator, Sequence

from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.views.plain_text import counted

OWN_COPIES = """\
Your own copy of {of} is {names}: work there. What differs from the original in the end is your patch; it belongs to \
your answer, and the others read it. Do not repeat it in the text."""
BEGINS = """\
Your copy begins with what an earlier turn changed ({files}), which is not in the original. Go on from there: your \
patch holds that and what you change, so take back what is not wanted."""
HOW_TO_WORK = """\
Before you change files, read how they are built, tested and used elsewhere. Change what is asked for and nothing \
else, in the style that is there."""
HOW_TO_VERIFY = """\
Where something is broken, reproduce it first. After your change run it again, with the tests nearest to it, in your \
copy; say in the answer what you ran and what it showed. Git in your copy knows the original as its only commit."""
CHECKS = "Checks decide about the files of every answer. They are, run in your copy of {of}:"
PROTECTED = "Tests and what checks are configured by count as they were before, so changing them does not help."
HOW_TO_JUDGE = """\
Judge what an answer changes, not what it says of it: does it do all that is asked for; are tests or checks weakened, \
left out or served by a special case; does it change more than is asked for; does it leave dead code or break other \
callers?"""


def code_notes(
    copies: Sequence[str],
    checks: Sequence[str],
    base: FilesChecked | None,
    *,
    earlier: int = 0,
    commands: bool,
    judges: bool,
) -> tuple[str, ...]:
    """For an agent with `copies` of directories, by name; none for others. `checks`: their commands; `base`: what they
    say of the original files, if that is known; `earlier`: so many files that copies begin with are changed already.
    `commands`: it can run some; `judges`: answers stand on its ballot.
    """
    if not copies:
        return ()
    of = ", ".join(f"context/{name}" for name in copies)
    notes = [OWN_COPIES.format(of=of, names=", ".join(f"{name}/" for name in copies))]
    if earlier:
        notes.append(BEGINS.format(files=counted(earlier, "file")))
    notes.append(f"{HOW_TO_WORK} {HOW_TO_VERIFY}" if commands else HOW_TO_WORK)
    if checks:
        notes.append("\n".join([CHECKS.format(of=f"context/{copies[0]}"), *_listed(checks, base), PROTECTED]))
    if judges:
        notes.append(HOW_TO_JUDGE)
    return tuple(notes)


def _listed(checks: Sequence[str], base: FilesChecked | None) -> Iterator[str]:
    known = {outcome.command: outcome for outcome in base.outcomes} if base is not None else {}
    for command in checks:
        outcome = known.get(command)
        stands = "" if outcome is None else f" ({outcome.result.replace('_', ' ')} on the original: {outcome.how})"
        if outcome is not None and outcome.obstacle is not None:
            stands = f" (it fails for the environment, also on the original, and will not count: {outcome.how})"
        yield f"- `{command}`{stands}"
