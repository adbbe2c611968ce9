"""The search for planted keys finds one in every form, and nothing in honest text. Its known-bad twins write keys."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.planted import HOLDS_KEYS, OWN_LOGIN, PLANTED, Search, searched_outputs

KEY = PLANTED["CEREBRAS_API_KEY"]


@pytest.mark.parametrize(
    "text",
    [
        f"Bearer {KEY}",
        json.dumps({"key": PLANTED["ZAI_API_KEY"]}),
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"x {KEY} y".encode()).decode(),
        KEY.encode().hex(),
        f'{{"text": "{KEY[:17]}"}}\n{{"text": "{KEY[17:]}"}}\n',
    ],
    ids=["raw", "json", "url", "base64", "after a user's name", "within", "hex", "split"],
)
def test_a_key_in_a_file_is_found_in_every_form(text: str, tmp_path: Path) -> None:
    (tmp_path / HOLDS_KEYS).touch()  # the session's own search passes this by
    below = tmp_path / "of-a-run" / "deep"
    below.mkdir(parents=True)
    (below / "events.jsonl").write_text(f"something before\n{text}\n")
    search = Search()
    search.look_below(below.parent)
    assert [str(below / "events.jsonl") in found for found in search.found] == [True]


def test_honest_files_inputs_of_tests_and_a_users_own_login_are_no_finds(tmp_path: Path) -> None:
    (tmp_path / "honest.txt").write_text(" ".join(PLANTED) + " gsk_ csk- PLANTED EMPTY none dummy")
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / HOLDS_KEYS).touch()
    (tmp_path / "input" / "notes.txt").write_text(KEY)
    (tmp_path / OWN_LOGIN).write_text(KEY)
    search = Search()
    search.look_below(tmp_path)
    assert search.found == []
    assert search.files == 1


def test_a_key_in_a_commands_output_is_found(tmp_path: Path) -> None:
    own = "sk-that-this-search-alone-knows"
    search = Search({"OWN_KEY": own})
    with searched_outputs(search):
        subprocess.run(
            [sys.executable, "-c", "import os, sys; print(os.environ['KEY'], file=sys.stderr)"],
            env={"KEY": own},
            capture_output=True,
            check=True,
            cwd=tmp_path,
        )
    assert len(search.found) == 1
    assert "standard error" in search.found[0]
    assert "OWN_KEY" in search.found[0]


def test_a_key_of_one_test_alone_is_searched_for_as_well(tmp_path: Path) -> None:
    (tmp_path / HOLDS_KEYS).touch()
    own = "sk-of-one-test-alone-0815"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "status.json").write_text(own)
    search = Search()
    search.add({"OPENAI_API_KEY": own, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    search.look_below(tmp_path / "run")
    assert len(search.found) == 1
