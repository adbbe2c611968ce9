"""Which files judge an answer, and what of a check's output tells why it failed. Both are pure."""

from collections.abc import Iterable, Mapping

import pytest

from massgen_mcp.checks.output import MAX_CHARACTERS, excerpt_of
from massgen_mcp.checks.protected import Protection


def judged(
    base: Iterable[str],
    answer: Iterable[str],
    *commands: str,
    patterns: tuple[str, ...] | None = None,
    texts: Mapping[str, str] = {},
    links: Mapping[str, str] = {},
    installed: tuple[str, ...] = (),
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The judged files, each with whose it is, and which of them differ from the answer's. `texts`: what stands in some
    files of the base; `links`: where those lead that are links.
    """
    files, restored = Protection(patterns, commands).judged(
        {name.encode(): f"{name} of the base" for name in base},
        {name.encode(): f"{name} of the answer" for name in answer},
        lambda file: {**texts, **links}.get(file.partition(" ")[0], "").encode(),
        lambda file: file.partition(" ")[0] in links,
        installed,
    )
    whose = {path.decode(): content.rpartition(" ")[2] for path, content in files.items()}
    return whose, tuple(path.decode() for path in restored)


@pytest.mark.parametrize(
    "path",
    [
        "tests/deep/data.txt", "src/__tests__/a.js", "test_a.py", "pkg/thing_test.go", "ui/button.spec.ts",
        "conftest.py", "sub/conftest.py", "pyproject.toml", "Makefile", "package.json", "jest.config.mjs",
        "shop/tests.py", "test.js", "src/a-test.mjs", "src/a_test.ts", "src/a_test.cc", "Shop.Tests/A.cs", "aIT.java",
    ],
)  # fmt: skip
def test_tests_and_settings_of_runners_are_judged_as_in_the_base(path: str) -> None:
    assert judged([path, "src/code.py"], [path, "src/code.py"]) == ({path: "base", "src/code.py": "answer"}, (path,))
    assert judged([path], []) == ({path: "base"}, (path,))


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py", "src/conftest.py", "pytest.ini", "pytest.py", "unittest/__init__.py", "random.py", "pytest.pyc",
        "json.so", "json.cpython-312-x86_64-linux-gnu.so", "a-1.dist-info/entry_points.txt", "src/a.egg-info/PKG-INFO",
        "pyproject.toml", "tests/pyproject.toml", "node_modules/a/package.json", "pytest_cov/__init__.py",
        "iniconfig.py", "tests/__pycache__/test_a.cpython-312.pyc", "tests/test_a/__init__.py", "tests/__init__.py",
        "tests/test_a.so", "tests/test_a.cpython-312-x86_64-linux-gnu.so", "tests/test_a",
    ],
)  # fmt: skip
def test_new_settings_and_plugins_and_what_would_run_instead_of_the_runner_are_left_out(path: str) -> None:
    files, restored = judged(["a.py", "tests/test_a.py"], ["a.py", path])
    assert (path in files, path in restored) == (False, True)


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_new.py", "tests/new/__init__.py", "src/random.py", "testing.py", "src/contest.py", "code/solve.py",
        "json.txt", "src/__init__.py", "src/code.js",
    ],
)  # fmt: skip
def test_new_tests_and_modules_of_other_names_stay(path: str) -> None:
    files, restored = judged(["src/code.ts", "src/test_a.py", "tests/test_a.py"], ["src/code.ts", path])
    assert (files[path], path in restored) == ("answer", False)


def test_a_new_module_in_the_place_of_one_that_is_installed_is_left_out() -> None:
    assert judged(["a"], ["a", "requests.py", "src/requests.py"], installed=("requests",))[1] == ("requests.py",)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("PYTHONPATH=a:src python -m pytest", "src/pytest.py"), ('PYTHONPATH="$PWD/b" pytest', "b/json/__init__.py"),
        ("python ci/run.py", "ci/json.py"), ("cd src && python -m pytest", "src/pytest.py"),
    ],
)  # fmt: skip
def test_new_modules_are_left_out_wherever_a_check_imports_from(command: str, path: str) -> None:
    assert judged(["a"], ["a", path], command)[1] == (path,)
    assert judged(["a"], ["a", path], "python -m b.json", "sh src/run", "ci/run -c lib/a.toml")[1] == ()


@pytest.mark.parametrize(
    ("base", "path"),
    [
        (["Cargo.toml", "crates/a/Cargo.toml"], "crates/new/Cargo.toml"), (["go.mod", "a.go"], "tools/lint/go.mod"),
        (["package.json"], "packages/new/tsconfig.json"), (["pyproject.toml"], "packages/new/pyproject.toml"),
        ([], "pyproject.toml"), ([], "package.json"), (["README.md"], "package.json"),
        (["README.md", "a.c"], "Makefile"),
    ],
)  # fmt: skip
def test_a_new_project_keeps_its_own_files(base: list[str], path: str) -> None:
    assert judged(base, [*base, path])[0][path] == "answer"


@pytest.mark.parametrize(
    ("base", "path"),
    [
        (["Makefile"], "GNUmakefile"), (["go.mod", "pkg/a.go"], "pkg/go.mod"), (["README.md"], "new/conftest.py"),
        (["package.json", "src/a.js"], "src/package.json"), (["package.json"], "tsconfig.json"),
        (["README.md"], "pyproject.toml"),
    ],
)  # fmt: skip
def test_a_new_file_that_would_part_a_project_or_take_the_place_of_its_settings_is_left_out(
    base: list[str], path: str
) -> None:
    assert path in judged(base, [*base, path])[1]


@pytest.mark.parametrize(
    "command",
    [
        'bash -lc "ci/run a"', "bash -euo pipefail -c 'ci/run a'", "bash -eo pipefail ci/run", "sh ci/run -c x",
        "nohup ci/run a", "command ci/run", "stdbuf -o L ci/run", "env -u A ci/run", "/usr/bin/env X=1 ci/run",
        "coverage run --source a ci/run", "python -m coverage run ci/run", "bundle exec ci/run", "sudo -u me ci/run",
        "python3 -X dev ci/run a", "python -W error ci/run", "perl -I a ci/run", "deno run -A ci/run", "node -r ci/run",
        '"$PY" ci/run', "${VENV_PYTHON:-python3} ci/run a", "uv run --with x python ci/run",
        "./ci/run --all", "X=1 python -u ci/run a", "true && (cd ci; sh run)", "bash -c 'ci/run a'", "rake -f ci/run",
        "python -m pytest -q -c ci/run", "npx jest -c ci/run",
        "timeout -k 5 60s ci/run", "uv run --frozen python ci/run", "tool --config=ci/run", "cd ci\n./run",
    ],
)  # fmt: skip
def test_what_a_check_runs_and_takes_its_settings_from_is_judged_as_in_the_base(command: str) -> None:
    assert judged(["ci/run", "a"], ["ci/run", "a"], command)[1] == ("ci/run",)


@pytest.mark.parametrize(
    "command",
    [
        "ruff check a", "grep -q x a", "python -m mypy a", "sh -c 'cat a'", "cat < a", "'", "cc -c a -o b",
        "test -f a && wc -c a", "if [ -f a ]; then cp -f a b; fi", "tar -cf x a",
    ],
)  # fmt: skip
def test_what_a_check_looks_at_is_judged_as_the_answer_has_it(command: str) -> None:
    assert judged(["a"], ["a"], command)[1] == ()


PROJECT = {
    "Makefile": "PY ?= python3\nexport A = 1\ninclude ci/more.mk\n.PHONY: test\n"
    "all: test\ntest lint: prepare | dirs\n\t@$(PY) -u ci/run.py --all \\\n\t\t--more\n\t-$(MAKE) -C sub check\n"
    "run:\n\tpython src/app.py\nprepare: ; $(NODE) ci/prepare.js\n",
    "ci/more.mk": "dirs:\n\tsh ci/dirs.sh\n",
    "ci/dirs.sh": '# don\'t\nset -e\nif ./ci/deep; then\n  . "$(dirname "$0")/common"\nfi\n"$ROOT"/ci/last.sh\n',
    "sub/Makefile": "check:\n\t./judge\n",
    "package.json": '{"scripts": {"test": "node js/run.js && npm run -s lint", "pretest": "js/pre.sh", '
    '"lint": "eslint . && bash js/lint", "start": "node src/app.js"}}',
    "justfile": "py := 'python'\ntest: build\n    @{{py}} just/run.py\nbuild:\n    just/build\nrun:\n    src/app.py\n",
    "Taskfile.yml": "version: '3'\ntasks:\n  test:\n    deps: [build]\n    cmds: [task/run, {task: lint}]\n"
    "  build: [sh task/build]\n  lint: {cmd: python task/lint.py}\n  run: [src/app.py]\n",
    "tox.ini": "[testenv]\ncommands =\n    python {toxinidir}/tox/run.py {posargs}\n    pytest\n",
    "composer.json": '{"scripts": {"test": ["@php php/run.php", "@lint"], "lint": "php/lint", '
    '"start": "php src/app.py"}}',
    "noxfile.py": "import nox\n@nox.session\ndef tests(session):\n"
    "    session.run('python', 'nox/run.py', *session.posargs)\n",
}


@pytest.mark.parametrize(
    ("command", "judging"),
    [
        ("make test", {"ci/run.py", "ci/prepare.js", "ci/dirs.sh", "sub/judge", "ci/deep", "ci/common", "ci/last.sh"}),
        ("make -j2", {"ci/run.py", "ci/prepare.js", "ci/dirs.sh", "sub/judge", "ci/deep", "ci/common", "ci/last.sh"}),
        ("cd sub && make check", {"sub/judge"}),
        ("npm test", {"js/run.js", "js/pre.sh", "js/lint"}),
        ("yarn run lint", {"js/lint"}),
        ("just test", {"just/run.py", "just/build"}),
        ("task test", {"task/run", "task/build", "task/lint.py"}),
        ("composer test", {"php/run.php", "php/lint"}),
        ("uv run tox -q", {"tox/run.py"}),
        ("nox", {"nox/run.py"}),
    ],
)
def test_what_runs_by_way_of_a_recipe_is_judged_as_in_the_base_and_what_other_recipes_run_is_not(
    command: str, judging: set[str]
) -> None:
    others = {"src/app.py", "src/app.js"}
    scripts = {
        *("ci/run.py", "ci/prepare.js", "ci/dirs.sh", "ci/deep", "ci/common", "ci/last.sh", "sub/judge"),
        *("js/run.js", "js/pre.sh", "js/lint", "just/run.py", "just/build", "task/run", "task/build", "task/lint.py"),
        *("tox/run.py", "nox/run.py", "php/run.php", "php/lint"),
    }
    files = [*PROJECT, *scripts, *others]
    assert set(judged(files, files, command, patterns=(), texts=PROJECT)[1]) == judging


@pytest.mark.parametrize(
    "text",
    [
        "a: a\n\tmake a\n",
        "a:\n\tmake -f x a\ninclude Makefile x\n",
        "\t'\n:",
        "a: $(A)\nA = $(A)$(A)",
        "a:\n\tpython" + " -m coverage" * 700,
    ],
)
def test_recipes_that_call_themselves_or_are_broken_come_to_an_end(text: str) -> None:
    assert judged(["Makefile", "x"], [], "make a", texts={"Makefile": text, "x": text})[0]["Makefile"] == "base"


MAKEFILE = """\
.PHONY: test
-include local
include ci/common  # what all have
test: app unit
\t./app
app: main.c
\tcc -c main.c -o main.o && cc main.o -o app
unit:
\tpytest
install:
\tcp app $(DESTDIR)
"""


def test_what_a_makefile_includes_and_makes_is_none_of_the_answers_business_and_what_it_compiles_is() -> None:
    """A new file `unit` would be up to date, and never be tested."""
    base = ["Makefile", "ci/common", "main.c"]
    new = ["local", "app", "unit/x", "test/new.c", "install"]
    files, restored = judged(base, [*base, *new], "make test", texts={"Makefile": MAKEFILE})
    assert restored == ("Makefile", "app", "ci/common", "local", "unit/x")
    assert files["main.c"] == "answer"


def test_what_is_made_where_the_base_has_something_stays() -> None:
    base = ["Makefile", "unit/a.c"]
    assert judged(base, ["unit/b.c"], "make unit", texts={"Makefile": MAKEFILE})[1] == ("Makefile",)


def test_a_module_that_a_check_runs_is_judged_as_in_the_base() -> None:
    assert judged(["ci/all.py", "ci/a.py"], ["ci/all.py", "ci/a.py"], "python -m ci.all")[1] == ("ci/all.py",)


def test_links_are_followed_to_what_a_check_runs() -> None:
    links = {"check": "tools/check", "Makefile": "build/rules", "ci": "tools/ci", "round": "round"}
    texts = {"build/rules": "test:\n\t./check\n\tsh ci/run\n\t./round\n", "tools/check": "#!/bin/sh\n./deep\n"}
    files = [*links, *texts, "tools/ci/run", "deep", "tools/other"]
    assert {*files} - {*judged(files, files, "make test", texts=texts, links=links)[1]} == {"tools/other"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", "a" + " " * 1_000_000), ("Makefile", "a:\n" + "\tx\n" * 300_000), ("justfile", "a" * 1_000_000),
        ("Makefile", "A=" + "b" * 500_000 + "\na:\n\t" + "$(A)" * 100_000), ("justfile", "a:\n x" + "{{" * 500_000),
        ("Makefile", "a b " * 100_000 + ":\n" + "\tx\n" * 100_000),
    ],
)  # fmt: skip
def test_no_file_of_a_base_keeps_the_runner_busy(name: str, text: str) -> None:
    """Each of these took minutes."""
    assert judged([name], [], "make a", "just a", texts={name: text})[0] == {name: "base"}


def test_a_directory_in_the_place_of_a_protected_file_and_the_reverse_give_way() -> None:
    assert judged(["tests/a", "Makefile"], ["tests", "Makefile/x"]) == (
        {"tests/a": "base", "Makefile": "base"},
        ("Makefile", "Makefile/x", "tests", "tests/a"),
    )


def test_own_patterns_take_the_place_of_the_usual_ones() -> None:
    both = ["tests/a.py", "golden/deep/b", "docs/api.md", "other/docs/api.md", "c.snap"]
    files, restored = judged(both, [*both, "golden/new"], patterns=("golden/", "docs/api.md", "*.snap"))
    assert restored == ("c.snap", "docs/api.md", "golden/deep/b", "golden/new")
    assert files["tests/a.py"] == files["other/docs/api.md"] == "answer"
    assert judged(both, both, patterns=())[1] == ()


def test_an_excerpt_holds_the_lines_that_tell_of_failures_and_the_end() -> None:
    lines = ["begin", "\x1b[31mFAILED tests/a.py::test_one\x1b[0m", *(f"line {n}" for n in range(50)), "1 failed"]
    told = excerpt_of("\n".join(lines)).splitlines()
    assert told[:2] == ["FAILED tests/a.py::test_one", "…"]
    assert told[-2:] == ["line 49", "1 failed"]
    assert len(told) == 12


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (f"{'=' * 70}\nFAIL: test_mean\nTraceback:\nAssertionError: 3.0 != 2\n", "AssertionError: 3.0 != 2"),
        (">       assert mean() == 2\nE       assert 3 == 2\nt.py:5: AssertionError", "E       assert 3 == 2"),
        ("--- FAIL: TestX (0.00s)\n    x_test.go:10: got 3, want 2\nFAIL", "x_test.go:10: got 3, want 2"),
    ],
)
def test_an_excerpt_begins_with_what_was_not_so(output: str, first: str) -> None:
    assert excerpt_of(output).splitlines()[0] == first


def test_an_excerpt_is_bounded_and_holds_no_control_characters() -> None:
    told = excerpt_of("\n".join(f"Error: \x07{n} {'x' * 500}" for n in range(500)))
    assert len(told) <= MAX_CHARACTERS
    assert all(letter.isprintable() or letter == "\n" for letter in told)
    assert excerpt_of("") == ""


# -- code of checks beside the scripts that commands name -------------------------------------------------------------


RUN_PY = "import ci_lib\nfrom helpers import count\nfrom .deep import more\nimportlib.import_module('named')\n"
OWN = ["ci/run.py", "ci/ci_lib.py", "ci/helpers/__init__.py", "ci/helpers/count.py", "ci/deep/more.py", "ci/named.py"]


@pytest.mark.parametrize(
    ("command", "texts", "loaded"),
    [
        ("python3 ci/run.py", {"ci/run.py": RUN_PY}, OWN[1:]),
        (
            "python3 ci/run.py",
            {"ci/run.py": "import a\n", "ci/a.py": "import b\n", "ci/b.py": "x"},
            ["ci/a.py", "ci/b.py"],
        ),
        ("python3 ci/run.py", {"ci/run.py": "from ci import lib\n"}, ["ci/lib.py"]),
        ("python3 -m ci.run", {"ci/run.py": "from ci.lib import f\n"}, ["ci/lib.py"]),
        ("python3 ci/run.py", {"ci/run.py": "exec(open('ci/rules.py').read())\n"}, ["ci/rules.py"]),
        ("python3 ci/run.py", {"ci/run.py": "d = json.load(open('ci/expected.json'))\n"}, ["ci/expected.json"]),
        ("python3 ci/run.py", {"ci/run.py": "subprocess.run(['sh', 'ci/all.sh'])\n"}, ["ci/all.sh"]),
        ("node tools/run.js", {"tools/run.js": "const r = require('./runner')\n"}, ["tools/runner.js"]),
        ("node tools/run.mjs", {"tools/run.mjs": "import r from './lib/r.mjs'\n"}, ["tools/lib/r.mjs"]),
        ("node tools/run.mjs", {"tools/run.mjs": "await import('./lib')\n"}, ["tools/lib/index.js"]),
        ("node tools/run.js", {"tools/run.js": "require(path.join(__dirname, 'lib', 'r.js'))\n"}, ["tools/lib/r.js"]),
        ("node tools/run.js", {"tools/run.js": "fork(`${__dirname}/w.js`); x = 'tools/w.js'\n"}, ["tools/w.js"]),
        (
            "npm test",
            {"package.json": '{"scripts": {"test": "node tools/run.js"}}', "tools/run.js": "require('./r')"},
            ["tools/r.js"],
        ),
        ("scripts/all", {"scripts/all": '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\n'}, ["scripts/lib.sh"]),
        ("sh scripts/all.sh", {"scripts/all.sh": "source $HERE/lib/a.bash\n"}, ["scripts/lib/a.bash"]),
        ("ruby ci/run.rb", {"ci/run.rb": "require_relative 'lib'\n"}, ["ci/lib.rb"]),
        ("perl hack/run.pl", {"hack/run.pl": "require './hack/lib.pl';\n"}, ["hack/lib.pl"]),
        ("php qa/run.php", {"qa/run.php": "<?php require __DIR__ . '/lib.php';\n"}, ["qa/lib.php"]),
        ("make check", {"Makefile": "check:\n\tpython3 ci/run.py\n", "ci/run.py": "import lib\n"}, ["ci/lib.py"]),
        ("make check", {"Makefile": "check:\n\tcd ci && ./go\n", "ci/go": "#!/bin/sh\nsh lib/x.sh\n"}, ["ci/lib/x.sh"]),
        ("python3 p/tools/a.py", {"p/tools/a.py": "import lib\n"}, ["p/tools/lib.py"]),
    ],
)
def test_what_a_script_of_a_check_loads_is_judged_as_in_the_base(
    command: str, texts: dict[str, str], loaded: list[str]
) -> None:
    files = [*texts, *loaded, "src/code.py"]
    whose, restored = judged(files, files, command, texts=texts)
    assert {path: whose[path] for path in loaded} == dict.fromkeys(loaded, "base")
    assert whose["src/code.py"] == "answer"
    assert set(loaded) <= set(restored)


@pytest.mark.parametrize(
    ("command", "texts", "tested"),
    [
        ("python3 ci/run.py", {"ci/run.py": "sys.path.insert(0, 'src')\nimport code\n"}, "src/code.py"),
        ("python3 ci/run.py", {"ci/run.py": "import calc\n"}, "calc.py"),
        ("node tools/run.js", {"tools/run.js": "require('../src/app')\n"}, "src/app.js"),
        (
            "node tools/run.js",
            {"tools/run.js": "require('./app')", "package.json": '{"main": "tools/app.js"}'},
            "tools/app.js",
        ),
        (
            "node tools/run.js",
            {"tools/run.js": "require('./app')", "package.json": '{"bin": {"a": "./tools/cli.js"}}'},
            "tools/app.js",
        ),
        (
            "python3 tools/run.py",
            {"tools/run.py": "import app", "pyproject.toml": '[project.scripts]\na = "tools.app:main"'},
            "tools/app.py",
        ),
        (
            "python3 tools/run.py",
            {"tools/run.py": "import app", "setup.py": "setup(packages=['tools'])"},
            "tools/app.py",
        ),
        ("python3 tools/run.py", {"tools/run.py": "import app", "src/a.py": "from tools.app import x"}, "tools/app.py"),
        (
            "python3 tools/run.py",
            {"tools/run.py": "import app", "tests/test_a.py": "from tools import app"},
            "tools/app.py",
        ),
        (
            "node tools/run.js",
            {"tools/run.js": "require('./app')", "test/a.test.js": "require('../tools/app')"},
            "tools/app.js",
        ),
        ("python3 ci/run.py", {"ci/run.py": "print('other')\n"}, "ci/other.py"),
        ("python3 run.py", {"run.py": "import app\n"}, "app.py"),
    ],
)
def test_code_under_test_is_judged_as_the_answer_has_it(command: str, texts: dict[str, str], tested: str) -> None:
    files = [*texts, tested]
    whose, _ = judged(files, files, command, texts=texts)
    assert whose[tested] == "answer"


@pytest.mark.parametrize(
    ("command", "texts", "said"),
    [
        (
            "python3 ci/run.py",
            {"ci/run.py": "importlib.import_module(sys.argv[1])\n"},
            ["decides at run time which code to load"],
        ),
        (
            "python3 ci/run.py",
            {"ci/run.py": "import lib\n", "ci/lib.py": "__import__(name)\n"},
            ["ci/lib.py decides at run time"],
        ),
        (
            "node tools/run.js",
            {"tools/run.js": "require(name)\n"},
            ["tools/run.js decides at run time which code to load"],
        ),
        ("sh ci/run.sh", {"ci/run.sh": '. "$LIB"\n'}, ["ci/run.sh decides at run time which code to load"]),
        (
            "python3 run.py",
            {"run.py": "import lib\n", "lib.py": "x"},
            ["run.py loads code that the answer may have changed: lib.py"],
        ),
        (
            "node tools/a.js",
            {"tools/a.js": "require('../src/b')\n", "src/b.js": "x"},
            ["that the answer may have changed: src/b.js"],
        ),
        ("python3 ci/run.py", {"ci/run.py": "import lib, json\n", "ci/lib.py": "x"}, []),
        ("pytest -q", {"tests/test_a.py": "import a\n", "a.py": "x"}, []),
    ],
)
def test_what_could_not_be_followed_is_said(command: str, texts: dict[str, str], said: list[str]) -> None:
    base = {name.encode(): text for name, text in texts.items()}
    found = Protection(None, (command,)).find_unfollowed(base, lambda text: text.encode(), lambda _: False)
    assert len(found) == len(said)
    assert all(part in sentence for part, sentence in zip(said, found, strict=True)), found
