"""Every exit code of our two commands."""

from massgen_mcp.cli import exits

CODES_OF_MASSGEN = {exits.EXIT_OK, exits.EXIT_CONFIG, exits.EXIT_EXECUTION, exits.EXIT_TIMEOUT, exits.EXIT_INTERRUPTED}
CODES_OF_VERBS = {
    *(exits.EXIT_OK, exits.EXIT_FAILED, exits.EXIT_NOT_ENDED, exits.EXIT_UNKNOWN),
    *(exits.EXIT_INPUT_NEEDED, exits.EXIT_BROKEN, exits.EXIT_USAGE, exits.EXIT_STOPPED),
}
