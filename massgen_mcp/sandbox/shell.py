"""The shell that runs commands and checks inside of a sandbox: bash, which is what models and people write."""

_LAUNCHER = """\
if command -v bash >/dev/null 2>&1; then exec bash -c "$1" bash; fi
case "$1" in *'&>'*)
  echo "There is no bash here, and sh would run this in the background: write '> FILE 2>&1' in place of '&> FILE'." >&2
  exit 2;;
esac
exec /bin/sh -c "$1" sh"""
"""What is there is only known inside: the programs of an image are other ones than those of the machine."""


def build_shell_command(command: str) -> list[str]:
    """Return the words of a process that runs this command in bash, or in `/bin/sh` where there is none."""
    return ["/bin/sh", "-c", _LAUNCHER, "sh", command]
