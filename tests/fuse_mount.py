"""A real FUSE mount, empty and read-only, as an operating system shows one of sshfs: a program of its own, for a mount
namespace of its own.

`unshare --mount python -m tests.fuse_mount DIRECTORY COMMAND ...` mounts it at DIRECTORY, answers the kernel while the
command goes on, and ends with the command's exit code.
"""

import errno
import os
import struct
import subprocess
import sys
import threading

HEADER = struct.Struct("<IIQQIIII")
REPLY = struct.Struct("<IiQ")
LOOKUP, FORGET, GETATTR, STATFS, INIT, BATCH_FORGET = 1, 2, 3, 17, 26, 42
ATTRIBUTES = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40700, 2, os.getuid(), os.getgid(), 0, 4096, 0)
ANSWERS = {
    GETATTR: struct.pack("<QII", 3600, 0, 0) + ATTRIBUTES,
    STATFS: struct.pack("<5Q4I24x", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, 0),
    INIT: struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 16, 0, 12, 10, 1 << 16, 1, 1, 0, 0),
}


def serve(device: int) -> None:
    while True:
        try:
            request = os.read(device, 1 << 18)
        except OSError:
            return  # unmounted
        _, opcode, unique, *_ = HEADER.unpack_from(request)
        if opcode in (FORGET, BATCH_FORGET):
            continue
        body = ANSWERS.get(opcode, b"")
        error = 0 if body else -errno.ENOENT if opcode == LOOKUP else -errno.EROFS
        os.write(device, REPLY.pack(REPLY.size + len(body), error, unique) + body)


def main(directory: str, command: list[str]) -> int:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    mount = ["mount", "-i", "-t", "fuse.sshfs", "-o", options, "server:/export", directory]
    subprocess.run(mount, pass_fds=[device], check=True)
    threading.Thread(target=serve, args=[device], daemon=True).start()
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
