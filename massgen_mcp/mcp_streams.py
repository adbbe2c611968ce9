"""What messages of MCP come and go over. The one place that knows where the SDK keeps these types: it exports none."""

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

__all__ = ["ReadStream", "TransportStreams", "WriteStream"]

TransportStreams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]
"""What comes from the other side, and what goes to it."""
