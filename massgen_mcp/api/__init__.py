"""How Python talks to us: `run` asks a team and returns the result as a dictionary.

START at `calls.run`; `asked` turns arguments into one request, `performing` executes it in this process.
"""
