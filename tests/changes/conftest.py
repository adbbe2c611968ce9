"""A repository of a person's, made by real git."""

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Repository:
    path: Path

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments]
        return subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True).stdout

    def put(self, **files: str) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)

    def commit(self, **files: str) -> None:
        self.put(**files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a commit")

    def fingerprint(self) -> str:
        """Of every file of the working tree, and of the repository with its index, references and objects."""
        whole = hashlib.sha256()
        for path in sorted(self.path.rglob("*")):
            whole.update(f"{path.relative_to(self.path)} {path.lstat().st_mode:o}\0".encode())
            if path.is_symlink():
                whole.update(str(path.readlink()).encode())
            elif path.is_file():
                whole.update(path.read_bytes())
        return whole.hexdigest()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    path = tmp_path / "project"
    path.mkdir()
    made = Repository(path)
    made.git("init", "--quiet", "--initial-branch=main")
    return made
