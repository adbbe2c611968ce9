"""What every engine has to do, whatever keeps its runs. A new one adds itself to `IMPLEMENTATIONS` in `machine.py`."""
