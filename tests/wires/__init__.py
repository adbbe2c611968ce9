"""The six wires, the checks of each and the faults that each must stand: one source for pytest and docs/wires.md."""
