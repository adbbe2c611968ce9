"""Programs of agents, run where they can neither harm nor read anything that was not given to them.

    policy = Policy(workspace=Path(...), scratch=Path(...), shown=(Shown(Path("/home/me/repo"), "/context/repo"),))
    found = await probed(cache)                     # which levels hold on this machine; tried once, then remembered
    level, why_not = found.choose()                 # None, and how to get one, where no level holds
    async with spawn(["/bin/sh", "-c", "make test"], policy, level) as process:
        ...                                         # process.stdout, process.stderr, process.stdin, process.stop()
        ended = await process.wait()                # Ended(reason, code, seconds, ...)

Inside, the workspace is `/workspace`, the scratch directory `/tmp`; each `Shown` is at its `place`. A server that speaks
over standard input and output is started with `stdin=True, split=True`. The environment is `Policy.environ` and a few
plain variables, never our own. When the block is left, by a cancellation too, and when this process dies, every process
of the command is gone, whatever it has done to get away.
"""
