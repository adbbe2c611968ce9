"""The exit codes of `massgen`. A contract: programs decide by them."""

EXIT_OK = 0
EXIT_CONFIG = 1
EXIT_EXECUTION = 2
EXIT_TIMEOUT = 3
EXIT_INTERRUPTED = 4
