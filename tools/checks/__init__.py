"""The checks of tools/check.py. Each takes a Tree and returns a list of Problem."""
