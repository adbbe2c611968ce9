"""Things to run and to learn from, one idea each."""
