"""Which part of a test's cases a run tries, where their time goes to compilers. SEED chooses it, which run.sh takes from tests/seed, so that
each case is tried in one of so many runs with other seeds; `ninja soak` tries all of them: with --all, or with CASES=all where a script takes names alone."""

import os
import sys
import unittest

SEED = int(os.environ.get("SEED", 1))
ALL = "--all" in sys.argv or os.environ.get("CASES") == "all"
rotated = 1  # of how many turns the tests that run have one


def within(seed):
    """The seed of turns within a test, so that in its own turns it comes with each of them."""
    return SEED // rotated if seed is None else seed


def in_turn(cases, turns, seed=None):
    """Every turns-th case; at least one. What takes turns within a case that has one of N turns goes by SEED // N, as it does by itself
    within the tests of rotating()."""
    cases, seed = list(cases), within(seed)
    return cases if ALL else cases[seed % turns :: turns] or [cases[seed % len(cases)]]


def is_in_turn(number, turns, seed=None):
    """Whether in_turn() has the case of this number among as many as `turns` or more."""
    return ALL or number % turns == within(seed) % turns


def rotating(turns, always=()):
    """A module's load_tests: every turns-th test, and all of the classes named in `always`, which take no time."""
    def load_tests(_loader, suite, _pattern):
        tests = [test for case in suite for test in case]
        quick = [test for test in tests if type(test).__name__ in always]
        slow = [test for test in tests if test not in quick]
        mine = in_turn(slow, turns, SEED)
        global rotated
        rotated = turns
        print(f"{len(mine)} of {len(slow)} tests: SEED={SEED}", flush=True)
        return unittest.TestSuite(mine + quick)

    return load_tests
