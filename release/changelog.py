"""What the changelog says of one version. Pure, but for reading it."""

import re
from pathlib import Path

from massgen_mcp import __version__

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"


def notes(text: str, version: str = __version__) -> str:
    """The section of this version; before a release that is `Unreleased`. Raises `ValueError` if there is none."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    for heading in (rf"\[?{re.escape(version)}\]?", "Unreleased"):
        for section in sections:
            title, _, body = section.partition("\n")
            if re.match(rf"{heading}(\s|$)", title):
                return body.strip() + "\n"
    raise ValueError(f"CHANGELOG.md says nothing of {version}")


def check_tag(tag: str, text: str) -> str | None:
    """What keeps a release with this tag from being made; None: nothing."""
    if tag != f"v{__version__}":
        return f"the tag is {tag}, and the package says {__version__}"
    if not re.search(rf"^## \[?{re.escape(__version__)}\]?(\s|$)", text, flags=re.MULTILINE):
        return f"CHANGELOG.md has no section of {__version__}; `Unreleased` gets that name before the tag"
    return None
