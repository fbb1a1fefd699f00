"""The schedules of emitted programs at 1,000 steps: against PyTorch's schedulers where these mean the same, against
docs/job.md's formulas with transformers' warm-up and restarts where they do not. Both in float64."""

import math
import unittest
import warnings

import torch
from parts import make_job, rates

STEPS = 1000
LR = 3e-3
sched = torch.optim.lr_scheduler


def by_torch(make):
    """The rates of a PyTorch scheduler."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = make(optimizer)
        for _ in range(STEPS):
            values.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if len(values) < STEPS:
                scheduler.step()
    return values


def warm(at, steps):
    return min((at + 1) / steps, 1) if steps else 1


def fraction(at, begin, end):
    return min(max((at - begin) / (end - begin), 0), 1)


class Schedules(unittest.TestCase):
    def check(self, schedule, expected, lr=LR, near=1e-9):
        """expected: a list of rates, or a function from the step to the rate."""
        ours = rates(make_job(STEPS, optimizer={"name": "sgd", "lr": lr}, schedule=schedule), STEPS)
        if callable(expected):
            expected = [expected(at) for at in range(STEPS)]
        self.assertEqual(len(expected), STEPS)
        for at, (rate, truth) in enumerate(zip(ours, expected)):
            self.assertLessEqual(abs(rate - truth), near * lr, f"step {at}: {rate} is not {truth}")

    # Against PyTorch.

    def test_constant(self):
        self.check({"name": "constant"}, by_torch(lambda o: sched.ConstantLR(o, 1.0)))

    def test_linear(self):
        self.check({"name": "linear", "min_lr": 3e-4, "decay_steps": 800},
                   by_torch(lambda o: sched.LinearLR(o, 1.0, 0.1, 800)))

    def test_cosine(self):
        self.check({"name": "cosine", "min_lr": 1e-4}, by_torch(lambda o: sched.CosineAnnealingLR(o, STEPS, 1e-4)))

    def test_cosine_with_restarts(self):
        self.check({"name": "cosine_with_restarts", "cycles": 4, "min_lr": 1e-4},
                   by_torch(lambda o: sched.CosineAnnealingWarmRestarts(o, 250, eta_min=1e-4)))

    def test_polynomial(self):
        self.check({"name": "polynomial", "power": 2.5, "decay_steps": 900},
                   by_torch(lambda o: sched.PolynomialLR(o, 900, 2.5)))

    def test_exponential(self):
        self.check({"name": "exponential", "gamma": 0.995}, by_torch(lambda o: sched.ExponentialLR(o, 0.995)))

    def test_step(self):
        self.check({"name": "step", "gamma": 0.5, "step_size": 30}, by_torch(lambda o: sched.StepLR(o, 30, 0.5)))

    def test_one_cycle(self):
        self.check({"name": "one_cycle"}, by_torch(lambda o: sched.OneCycleLR(o, LR, STEPS)))

    def test_one_cycle_between_steps(self):
        self.check({"name": "one_cycle", "pct_start": 0.1234, "div_factor": 10.0, "final_div_factor": 50.0},
                   by_torch(lambda o: sched.OneCycleLR(o, LR, STEPS, pct_start=0.1234, div_factor=10,
                                                       final_div_factor=50)))

    def test_one_cycle_in_lines(self):
        self.check({"name": "one_cycle", "anneal": "linear"},
                   by_torch(lambda o: sched.OneCycleLR(o, LR, STEPS, anneal_strategy="linear")))

    def test_one_cycle_only_up(self):
        self.check({"name": "one_cycle", "pct_start": 1.0},
                   by_torch(lambda o: sched.OneCycleLR(o, LR, STEPS, pct_start=1.0)))

    def test_one_cycle_only_down(self):
        self.check({"name": "one_cycle", "pct_start": 0.0},
                   by_torch(lambda o: sched.OneCycleLR(o, LR, STEPS, pct_start=0.0)))

    # Against the formulas.

    def test_warm_up(self):
        self.check({"warmup_steps": 100}, lambda at: LR * warm(at, 100))

    def test_warm_up_by_fraction(self):
        self.check({"name": "linear", "warmup_fraction": 0.0501},
                   lambda at: LR * warm(at, 51) * (1 - fraction(at, 51, STEPS)))

    def test_one_cycle_stays_down(self):
        ours = rates(make_job(STEPS, optimizer={"name": "sgd", "lr": LR},
                              schedule={"name": "one_cycle", "decay_steps": 300}), STEPS)
        for rate in ours[299:]:
            self.assertAlmostEqual(rate, LR / 25 / 1e4, delta=1e-9 * LR)

    def test_restarts_after_warm_up(self):
        def truth(at):  # transformers' get_cosine_with_hard_restarts_schedule_with_warmup
            done = fraction(at, 100, 700)
            return LR * warm(at, 100) * (0 if done == 1 else 0.5 * (1 + math.cos(math.pi * (3 * done % 1))))

        self.check({"name": "cosine_with_restarts", "cycles": 3, "warmup_steps": 100, "decay_steps": 700}, truth)

    def test_polynomial_after_warm_up(self):
        self.check({"name": "polynomial", "power": 0.5, "warmup_steps": 50, "min_lr": 1e-4},
                   lambda at: warm(at, 50) * (1e-4 + (LR - 1e-4) * (1 - fraction(at, 50, STEPS)) ** 0.5))

    def test_inverse_sqrt(self):
        self.check({"name": "inverse_sqrt"}, lambda at: LR * math.sqrt(10000 / (10000 + at)))

    def test_inverse_sqrt_after_warm_up(self):
        self.check({"name": "inverse_sqrt", "warmup_steps": 40},
                   lambda at: LR * warm(at, 40) * math.sqrt(40 / max(at, 40)))

    def test_inverse_sqrt_with_timescale(self):
        self.check({"name": "inverse_sqrt", "warmup_steps": 40, "timescale": 7},
                   lambda at: LR * warm(at, 40) * math.sqrt(7 / (7 + max(at - 40, 0))))

    def test_exponential_after_warm_up(self):
        self.check({"name": "exponential", "gamma": 0.99, "warmup_steps": 9},
                   lambda at: LR * warm(at, 9) * 0.99 ** max(at - 9, 0))

    def test_step_after_warm_up(self):
        self.check({"name": "step", "gamma": 0.9, "step_size": 7, "warmup_steps": 9},
                   lambda at: LR * warm(at, 9) * 0.9 ** (max(at - 9, 0) // 7))

    def test_wsd(self):
        self.check({"name": "wsd", "warmup_steps": 100, "decay_fraction": 0.2, "min_lr": 3e-4},
                   lambda at: warm(at, 100) * (LR + (3e-4 - LR) * fraction(at, 800, STEPS)))

    def test_wsd_cosine(self):
        self.check({"name": "wsd", "decay_type": "cosine", "stable_steps": 600, "decay_steps": 900},
                   lambda at: LR * 0.5 * (1 + math.cos(math.pi * fraction(at, 600, 900))))

    def test_wsd_sqrt(self):
        self.check({"name": "wsd", "decay_type": "sqrt", "warmup_steps": 30, "stable_steps": 600},
                   lambda at: LR * warm(at, 30) * (1 - math.sqrt(fraction(at, 630, STEPS))))

    def test_wsd_all_decay(self):
        self.check({"name": "wsd", "decay_fraction": 1.0, "warmup_steps": 30},
                   lambda at: LR * warm(at, 30) * (1 - fraction(at, 30, STEPS)))


if __name__ == "__main__":
    unittest.main()
