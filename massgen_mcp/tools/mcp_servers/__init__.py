"""Tools of the user's own MCP servers, for one run.

What a server does wrong harms its own calls only: it may start slowly or never, crash, flood, hang, change its tools or
describe them wrongly. `host` keeps the servers of a run, `toolbox` is what one agent has of them.
"""

from massgen_mcp.tools.mcp_servers.host import ServerDirectories, ServerHost, ServerReport
from massgen_mcp.tools.mcp_servers.toolbox import Toolbox

__all__ = ["ServerDirectories", "ServerHost", "ServerReport", "Toolbox"]
