"""What happens to a person's directory when a run's patch is applied: the cases, as data.

Each is a few lines of shell: what the directory is when the run begins (`before`), what the team makes of its copy
(`team`), what the person does meanwhile (`person`), and what comes of it.
"""

import sys
from dataclasses import dataclass, field

Held = dict[str, str | None]
"""Contents by path. None: nothing is there; `-> TARGET`: a link; `0640 TEXT`: the permissions, too, in octal."""


@dataclass(frozen=True)
class Case:
    """`refused`: a part of the reason, by path; empty: the patch is applied. `holds`: what the directory holds then.
    `given`: the part of the directory that the run is given. `changes`: how many files the reply names.
    """

    name: str
    team: str
    person: str = ""
    before: str = ""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    holds: Held = field(default_factory=dict[str, str | None])
    changes: int = 1
    given: str = "."
    paths: tuple[str, ...] = ()
    unchanged: bool = False
    """There is nothing to do."""


LINES = "".join(f"{number}\n" for number in range(1, 10))
TEMPLATE = """
git init -q -b main .
seq 9 > lines.txt
seq 9 | sed 's/$/\\r/' > crlf.txt
printf 'one\\ntwo\\nno end' > open.txt
printf '#!/bin/sh\\necho x\\n' > tool.sh; chmod 755 tool.sh
head -c 4096 /dev/zero > picture.bin
ln -s lines.txt link
mkdir -p src/deep docs
for name in a b c; do seq 1 30 | sed "s/^/$name /" > src/$name.txt; done
echo deep > src/deep/only.txt
echo alone > docs/alone.txt
printf 'ignored/\\n*.log\\n' > .gitignore
git add -A; git commit -qm first
"""
"""The repository that every case begins with, unless it says otherwise."""

FIRST, LAST = "sed -i 's/^1$/first/' lines.txt", "sed -i 's/^9$/last/' lines.txt"
MERGED = LINES.replace("1\n", "first\n", 1).replace("9\n", "last\n")
THEIRS = LINES.replace("9\n", "last\n")
PRUNED = "git reflog expire --expire=now --all; git gc -q --prune=now"
LFS = "printf '*.psd filter=lfs diff=lfs merge=lfs -text\\n' > .gitattributes; git add -A; git commit -qm lfs"
SUBMODULE = """
git init -q sub; git -C sub commit -q --allow-empty -m x
git -c protocol.file.allow=always submodule --quiet add ./sub sub 2>/dev/null; git commit -qm sub
"""
MERGING = """
git checkout -qb other; echo o > docs/alone.txt; git commit -qam o
git checkout -q main; echo m > docs/alone.txt; git commit -qam m; git merge -q other >/dev/null || true
"""
SAME_LINES = "changed the same lines"
ATTRIBUTES = f"""
{sys.executable} -IS - <<'END'
import os, struct
entries = (1, 6, -1), (2, 4, 1), (4, 4, -1), (16, 4, -1), (32, 0, -1)
os.setxattr("lines.txt", "system.posix_acl_access", struct.pack("<I" + 5 * "HHi", 2, *sum(entries, ())))
os.setxattr("lines.txt", "user.origin", b"a person")
END
"""
"""`lines.txt` has an access list, by which another user may read it, and an attribute of the person's."""


