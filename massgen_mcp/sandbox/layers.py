"""Gives directories a layer in memory that is written to in their stead, and is gone with the command.

By namespaces of this process's own, so that nobody else sees it. Loaded by `supervisor` from beside it, which is why it
knows no other module of ours.
"""

import ctypes
import os
from collections.abc import Sequence

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x4000, 1 << 18
TRIAL_SECONDS = 10


def put_on(places: Sequence[str], size: int, files: int, trial: Sequence[str]) -> bool:
    """Whether writing below these directories writes into layers from now on, for this process and all that come of it.
    The layers hold so many bytes and files together. Where the kernel does not allow it, or `trial` then fails, nothing
    is changed. Raises `OSError` where this process must not go on.
    """
    child = os.fork()
    if not child:
        _try(places, size, files, trial)
    if os.waitpid(child, 0)[1]:
        return False
    _put_on(places, size, files)
    return True


def _try(places: Sequence[str], size: int, files: int, trial: Sequence[str]) -> None:
    """Exits with 0 if it can be done."""
    import subprocess  # most commands have no layers, and start without it

    code = 1
    try:
        _put_on(places, size, files)
        code = subprocess.run(trial, env={}, capture_output=True, timeout=TRIAL_SECONDS, check=False).returncode  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        pass
    finally:
        os._exit(code)


def _put_on(places: Sequence[str], size: int, files: int) -> None:
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)

    def mount(kind: str | None, place: str, flags: int, options: str | None) -> None:
        words = [word and os.fsencode(word) for word in (kind, place, kind, options)]
        if libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]):
            raise OSError(ctypes.get_errno(), "mount", place)

    mount(None, "/", MS_REC | MS_PRIVATE, None)
    below = [os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW) for place in places]
    mount("tmpfs", places[0], MS_NOSUID | MS_NODEV, f"size={size},nr_inodes={files},mode=700")  # covered at once, below
    layers = os.open(places[0], os.O_PATH | os.O_DIRECTORY)
    for number, (place, lower) in enumerate(zip(places, below, strict=True)):
        own = f"/proc/self/fd/{layers}/{number}"
        for name in (own, f"{own}/upper", f"{own}/work"):
            os.mkdir(name, 0o755)
        os.chmod(f"{own}/upper", os.fstat(lower).st_mode & 0o7777)
        options = f"userxattr,lowerdir=/proc/self/fd/{lower},upperdir={own}/upper,workdir={own}/work"
        mount("overlay", place, MS_NOSUID | MS_NODEV, options)
    for descriptor in (*below, layers):
        os.close(descriptor)
