"""The ways to find a winner that a call may ask for: a judge has a config of its own. Imports nothing of ours."""

from typing import Literal

GivenDecide = Literal["auto", "vote", "checks", "synthesise"]
