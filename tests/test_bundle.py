"""What registries and desktop clients are told says what the package says."""

import json
import re

from bundle.facts import (
    CODEX_PLUGIN,
    MANIFEST,
    REGISTRY_NAME,
    SERVER_JSON,
    codex_plugin,
    manifest,
    server_json,
    written,
)
from massgen_mcp import __version__
from tests.harness import ROOT


def test_the_documents_in_the_repository_are_up_to_date() -> None:
    assert SERVER_JSON.read_text() == written(server_json()), "run `make bundle`"
    assert MANIFEST.read_text() == written(manifest()), "run `make bundle`"
    assert CODEX_PLUGIN.read_text() == written(codex_plugin()), "run `make bundle`"


def test_they_keep_to_what_the_registry_takes() -> None:
    said = json.loads(SERVER_JSON.read_text())
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", said["name"])
    assert len(said["description"]) <= 100
    assert len(said["title"]) <= 100
    assert said["version"] == said["packages"][0]["version"] == __version__
    assert f"mcp-name: {REGISTRY_NAME} -->" in (ROOT / "README.md").read_text(), "the registry's proof of ownership"


def test_a_bundle_asks_for_keys_as_secrets_and_passes_no_placeholder_on() -> None:
    said = json.loads(MANIFEST.read_text())
    for name, reference in said["server"]["mcp_config"]["env"].items():
        asked = said["user_config"][reference.removeprefix("${user_config.").removesuffix("}")]
        assert asked["title"] == name
        assert asked["sensitive"] is True
        assert asked["default"] == "", "what is not given must be empty, not the reference itself"
