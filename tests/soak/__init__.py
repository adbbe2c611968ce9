"""Long harnesses: what must hold over thousands of runs, faults and starts. `make soak` runs them in full.

Each module has one harness: a function of its size that prints figures and raises `AssertionError` when something did
not hold. The test suite runs every one in a short form, and its known-bad twin, which must fail.
"""
