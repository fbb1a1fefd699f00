"""The schedules of emitted programs at 1,000 steps: against the schedulers of PyTorch and transformers where these mean
the same, against docs/job.md's formulas where they do not; over several ranks against Accelerate's. All in float64."""

import math
import types
import unittest
import unittest.mock
import warnings

import accelerate.scheduler
import torch
import transformers.optimization as theirs
from accelerate import Accelerator
from parts import compile_rates, make_job, rates, render, weight_decays

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

    def test_warm_up_by_samples(self):
        """Batches of 2: 101 samples are 51 steps, 1,399 are 700."""
        self.check({"name": "linear", "warmup_samples": 101, "decay_samples": 1399},
                   lambda at: LR * warm(at, 51) * (1 - fraction(at, 51, 700)))

    # Against transformers, whose warm-up starts at 0: its step n + 1 has the rate of ours, up to the warm-up's end.

    def check_transformers(self, schedule, make, warmup=100):
        truth = by_torch(lambda o: make(o, num_warmup_steps=warmup))
        self.check(schedule, lambda at: truth[at + 1 if at < warmup else at])

    def test_transformers_constant(self):
        self.check_transformers({"warmup_steps": 100}, theirs.get_constant_schedule_with_warmup)

    def test_transformers_linear(self):
        self.check_transformers({"name": "linear", "warmup_steps": 100},
                                lambda o, **k: theirs.get_linear_schedule_with_warmup(o, num_training_steps=STEPS, **k))

    def test_no_decay(self):
        """A decay that ends with the warm-up has no step of its own: the lowest rate comes next."""
        truth = by_torch(lambda o: theirs.get_linear_schedule_with_warmup(o, 100, 100))
        self.check({"name": "linear", "warmup_steps": 100, "decay_steps": 100},
                   lambda at: truth[at + 1] if at < 99 else LR if at == 99 else truth[at])
        for name in ("cosine", "cosine_with_restarts", "polynomial", "wsd"):
            self.check({"name": name, "warmup_steps": 100, "decay_steps": 100, "min_lr": 1e-4},
                       lambda at: LR * warm(at, 100) if at < 100 else 1e-4)

    def test_transformers_cosine(self):
        self.check_transformers({"name": "cosine", "warmup_steps": 100},
                                lambda o, **k: theirs.get_cosine_schedule_with_warmup(o, num_training_steps=STEPS, **k))

    def test_transformers_restarts(self):
        self.check_transformers({"name": "cosine_with_restarts", "warmup_steps": 100, "cycles": 3},
                                lambda o, **k: theirs.get_cosine_with_hard_restarts_schedule_with_warmup(
                                    o, num_training_steps=STEPS, num_cycles=3, **k))

    def test_transformers_polynomial(self):
        self.check_transformers({"name": "polynomial", "warmup_steps": 100, "power": 2.0, "min_lr": 1e-4},
                                lambda o, **k: theirs.get_polynomial_decay_schedule_with_warmup(
                                    o, num_training_steps=STEPS, lr_end=1e-4, power=2.0, **k))

    def test_transformers_inverse_sqrt(self):
        self.check_transformers({"name": "inverse_sqrt", "warmup_steps": 100, "timescale": 70},
                                lambda o, **k: theirs.get_inverse_sqrt_schedule(o, timescale=70, **k))

    def test_transformers_wsd(self):
        for form in ("linear", "cosine"):
            self.check_transformers({"name": "wsd", "warmup_steps": 100, "stable_steps": 600, "decay_type": form},
                                    lambda o, **k: theirs.get_wsd_schedule(
                                        o, num_stable_steps=600, num_decay_steps=300, decay_type=form, **k))


class Ranks(unittest.TestCase):
    """The template with several steps of the schedule a step, against Accelerate over as many processes."""

    FORMS = {"cosine": lambda o: sched.CosineAnnealingLR(o, STEPS), "linear": lambda o: sched.LinearLR(o, 1.0, 0.0, STEPS),
             "exponential": lambda o: sched.ExponentialLR(o, 0.995)}

    def of_accelerate(self, form, ranks, split, count):
        Accelerator(cpu=True)
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)
        own = types.SimpleNamespace(step_was_skipped=False)
        values = []
        state = lambda: types.SimpleNamespace(num_processes=ranks)  # noqa: E731
        with warnings.catch_warnings(), unittest.mock.patch.object(accelerate.scheduler, "AcceleratorState", state):
            warnings.simplefilter("ignore")
            scheduler = accelerate.scheduler.AcceleratedScheduler(self.FORMS[form](optimizer), own, split_batches=split)
            for _ in range(count):
                values.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                scheduler.step()
        return values

    def test_ranks(self):
        for form in self.FORMS:
            for ranks, split in ((1, False), (2, False), (8, False), (8, True)):
                with self.subTest(form=form, ranks=ranks, split=split):
                    per_step = 1 if split else ranks  # gen/program/schedule.h; tests/plan/test_schedule.c
                    count = STEPS // per_step
                    values = {"name": form, "warmup_steps": 0, "stable_until": 0, "decay_steps": STEPS, "min_lr": 0.0,
                              "gamma": 0.995, "per_step": per_step, "wd_incr_style": "constant", "cycles": 1,
                              "step_size": 1, "varies": True}
                    text = render("program/schedule.c.j2", {"schedule": values, "optimizer": {"lr": LR}})
                    for at, (ours, truth) in enumerate(zip(compile_rates(text, count),
                                                           self.of_accelerate(form, ranks, split, count))):
                        self.assertLessEqual(abs(ours - truth), 1e-9 * LR, f"step {at}")


class WeightDecay(unittest.TestCase):
    def test_growth(self):
        """OptimizerParamScheduler.get_wd of Megatron-LM."""
        def truth(at, start, end, style):
            ratio = at / STEPS
            return start + (end - start) * (ratio if style == "linear" else 0.5 * (math.cos(math.pi * (1 - ratio)) + 1))

        for style in ("linear", "cosine"):
            for start in (0.0, 0.02):
                job = make_job(STEPS, optimizer={"name": "adamw", "weight_decay": 0.3},
                               schedule={"wd_incr_style": style, "start_weight_decay": start})
                for at, ours in enumerate(weight_decays(job, STEPS, 0.3)):
                    self.assertLessEqual(abs(ours - truth(at, start, 0.3, style)), 1e-12, f"{style} from {start}: {at}")


if __name__ == "__main__":
    unittest.main()
