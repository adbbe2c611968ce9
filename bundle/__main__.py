"""`python -m bundle`: write `server.json`, the manifest and the plugin for Codex, and make the bundle
`dist/massgen-mcp-VERSION.mcpb`, checked by MCPB's own validator (`npx`, so it needs npm). `--registry-schema FILE`
checks `server.json`, too; the registry publishes that file.

Exit code 1 if a validator refuses.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

from bundle.facts import (
    CODEX_PLUGIN,
    CODEX_SKILL,
    MANIFEST,
    ROOT,
    SERVER_JSON,
    codex_plugin,
    codex_skill,
    manifest,
    server_json,
    written,
)
from massgen_mcp import __version__

VALIDATOR = "@anthropic-ai/mcpb@2.1.2"
CONTENTS = ("massgen_mcp", "configs", "pyproject.toml", "README.md", "LICENSE")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bundle", description="Make the MCPB bundle and server.json.")
    parser.add_argument("--registry-schema", type=Path, metavar="FILE", help="check server.json by this JSON schema")
    schema: Path | None = parser.parse_args().registry_schema
    SERVER_JSON.write_text(written(server_json()))
    MANIFEST.write_text(written(manifest()))
    CODEX_PLUGIN.write_text(written(codex_plugin()))
    CODEX_SKILL.write_text(codex_skill())
    if schema:
        jsonschema.validate(server_json(), json.loads(schema.read_text()))
        print("server.json: as the registry's schema wants it")
    bundle = ROOT / "dist" / f"massgen-mcp-{__version__}.mcpb"
    bundle.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="massgen-bundle-") as directory:
        _lay_out(Path(directory))
        for command in (["validate", directory], ["pack", directory, str(bundle)]):
            if (done := subprocess.run(["npx", "--yes", VALIDATOR, *command], check=False)).returncode:
                return min(done.returncode, 1)
    return 0


def _lay_out(directory: Path) -> None:
    for name in CONTENTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, directory / name)
    shutil.copy(MANIFEST, directory / "manifest.json")


if __name__ == "__main__":
    sys.exit(main())
