"""What ranks may divide, and cases of it: all that there are, or few in which each pair of values is once."""

import itertools

RANKS = (1, 2, 3, 4, 8)
# In the words of zero_stage; those of fsdp give the same programs (tests/reference/test_placements.py).
PLACEMENTS = {"whole": {}, "states": {"zero_stage": 1}, "gradients": {"zero_stage": 2}, "weights": {"zero_stage": 3},
              "groups": {"zero_stage": 3}}


def is_placed(ranks, placement):
    """Groups are two, of two ranks and more."""
    return placement == "whole" or ranks > 1 and (placement != "groups" or ranks >= 4)


def parallelism(ranks, placement):
    """The job's keys."""
    shards = {"dp_shard": ranks // 2} if placement == "groups" else {}
    return {**PLACEMENTS[placement], **shards, "ddp": {"bucket_cap_mb": 0.0001}}


def cases_of(*others):
    """(ranks, placement, ...): every combination."""
    return [case for case in itertools.product(RANKS, PLACEMENTS, *others) if is_placed(*case[:2])]


def covering(cases, taken=()):
    """Of the cases `taken` and as many more as it takes for each pair of values that is in any."""
    def pairs(case):
        return set(itertools.combinations(enumerate(case), 2))

    chosen, left = list(taken), set().union(*map(pairs, cases)) - set().union(*map(pairs, taken))
    while left:
        chosen.append(max(cases, key=lambda case: len(pairs(case) & left)))
        left -= pairs(chosen[-1])
    return chosen
