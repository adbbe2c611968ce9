"""What an editor sends as a prompt, as the question of a run. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from massgen_mcp.errors import MassgenError
from massgen_mcp.json_rpc import fields
from massgen_mcp.markers import marked

ONLY_TEXT = "the models of the team are sent text alone; say in words what it shows"


def question_of(blocks: Sequence[object], cwd: Path) -> str:
    """Files that are named, or come along, are called as the agents find them in their copies of `cwd`. Raises
    `MassgenError` invalid_arguments for what is no text.
    """
    return "".join(_block_text(fields(block), cwd) for block in blocks).strip()


def _block_text(block: Mapping[str, Any], cwd: Path) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            return f"`{_name(uri, cwd)}`"
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            name = _name(uri, cwd).replace('"', "'").replace("\n", " ")
            return f"\n\n{marked('file', text, '', name=name)}\n\n"
        case _:
            kind = str(block.get("type"))[:40]
            raise MassgenError("invalid_arguments", f"the prompt holds {kind!r}, and {ONLY_TEXT}")


def _name(uri: str, cwd: Path) -> str:
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or not path.is_relative_to(cwd):
        return uri
    lines = f" ({parts.fragment})" if parts.fragment else ""
    return f"{cwd.name / path.relative_to(cwd)}{lines}"
