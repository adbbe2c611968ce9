"""Which file systems are shared with other machines: a state directory must not lie on one.

Locks and the run store's shared memory hold among the processes of one kernel.
"""

import os
import sys
from pathlib import Path

from massgen_mcp.errors import MassgenError

NETWORK_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "ncpfs", "afs", "coda"),
        *("ceph", "lustre", "gpfs", "beegfs", "orangefs", "pvfs2", "panfs", "wekafs", "gfs2", "ocfs2"),
        *("9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs"),
    }
)
"""Types as the operating system names them: network, cluster, and directories that a host shares with its guests."""
LOCAL_FUSE_TYPES = frozenset({"fuseblk", "fuse.fuse-overlayfs", "fuse.fuse2fs", "fuse.gocryptfs", "fuse.encfs"})
"""Block devices (NTFS, exFAT, ext), layers of containers, encrypted directories. Any other FUSE may lead anywhere."""

_MNT_LOCAL = 0x1000
_STATFS_FLAGS = slice(64, 68)
_STATFS_TYPE = slice(72, 88)


def network_type(path: Path) -> str | None:
    """The type of the network file system that `path` lies on, or would if it were made; None: a local one, or nobody
    can tell.
    """
    try:
        if sys.platform == "linux":
            return _on_linux(path)
        if sys.platform == "darwin":
            return _on_macos(path)
    except OSError:  # whoever uses the path meets the same error, and can say what was wanted of it
        return None
    return None


def refuse_network(path: Path) -> None:
    """Raises `MassgenError` store_unavailable if `path` lies on a network file system."""
    if kind := network_type(path):
        raise MassgenError("store_unavailable", f"{network_message(path, kind)}; {LOCAL_ADVICE}")


def network_message(path: Path, kind: str) -> str:
    return f"{path} is on a network file system ({kind}), where locks and the run store aren't reliable"


LOCAL_ADVICE = "set MASSGEN_MCP_HOME to a directory on a local disk"


def type_of_mount(mountinfo: str, mount: int) -> str | None:
    """The type of the network file system with this mount id in the text of `/proc/self/mountinfo` (proc(5)); None for
    a local or an unknown one.
    """
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if before.split(" ", 1)[0] == str(mount):
            return _network(after.split(" ", 1)[0])
    return None


def type_in_statfs(found: bytes) -> str | None:
    """The type of the network file system in a `struct statfs` of macOS (sys/mount.h, 64-bit inodes); None for a local
    one.
    """
    kind = found[_STATFS_TYPE].partition(b"\0")[0].decode("ascii", "replace")
    local = int.from_bytes(found[_STATFS_FLAGS], sys.byteorder) & _MNT_LOCAL
    return _network(kind) if local else kind


def _network(kind: str) -> str | None:
    fuse = "fuse" in kind and kind not in LOCAL_FUSE_TYPES
    return kind if fuse or kind in NETWORK_TYPES else None


def _nearest(path: Path) -> Path:
    return next((place for place in (path, *path.parents) if place.exists()), path)


def _on_linux(path: Path) -> str | None:
    place = os.open(_nearest(path), os.O_PATH | os.O_CLOEXEC)
    try:
        facts = Path(f"/proc/self/fdinfo/{place}").read_text()
    finally:
        os.close(place)
    mounts = [line.split()[1] for line in facts.splitlines() if line.startswith("mnt_id:")]
    if not mounts:
        return None
    return type_of_mount(Path("/proc/self/mountinfo").read_text(errors="replace"), int(mounts[0]))


def _on_macos(path: Path) -> str | None:
    import ctypes  # nobody else needs it

    libc = ctypes.CDLL(None, use_errno=True)
    statfs = getattr(libc, "statfs$INODE64", None) or libc.statfs
    found = ctypes.create_string_buffer(4096)
    if statfs(os.fsencode(_nearest(path)), found):
        return None
    return type_in_statfs(found.raw)
