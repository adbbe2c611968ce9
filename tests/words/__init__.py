"""Ratchets for words: the figures of each room of the package only get better, and prose names only what exists."""
