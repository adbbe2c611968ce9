"""A run in a notebook: the example in a real kernel, and the result still the dictionary of other programs."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient

import massgen_mcp as massgen
from tests.api.blocks import Place
from tests.harness import ROOT, TempHome, home

__all__ = ["home"]

nbformat: Any = import_module("nbformat")  # it tells no types of its own
EXAMPLE = ROOT / "examples" / "notebook.ipynb"
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> ![pixel](http://127.0.0.1/pixel.png) "
    "[click](javascript:alert(3))\n\n<iframe src='http://127.0.0.1'></iframe>"
)
FURTHER = f"""
import json
script = [{{"answer": {HOSTILE!r}}}, {{"vote": "own", "reason": "<script>alert(4)</script>"}}]
agent = {{"backend": {{"type": "scripted", "script": script}}}}
hostile = await massgen.run("q", config_dict={{"agents": [agent, agent]}})
hostile
"""
STILL_A_DICTIONARY = """
import copy, pickle
plain = dict(result)
same = [result == plain, json.loads(json.dumps(result)) == plain, pickle.loads(pickle.dumps(result)) == plain]
print(same, repr(result) == repr(plain), copy.deepcopy(result) == plain)
"""


class Watching(NotebookClient):
    """Also keeps what a cell showed on the way."""

    shown: list[str]

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.shown.append(msg["content"]["data"]["text/html"])
        return super().process_message(msg, cell, cell_index)


def html_of(cell: Any) -> str:
    (result,) = [output for output in cell["outputs"] if output["output_type"] == "execute_result"]
    return result["data"]["text/html"]


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


def test_a_notebook_shows_a_run_while_it_works_and_draws_its_result(home: TempHome, private: None) -> None:
    del private
    written = nbformat.reads(EXAMPLE.read_text(encoding="utf-8"), as_version=4)
    nbformat.validate(written)
    further = [nbformat.v4.new_code_cell(text) for text in (FURTHER, STILL_A_DICTIONARY)]
    notebook = nbformat.v4.new_notebook(cells=[*written.cells, *further])
    client = Watching(
        notebook, timeout=90, iopub_timeout=90, raise_on_iopub_timeout=True, kernel_name="python3"
    )  # what a cell prints may come after its reply
    client.shown = []
    client.execute(env=dict(home.environ), cwd=str(home.work))
    ask, read, hostile, same = [cell for cell in notebook.cells if cell.cell_type == "code"]

    drawn = html_of(ask)
    assert "<li>Pin today's behaviour with tests made from real invoices.</li>" in drawn, "the answer"
    assert "2 of 3 agree; cleo disagrees: " in drawn, "the dissent before it"
    assert "ada votes for bo&#x27;s 2nd answer" in drawn, "the votes"
    assert "Cost   $0.00 for" in drawn, "the cost"
    (link,) = re.findall(r'<a href="file://([^"]+)"', drawn)
    assert Path(link).is_relative_to(home.work), "the page of the run"
    assert "<!doctype html>" in Path(link).read_text(encoding="utf-8")[:100].lower()
    assert any("ada: " in shown and "★" not in shown for shown in client.shown), "what happens, while it happens"
    assert read["outputs"][0]["text"].startswith("agent_b won with {'agent_a': 0, 'agent_b': 2, 'agent_c': 1}\n")

    for shown in (html_of(hostile), *client.shown):
        assert not re.search(r"<(script|img|iframe)|href=.javascript", shown), shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html_of(hostile)
    assert "&lt;script&gt;alert(4)&lt;/script&gt;" in html_of(hostile)
    assert same["outputs"][0]["text"] == "[True, True, True] True True\n"


async def test_elsewhere_nothing_is_printed_and_the_result_is_a_plain_dictionary(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    del place
    result = await massgen.run("q", models=["scripted/x", "scripted/y"])
    assert type(result) is dict
    assert json.loads(json.dumps(result)) == result
    assert capfd.readouterr() == ("", "")
