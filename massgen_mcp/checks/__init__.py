"""Checks: commands of the user's that judge the files of every answer alike.

    judge = FileJudge(run_changes, base, place, check_rules)
    subject = await judge.subject(tree)                  # what of an answer's files is judged
    outcome = await judge.check(subject.tree, "make test")  # on a fresh check-out, in the sandbox

- `protected`: which files are judged as they are in the base, so that no answer weakens what judges it. Pure.
- `scripts`, `recipes`: which files a command runs, itself or by way of `make`, `npm` and the like. Pure.
- `output`: what a check printed: which lines tell why it failed, how many tests ran, did it fail for the environment.
  Pure.
- `judge`: lays the files out and runs a check on them.
- `proposals`: which checks a directory seems to have. Reads, and runs nothing.

Must not know agents, votes or events of a run but the outcome of a check.
"""
