"""How a winner is found: a module for each procedure, and `next_step`, which asks the one that the rules name.

A procedure is pure and without memory. It reads the state and says what is due: a stage, the winner, or nothing yet.
What it says is recorded, and so becomes a part of the state.
"""