CASES = (
    # -- the person's own changes -------------------------------------------------------------------------------------
    Case("nothing but the team's change", LAST, holds={"lines.txt": THEIRS}),
    Case("dirty: changed when the run begins", LAST, before=FIRST, holds={"lines.txt": MERGED}),
    Case("dirty: changed while the run goes on", LAST, person=FIRST, holds={"lines.txt": MERGED}),
    Case(
        "dirty: changed before and meanwhile",
        LAST,
        before=FIRST,
        person="sed -i 's/^4$/four/' lines.txt",
        holds={"lines.txt": MERGED.replace("4\n", "four\n")},
    ),
    Case("staged when the run begins", LAST, before=f"{FIRST}; git add -A", holds={"lines.txt": MERGED}),
    Case("staged while the run goes on", LAST, person=f"{FIRST}; git add -A", holds={"lines.txt": MERGED}),
    Case(
        "staged, and changed again",
        LAST,
        before=f"{FIRST}; git add -A; sed -i 's/^4$/four/' lines.txt",
        holds={"lines.txt": MERGED.replace("4\n", "four\n")},
    ),
    Case("staged as new", "echo team >> new", before="echo x > new; git add new", holds={"new": "x\nteam\n"}),
    Case("untracked, changed by the team", "echo team >> new", before="echo x > new", holds={"new": "x\nteam\n"}),
    Case(
        "untracked, changed by both",
        "sed -i '$s/$/ team/' new",
        before="seq 9 > new",
        person="sed -i '1s/$/ me/' new",
        holds={"new": LINES.replace("1\n", "1 me\n", 1).replace("9\n", "9 team\n")},
    ),
    Case("untracked elsewhere", LAST, person="echo mine > mine", holds={"lines.txt": THEIRS, "mine": "mine\n"}),
    Case(
        "ignored files stay as they are",
        LAST,
        before="mkdir ignored; echo 1 > ignored/x; echo 2 > y.log",
        holds={"ignored/x": "1\n", "y.log": "2\n"},
    ),
    Case("conflicting edit", LAST, person="sed -i 's/^9$/mine/' lines.txt", refused={"lines.txt": SAME_LINES}),
    Case(
        "conflict in one of two files",
        f"{LAST}; echo team >> src/a.txt",
        person="sed -i 's/^9$/mine/' lines.txt",
        refused={"lines.txt": SAME_LINES},
    ),
    Case("the same edit by both", LAST, person=LAST, unchanged=True, changes=0),
    # -- files that come, go and move ---------------------------------------------------------------------------------
    Case("added", "echo new > new", holds={"new": "new\n"}),
    Case("added in new directories", "mkdir -p x/y; echo new > x/y/new", holds={"x/y/new": "new\n"}),
    Case("added empty", ": > empty", holds={"empty": ""}),
    Case("added by both, the same", "echo new > new", person="echo new > new", unchanged=True, changes=0),
    Case("added by both, different", "echo new > new", person="echo mine > new", refused={"new": "different files"}),
    Case("deleted", "rm src/a.txt", holds={"src/a.txt": None, "src/b.txt": "..."}),
    Case("deleted, the last of its directory", "rm -r docs", holds={"docs": None}),
    Case("deleted, with private permissions", "rm lines.txt", before="chmod 600 lines.txt", holds={"lines.txt": None}),
    Case(
        "deleted beside an ignored file",
        "rm docs/alone.txt",
        before="echo x > docs/x.log",
        holds={"docs/alone.txt": None, "docs/x.log": "x\n"},
    ),
    Case("deleted by both", "rm src/a.txt", person="rm src/a.txt", unchanged=True, changes=0),
    Case("deleted target", LAST, person="rm lines.txt", refused={"lines.txt": "deleted"}),
    Case("deleted by the team, changed by the person", "rm lines.txt", person=FIRST, refused={"lines.txt": "deleted"}),
    Case("renamed", "mv src/a.txt src/z.txt", holds={"src/a.txt": None, "src/z.txt": "..."}),
    Case(
        "renamed by the team, changed by the person",
        "mv src/a.txt moved.txt",
        person="sed -i 's/^a 3$/mine/' src/a.txt",
        holds={"src/a.txt": None, "moved.txt": "".join(f"{'mine' if n == 3 else f'a {n}'}\n" for n in range(1, 31))},
    ),
    Case(
        "renamed by the person, changed by the team",
        "sed -i 's/^a 3$/team/' src/a.txt",
        person="mv src/a.txt moved.txt",
        holds={"src/a.txt": None, "moved.txt": "".join(f"{'team' if n == 3 else f'a {n}'}\n" for n in range(1, 31))},
    ),
    Case(
        "renamed by both to different names",
        "mv src/a.txt team.txt",
        person="mv src/a.txt mine.txt",
        refused={
            "src/a.txt": "renamed this file differently",
            "team.txt": "renamed this file differently",
            "mine.txt": "renamed this file differently",
        },
    ),
    Case(
        "case-only rename",
        "mv docs/alone.txt docs/Alone.txt",
        holds={"docs/alone.txt": None, "docs/Alone.txt": "alone\n"},
    ),
    Case(
        "a file becomes a directory",
        "rm lines.txt; mkdir lines.txt; echo x > lines.txt/x",
        changes=2,
        holds={"lines.txt/x": "x\n"},
    ),
    Case("a directory becomes a file", "rm -r docs; echo x > docs", changes=2, holds={"docs": "x\n"}),
    Case(
        "a directory becomes a file, with an ignored one in it",
        "rm -r docs; echo x > docs",
        before="echo x > docs/x.log",
        refused={"docs": "a directory with this name contains docs/x.log"},
    ),
    # -- contents and kinds -------------------------------------------------------------------------------------------
    Case("binary, changed by the team", "printf 'x' | dd of=picture.bin conv=notrunc 2>/dev/null"),
    Case(
        "binary, changed by both",
        "printf 'x' | dd of=picture.bin conv=notrunc 2>/dev/null",
        person="printf 'y' | dd of=picture.bin seek=9 bs=1 conv=notrunc 2>/dev/null",
        refused={"picture.bin": "binary"},
    ),
    Case("executable bit", "chmod +x src/a.txt", holds={"src/a.txt": "0755 ..."}),
    Case(
        "executable bit of the team, content of the person",
        "chmod +x lines.txt",
        person=FIRST,
        holds={"lines.txt": f"0755 {LINES.replace('1', 'first', 1)}"},
    ),
    Case("executable bit taken away", "chmod -x tool.sh", holds={"tool.sh": "0644 ..."}),
    Case("attributes and access lists are kept", LAST, before=ATTRIBUTES, holds={"lines.txt": THEIRS}),
    Case(
        "what runs with rights of its own",
        "echo team >> tool.sh",
        before="chmod 4755 tool.sh",
        refused={"tool.sh": "has special permissions"},
    ),
    Case(
        "renamed, with private permissions, attributes and an access list",
        "mkdir x; mv lines.txt x/moved.txt",
        before=ATTRIBUTES,
        holds={"lines.txt": None, "x/moved.txt": f"0640 {LINES}"},
    ),
    Case(
        "renamed, what runs with rights of its own",
        "mv tool.sh tools.sh",
        before="chmod 4755 tool.sh",
        refused={"tools.sh": "was tool.sh, which has special permissions"},
    ),
    Case("permissions are kept", LAST, before="chmod 640 lines.txt", holds={"lines.txt": f"0640 {THEIRS}"}),
    Case("symlink added", "ln -s src/a.txt new", holds={"new": "-> src/a.txt"}),
    Case("symlink turned", "ln -sfn src/a.txt link", holds={"link": "-> src/a.txt"}),
    Case("symlink becomes a file", "rm link; echo x > link", holds={"link": "x\n"}),
    Case("symlink that leads out", "ln -s ../../outside new", refused={"new": "points outside"}),
    Case("symlink that leads out, absolute", "ln -s /etc/passwd new", refused={"new": "points outside"}),
    Case(
        "symlink in the way: a directory became one",
        "echo team >> src/a.txt",
        person="mv src ../outside; ln -s ../outside src",
        refused={"src": "a directory", "src/a.txt": "deleted"},
    ),
    Case(
        "symlink in the way of a new file",
        "mkdir fresh; echo x > fresh/x",
        person="mkdir ../outside; ln -s ../outside fresh",
        refused={"fresh": "a directory"},
    ),
    Case(
        "symlink in the way of a new file, and git ignores it",
        "mkdir fresh; echo x > fresh/x",
        person="mkdir ../outside; ln -s ../outside fresh; echo fresh >> .gitignore",
        refused={"fresh/x": "fresh is a symbolic link"},
    ),
    Case(
        "symlink in the way: a file became one",
        LAST,
        person="mv lines.txt ../x; ln -s ../x lines.txt",
        refused={"lines.txt": "a link"},
    ),
    Case(
        "CRLF",
        "sed -i 's/^9\\r/last\\r/' crlf.txt",
        person="sed -i 's/^1\\r/first\\r/' crlf.txt",
        holds={"crlf.txt": MERGED.replace("\n", "\r\n")},
    ),
    Case(
        "CRLF made LF by the person",
        "sed -i 's/^9\\r/last\\r/' crlf.txt",
        person="sed -i 's/\\r//' crlf.txt",
        refused={"crlf.txt": SAME_LINES},
    ),
    Case(
        "CRLF in a repository that would convert it",
        "sed -i 's/^9\\r/last\\r/' crlf.txt",
        before="git config core.autocrlf true; printf '* text=auto eol=crlf\\n' > .gitattributes",
        holds={"crlf.txt": THEIRS.replace("\n", "\r\n")},
    ),
    Case("no newline at the end", "sed -i 's/^one$/first/' open.txt", holds={"open.txt": "first\ntwo\nno end"}),
    Case("a newline at the end is added", "echo >> open.txt", holds={"open.txt": "one\ntwo\nno end\n"}),
    Case(
        "names that need quotes",
        "echo x > 'a \"b\" -c\n'; echo y > -d",
        changes=2,
        holds={'a "b" -c\n': "x\n", "-d": "y\n"},
    ),
    Case("a name that is no text", "echo x > \"$(printf 'latin-\\351')\"", holds={"latin-\udce9": "x\n"}),
    # -- what is in the way -------------------------------------------------------------------------------------------
    Case("read-only file", LAST, person="chmod 444 lines.txt", refused={"lines.txt": "read-only"}),
    Case("read-only directory", "echo x > docs/x", person="chmod 555 docs", refused={"docs/x": "read-only"}),
    Case(
        "an ignored file in the way",
        "echo x > x.log; sed -i '/log/d' .gitignore",
        before="echo mine > x.log",
        refused={"x.log": "already exists"},
    ),
    Case("a directory in the way", "echo x > new", person="mkdir new; echo mine > new/x", refused={"new": ""}),
    Case(
        "an empty directory in the way",
        "echo x > new",
        person="mkdir new",
        refused={"new": "a directory with this name"},
    ),
    Case("a pipe in the way", "echo x > new", person="mkfifo new", refused={"new": "already exists"}),
    Case(
        "a repository in the way",
        "mkdir new; echo x > new/x",
        person="git init -q new",
        refused={"new/x": "nested repository"},
    ),
    Case("the directory is gone", LAST, person="cd ..; mv person elsewhere", refused={"person": "is gone"}),
    Case(
        "the directory became a link",
        LAST,
        person="cd ..; mv person elsewhere; ln -s elsewhere person",
        refused={"person": "is gone"},
    ),
    # -- repositories of all kinds ------------------------------------------------------------------------------------
    Case("a plain folder", LAST, before="rm -rf .git", person=FIRST, holds={"lines.txt": MERGED}),
    Case("no commit yet", LAST, before="rm -rf .git; git init -q .; git add lines.txt", holds={"lines.txt": THEIRS}),
    Case("a directory of the repository", "echo team >> a.txt", given="src", person=FIRST),
    Case("moved HEAD", LAST, person=f"{FIRST}; git commit -qam mine", holds={"lines.txt": MERGED}),
    Case(
        "another branch",
        LAST,
        person=f"git checkout -qb other; {FIRST}; git commit -qam mine",
        holds={"lines.txt": MERGED},
    ),
    Case("detached HEAD", LAST, before="git checkout -q --detach", holds={"lines.txt": THEIRS}),
    Case(
        "rebased away",
        LAST,
        person=f"{FIRST}; git commit -q --amend -am other; git gc -q",
        holds={"lines.txt": MERGED},
    ),
    Case(
        "rebased away, and its objects pruned",
        LAST,
        person=f"{FIRST}; git commit -q --amend -am other; {PRUNED}",
        holds={"lines.txt": MERGED},
    ),
    Case(
        "rebased away and pruned, with a file renamed and one merged",
        "mv src/a.txt moved.txt; sed -i 's/^b 3$/team/' src/b.txt; rm src/c.txt",
        person=f"sed -i 's/^a 3$/mine/' src/a.txt; sed -i 's/^b 30$/mine/' src/b.txt; git rm -qr docs; "
        f"git commit -q --amend -am other; {PRUNED}",
        changes=3,
        holds={"moved.txt": "...", "src/a.txt": None, "src/c.txt": None, "docs": None},
    ),
    Case(
        "the repository is gone",
        LAST,
        person="rm -rf .git",
        holds={"lines.txt": THEIRS},
    ),
    Case(
        "in the middle of a merge",
        LAST,
        before=MERGING,
        holds={"lines.txt": THEIRS},
    ),
    Case(
        "a linked working tree",
        LAST,
        before="cd ..; mv person main; git -C main worktree add -q -b other ../person",
        holds={"lines.txt": THEIRS},
    ),
    Case(
        "submodule elsewhere",
        LAST,
        before=SUBMODULE,
        holds={"lines.txt": THEIRS},
    ),
    Case(
        "submodule, written into",
        f"{LAST}; rm sub; mkdir sub; echo x > sub/x",
        before=SUBMODULE,
        holds={"lines.txt": THEIRS, "sub/x": None},
    ),
    Case(
        "sparse checkout",
        LAST,
        before="git sparse-checkout set --no-cone lines.txt src",
        holds={"lines.txt": THEIRS, "docs": None},
    ),
    Case(
        "sparse checkout, a file that it leaves out",
        "mkdir -p docs; echo x > docs/alone.txt",
        before="git sparse-checkout set --no-cone lines.txt src",
        refused={"docs/alone.txt": "sparse checkout"},
    ),
    Case(
        "LFS pointer",
        LAST,
        before=f"printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 9\\n' > big.psd; {LFS}",
        holds={"lines.txt": THEIRS, "big.psd": "..."},
    ),
    Case(
        "LFS content, changed by the team",
        "echo team >> big.psd",
        before=f"{LFS}; seq 9 > big.psd",
        holds={"big.psd": f"{LINES}team\n"},
    ),
    # -- some of it ---------------------------------------------------------------------------------------------------
    Case(
        "one path of two",
        f"{LAST}; echo team >> src/a.txt",
        paths=("person/lines.txt",),
        person="sed -i '$d' src/a.txt",
        holds={"lines.txt": THEIRS},
    ),
    Case(
        "a directory, by its absolute path",
        f"{LAST}; echo team >> src/a.txt; echo x > src/x",
        paths=("{person}/src",),
        changes=2,
        holds={"lines.txt": LINES, "src/x": "x\n"},
    ),
    # -- sizes --------------------------------------------------------------------------------------------------------
    Case("a huge file", "head -c {huge} /dev/zero > huge; echo end >> huge"),
    Case(
        "many files around it",
        LAST,
        before="mkdir many; cd many; seq {many} | split -l 1 -a 4 - f; git add .; "
        "git -c maintenance.auto=false commit -qm many",
        holds={"lines.txt": THEIRS},
    ),
    Case("many files changed", "mkdir many; cd many; seq {some} | split -l 1 -a 4 - f", changes=-1),
)
