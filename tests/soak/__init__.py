"""Faults in great number: processes that are killed, files that are damaged, loads. `make soak` runs the long forms.

The test suite runs each in a short form, and beside it a known-bad twin that the same check must catch.
"""
