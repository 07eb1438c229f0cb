"""What the test runners under `tests/` and `benches/` share: environments, processes, servers under test.

Python 3.10+, standard library only, so that every runner starts on a bare machine.
"""
