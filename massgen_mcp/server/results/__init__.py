"""Draws what the tools return from a run, a config or the store: a module for each tool's reply.

Everything a model needs is in there, the next step included: some clients show it nothing else.
"""

from massgen_mcp.server.results.apply import Applied, Ways, applied
from massgen_mcp.server.results.configs import ConfigList, config_list
from massgen_mcp.server.results.reply import MAX_BYTES, ToolReply
from massgen_mcp.server.results.result import Result, ResultView, render_result, result, whole_result
from massgen_mcp.server.results.runs import RunList, run_list
from massgen_mcp.server.results.start import Started, StartFacts, planned, started
from massgen_mcp.server.results.status import Controlled, Status, Waited, controlled, kept_budget, status, waited

__all__ = [
    "MAX_BYTES",
    "Applied",
    "ConfigList",
    "Controlled",
    "Result",
    "ResultView",
    "RunList",
    "StartFacts",
    "Started",
    "Status",
    "ToolReply",
    "Waited",
    "Ways",
    "applied",
    "config_list",
    "controlled",
    "kept_budget",
    "planned",
    "render_result",
    "result",
    "run_list",
    "started",
    "status",
    "waited",
    "whole_result",
]
