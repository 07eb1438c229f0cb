"""Shared by the test runners under `tests/` and `benches/`: environments, processes, servers under test.

Python 3.10+, standard library only, so that every runner starts without installing anything.
"""
