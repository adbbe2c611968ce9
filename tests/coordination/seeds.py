"""How many random coordinations a module plays. `SEEDS=10000` plays more, as the weekly workflow does."""

import os

SEEDS = int(os.environ.get("SEEDS", "1000"))
