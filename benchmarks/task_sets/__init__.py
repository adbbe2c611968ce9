"""Makes the task sets that ship with `massgen eval`: `python -m benchmarks.task_sets` writes them anew, with the same
lines each time. All of them are our own, so nothing in them has another licence than this package.
"""
