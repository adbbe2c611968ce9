"""A run on a terminal while it goes on: what both commands show a person, and the keys that person has."""
