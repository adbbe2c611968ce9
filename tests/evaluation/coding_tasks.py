"""Two coding tasks for a team within Inspect, apart from the program that gives them to it and takes long to import."""

TASKS = ("Fix add.", "Say nothing.")
CHECK = "python3 -c 'import add; assert add.add(1, 2) == 3'"
