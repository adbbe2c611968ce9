"""What the team changes of the user's files: from the state that all agents begin with to a patch.

The base is the state of the user's directories when the run began. It is one tree, as git means it, in a private
repository in the run's own directory: each directory is an entry of it under the name that agents know it by
(`NAME/src/a.py`). Every answer is a second tree of the same shape, and its patch is the difference between the two.

- `git`: how git is run here, so that nothing of a repository's own settings takes effect; a clone.
- `files`: a directory is read as it lies there, following nothing, and without what commonly holds secrets.
- `repository`: trees: written from a directory, laid out in another one, compared, merged.
- `user_repository`: what the user's own repository tracks and ignores, read without letting git into it.
- `base`, `copies`, `run_changes`: the base of a run, the agents' copies of it, and what those have become.
- `apply`, `obstacles`: what it takes to bring a patch into the directories as they are now, or to a branch.
- `transaction`, `apply_records`, `held_directory`: doing that as a whole or not at all; taking it back.

The user's repository, its index, references and objects are only read, but for a branch that is asked for. Must not
know what a run, an agent or an event is.
"""
