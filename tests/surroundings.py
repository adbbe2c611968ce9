"""`python -m tests.surroundings DESCRIPTOR ...` tells as JSON what a program finds when it starts; exit code 3."""

import json
import os
import signal
import sys
from hashlib import sha256
from pathlib import Path


def in_proc(name: str) -> list[str]:
    return Path(f"/proc/self/{name}").read_bytes().decode(errors="backslashreplace").rstrip("\0").split("\0")


def hashed(variables: list[str]) -> list[str]:
    """The variables without their values, which may be keys."""
    return sorted(f"{one.partition('=')[0]} {sha256(one.encode()).hexdigest()}" for one in variables)


def main() -> int:
    descriptor = int(sys.argv[1])
    found = {
        "arguments": sys.argv,
        "directory": str(Path.cwd()),
        "variables": hashed([f"{name}={value}" for name, value in os.environ.items()]),
        "path": sys.path,
        "input": sys.stdin.read(),
        "leads its session": os.getsid(0) == os.getpid(),
        "SIGINT": str(signal.getsignal(signal.SIGINT)),
        "handed on": [os.read(descriptor, 99).decode(), os.get_inheritable(descriptor)],
        "arguments, as others see them": in_proc("cmdline")[1:],
        "variables, as others see them": hashed(in_proc("environ")),
    }
    print(json.dumps(found))
    return 3


if __name__ == "__main__":
    sys.exit(main())
