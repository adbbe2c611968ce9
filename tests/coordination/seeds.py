"""How many random coordinations a module plays."""

import os

SEEDS = int(os.environ.get("SEEDS", "2500"))
