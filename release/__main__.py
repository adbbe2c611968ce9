"""`python -m release check`: everything of a release but the upload, on this machine, into `dist/`.

`notes` prints what the changelog says of the version, `tagged TAG` whether a release may have this tag. Exit code 1:
something is wrong, and it is named.
"""

import argparse
import sys

from release import check
from release.changelog import CHANGELOG, check_tag, notes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="build, try, list, sign and verify")
    commands.add_parser("notes", help="print what the changelog says of this version")
    commands.add_parser("tagged", help="whether a release may have this tag").add_argument("tag")
    given = parser.parse_args()
    match given.command:
        case "check":
            return check.run()
        case "notes":
            print(notes(CHANGELOG.read_text(encoding="utf-8")), end="")
            return 0
        case _:
            if fault := check_tag(given.tag, CHANGELOG.read_text(encoding="utf-8")):
                print(fault, file=sys.stderr)
            return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
