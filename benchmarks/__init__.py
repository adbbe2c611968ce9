"""What massgen-mcp costs besides its models: time, CPU, memory and model requests, beside a model that takes no time.

`python -m benchmarks [--repeat N]` from the repository root, in an environment where the package is installed; Linux
only, since it reads `/proc`. It needs no key and asks nobody but a local model that it starts itself. It prints one
table of medians [min-max] and exits with 1 if a run made another number of model requests than the rules demand;
timings never fail it. See `__main__` for what is measured and in which order, and `streams` for what long replies cost
on every wire (`python -m benchmarks.streams`), and `waiting` for what waiting runs and calls cost, and what long queues
and journals do (`python -m benchmarks.waiting`).
"""
