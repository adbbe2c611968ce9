"""A repository of its own in every copy, with the base as its only commit, for the git of agents' commands.

It is put into a copy once and is the agent's from then on: whatever becomes of it, nothing outside of the sandbox reads
it, no tree holds it, and it leads nowhere. It borrows no objects, so that no history of the user's is in it, nor work
of other agents.
"""

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from threading import Lock

from massgen_mcp.changes.base import Base, BaseDirectory
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.repository import PrivateRepository
from massgen_mcp.workspace import openat
from massgen_mcp.workspace.snapshot import remove_tree

_OWN = ".git"
_CONFIG = """\
[core]
\trepositoryFormatVersion = 0
\tbare = false
\tfileMode = true
\tautocrlf = false
\tlogAllRefUpdates = true
[user]
\tname = agent
\temail = agent@localhost
[gc]
\tauto = 0
[maintenance]
\tauto = false
[init]
\tdefaultBranch = main
"""
_ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding\n"
"""The bytes of files are their content here, too."""
_GLOB = re.compile(rb"([\\*?\[])")


class CopyHistory:
    """For the copies of one run. Safe from several threads."""

    def __init__(self, repository: PrivateRepository, base: Base, place: Path) -> None:
        """`place`: a directory of ours on the file system of the workspaces, which is made when it is needed."""
        self._repository = repository
        self._base = base
        self._place = place
        self._made = Lock()
        self._refused: dict[str, str] = {}

    def put_into(self, workspace: Path) -> list[str]:
        """Give each copy in a workspace its repository, unless something is in its place. Returns why one has none."""
        for number, directory in enumerate(self._base.directories):
            if directory.name not in self._refused:
                try:
                    self._put(directory, self._place / str(number), workspace)
                except (GitFailed, OSError) as error:
                    self._refused[directory.name] = str(error)
        return [f"[git has no history of {name}: {why}]" for name, why in self._refused.items()]

    def _put(self, directory: BaseDirectory, made: Path, workspace: Path) -> None:
        """An agent's programs may work in the copy at the same time: nothing of theirs is followed."""
        with openat.closing(os.open(workspace, openat.DIRECTORY_FLAGS)) as root:
            try:
                copy = os.open(directory.name, openat.DIRECTORY_FLAGS, dir_fd=root)
            except OSError:
                return  # the agent has made something else of it
            with openat.closing(copy):
                with suppress(FileNotFoundError):
                    os.stat(_OWN, dir_fd=copy, follow_symlinks=False)
                    return
                with self._made:
                    if not made.exists():
                        self._make(directory, made)
                own = self._place / secrets.token_hex(8)
                try:
                    shutil.copytree(made, own)
                    with suppress(FileExistsError, NotADirectoryError):
                        os.rename(own, _OWN, dst_dir_fd=copy)
                finally:
                    remove_tree(own)

    def _make(self, directory: BaseDirectory, made: Path) -> None:
        partial = self._place / secrets.token_hex(8)
        for part in ("info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (partial / part).mkdir(mode=0o700, parents=True)
        tree = self._repository.part(self._base.id, directory.name)
        commit = self._repository.write_history(tree, partial)
        links = b"".join(b"/" + _GLOB.sub(rb"\\\1", os.fsencode(one)) + b"\n" for one in directory.in_no_tree)
        (partial / "info" / "exclude").write_bytes(directory.rules + links)
        (partial / "info" / "attributes").write_text(_ATTRIBUTES)
        (partial / "config").write_text(_CONFIG)
        (partial / "refs" / "heads" / "main").write_text(f"{commit}\n")
        (partial / "HEAD").write_text("ref: refs/heads/main\n")
        partial.rename(made)
