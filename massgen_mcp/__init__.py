"""Delegate a hard question to a team of LLM agents that answer, read each other's answers and vote.

Importing this package is cheap on purpose: no provider SDK, no server, no third-party import happens here.
"""

__version__ = "0.1.0"
