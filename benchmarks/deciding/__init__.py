"""How a team decides, with programs that are really run: `python -m benchmarks.deciding --seed 1`.

The tasks are small functions (`functions`), wrong answers are changes of their code that were run (`variants`), and the
agents are doubles (`doubles`): how often they are right, misread a task or judge well is assumed, and nothing here says
anything of real models. Who wins is decided by the product's own rules (`deciding`). What is printed has a bar beside
it; what misses it is told as missed, and where `checks` loses to `vote` the loss is told.
"""
