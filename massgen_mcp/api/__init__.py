"""How Python talks to us: `run` asks a team and returns the result as a dictionary.

START at `calls.run`; `request` turns arguments into one request, `performing` has it executed in this process.
"""
