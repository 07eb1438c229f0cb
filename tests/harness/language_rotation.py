"""The short form of suites that run every case with every language: each case runs with one of them.

Most of what a case tests is the core, which all languages share. The long form, without `--spread`, is run by hand, and
when a binding changes.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def add_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--spread", action="store_true", help="spread the cases over the languages: run each with only one of them")


def one_of(case: str, choices: Sequence[T]) -> T:
    """Returns the choice with which a case runs: the same in every run, whatever other cases there are.

    A hash and not the place in a list, because lists are products: each language would get the cases of one transport.
    """
    number = int.from_bytes(hashlib.blake2b(case.encode(), digest_size=4).digest())
    return choices[number % len(choices)]
