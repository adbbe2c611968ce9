"""What a model reads of a server's result: bounded text. What is too long and what is no text lies in its workspace."""

import base64
import binascii
import hashlib
import json
import mimetypes
from typing import TYPE_CHECKING

from massgen_mcp.redaction import Redactor
from massgen_mcp.tools.base import ToolResult, well_formed
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import PathRefused

if TYPE_CHECKING:
    import mcp_types

MAX_SHOWN = 20_000
"""Characters of a result that a model reads at once."""
SHOWN_TAIL = 6_000
"""Those of them that are the end of a longer one."""
MAX_BLOCKS = 100
DIRECTORY = "tool_results"


class ToolResults:
    """Where an agent's results are kept whole. Without a workspace nothing is kept."""

    def __init__(self, workspace: Workspace | None, redactor: Redactor) -> None:
        self._workspace = workspace
        self._redactor = redactor

    def as_tool_result(self, tool: str, result: "mcp_types.CallToolResult") -> ToolResult:
        """Blocking: it may write files."""
        parts = [self._block(tool, block) for block in result.content[:MAX_BLOCKS]]
        if len(result.content) > MAX_BLOCKS:
            parts.append(f"[{len(result.content) - MAX_BLOCKS} more parts are left out]")
        if not parts and result.structured_content is not None:
            parts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
        text = self._redactor.text(_readable("\n".join(parts))) or "[the result is empty]"
        return ToolResult(self._bounded(tool, text), is_error=bool(result.is_error), foreign=True)

    def clean(self, text: str) -> str:
        """Words of a server about a failure."""
        return self._redactor.text(_readable(text))[:MAX_SHOWN]

    def _bounded(self, tool: str, text: str) -> str:
        if len(text) <= MAX_SHOWN:
            return text
        kept = self._keep(tool, text.encode(), ".txt")
        whole = f"the whole text is in {kept}" if kept else "the rest is lost; ask for less"
        cut = f"[cut: {MAX_SHOWN} of {len(text)} characters; {whole}]"
        return f"{text[: MAX_SHOWN - SHOWN_TAIL]}\n{cut}\n{text[-SHOWN_TAIL:]}"

    def _block(self, tool: str, block: "mcp_types.ContentBlock") -> str:
        import mcp_types

        match block:
            case mcp_types.TextContent():
                return block.text
            case mcp_types.ImageContent() | mcp_types.AudioContent():
                return self._binary(tool, block.mime_type, block.data)
            case mcp_types.ResourceLink():
                return f"[resource {block.name}: {block.uri}]"
            case mcp_types.EmbeddedResource():
                resource = block.resource
                if isinstance(resource, mcp_types.TextResourceContents):
                    return resource.text
                return self._binary(tool, resource.mime_type or "application/octet-stream", resource.blob)

    def _binary(self, tool: str, kind: str, encoded: str) -> str:
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return f"[{_readable(kind)[:100]}, damaged]"
        ending = mimetypes.guess_extension(kind.partition(";")[0].strip()) or ".bin"
        kept = self._keep(tool, data, ending)
        return f"[{_readable(kind)[:100]}, {len(data)} bytes{f', in {kept}' if kept else ', not kept'}]"

    def _keep(self, tool: str, data: bytes, ending: str) -> str | None:
        """Where it lies now; the same content has the same name."""
        if self._workspace is None:
            return None
        path = f"{DIRECTORY}/{tool}-{hashlib.sha256(data).hexdigest()[:12]}{ending}"
        try:
            self._workspace.root.write_bytes(path, data)
        except PathRefused:
            return None
        return path


def _readable(text: str) -> str:
    """Without NUL, which not every provider takes."""
    return well_formed(text).replace("\0", "\ufffd")
