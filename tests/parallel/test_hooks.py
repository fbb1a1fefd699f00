"""Hooks in runs of several ranks: called on all of them, with Accelerate's operations at hand; what one rank asks for all
do; what they save is resumed with another number of ranks; a rank that is elsewhere is reported by its number."""

import json
import shutil
import unittest

from ranks import Ranks, job_of, load_file

TIMEOUT = 20  # longer than a busy machine holds up a rank that saves

HOOKS = r"""#include <accel/accel.h>
#include <accel/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  int64_t calls, of_rank;
} count; /* of the main process, and of each */

/* What all ranks have of a number. */
static const char *all_of(struct accel_store *store, double number) {
  struct accel_value *map = accel_make_map(store), *list = accel_make_list(store);
  accel_set(store, map, "number", accel_make_real(store, number));
  for (int i = 0; i < accel_process()->index; i++) accel_append(store, list, map);
  return accel_show(store, accel_gather_object(store, list));
}

void on_pre_load(struct accel_run *run, const struct accel_progress *at) {
  char bytes[500];
  int64_t size = accel_load_file(run, "ranks.bin", bytes, sizeof bytes);
  struct accel_store *store = accel_store_new();
  struct accel_value *saved = accel_from_bytes(store, bytes, (size_t)size);
  struct accel_value *own = accel_at(saved, accel_process()->index < accel_count(saved) ? accel_process()->index : 0);
  count.of_rank = own->integer;
  accel_print(run, "loaded %lld at %lld: %s", (long long)accel_count(saved), (long long)at->step, accel_show(store, saved));
  accel_store_free(store);
}

void on_start(struct accel_run *run, const struct accel_progress *at) {
  accel_register_for_checkpointing(run, &count.calls, sizeof count.calls);
  ACCEL_MAIN_PROCESS_FIRST {
    FILE *file = fopen("first.txt", accel_on_main_process() ? "w" : "a");
    fprintf(file, "%d\n", accel_process()->is_main);
    fclose(file);
  }
  if (strcmp(accel_process()->distributed_type, accel_process()->count > 1 ? "MULTI_CPU" : "NO") != 0) abort();
  accel_print(run, "start %lld, calls %lld", (long long)at->step, (long long)count.calls);
}

void on_step(struct accel_run *run, const struct accel_progress *at) {
  const struct accel_process *process = accel_process();
  struct accel_logger logger = accel_get_logger("hooks", ACCEL_LEVEL_INFO);
  struct accel_store *store = accel_store_new();
  const char *wrong = getenv("WRONG");
  count.calls++;
  count.of_rank += process->index + 1;
  float own[] = {(float)process->index, (float)at->step};
  struct accel_value *value = accel_make_tensor(store, ACCEL_FLOAT32, 1, (int64_t[]){2}, own);
  if (wrong != NULL && strcmp(wrong, "shape") == 0 && process->index == 1)
    value = accel_make_tensor(store, ACCEL_FLOAT32, 1, (int64_t[]){1}, own);
  if (wrong != NULL && strcmp(wrong, "operation") == 0 && process->index == 2) accel_broadcast(store, value, 0);
  if (wrong != NULL && strcmp(wrong, "absence") == 0 && process->index == 0) return;
  if (wrong != NULL && strcmp(wrong, "wait") == 0 && process->index == 2) accel_wait_for_everyone();
  struct accel_value *mean = accel_reduce(store, value, ACCEL_MEAN, 2);
  struct accel_value *all = accel_gather(store, value);
  if (all == NULL) {
    accel_print(run, "gather: %s", accel_store_error(store));
    exit(3);
  }
  accel_print(run, "%s %s %s", accel_show(store, mean), accel_show(store, all), all_of(store, at->loss > 0));
  if (at->step == 3 && process->is_last) accel_set_trigger(run);
  if (accel_check_trigger(run)) accel_write(&logger, ACCEL_LEVEL_WARNING, ACCEL_IN_ORDER, "triggered at %lld", (long long)at->step);
  accel_write(&logger, ACCEL_LEVEL_DEBUG, ACCEL_EVERY_PROCESS, "not written");
  accel_write(&logger, ACCEL_LEVEL_INFO, ACCEL_MAIN_PROCESS_ONLY, "step");
  for (int i = 0; i < 2; i++) ACCEL_WARNING_ONCE(&logger, "once in %d", (int)at->steps);
  accel_log(run, "calls", (double)count.calls);
  if (at->step % 4 == 0 && process->is_last) accel_save(run);
  if (at->step == 6 && process->is_last) accel_stop(run);
  accel_store_free(store);
}

void on_pre_save(struct accel_run *run, const struct accel_progress *at) {
  struct accel_store *store = accel_store_new();
  struct accel_value *list = accel_append(store, accel_make_list(store), accel_make_integer(store, count.of_rank));
  size_t size;
  void *bytes = accel_to_bytes(store, accel_gather_object(store, list), &size);
  (void)at;
  accel_save_file(run, "ranks.bin", bytes, size);
  accel_store_free(store);
}

void on_save(struct accel_run *run, const struct accel_progress *at) { accel_print(run, "saved %lld", (long long)at->step); }
void on_end(struct accel_run *run, const struct accel_progress *at) { accel_print(run, "end %lld", (long long)at->step); }
"""
NAMES = ("on_pre_load", "on_start", "on_step", "on_pre_save", "on_save", "on_end")


def build(ranks, batch):
    job = job_of(ranks, batch, 9, devices={"timeout": TIMEOUT}, checkpoint={"every": 100}, training={"eval_interval": 3, "eval_iters": 2})
    job["hooks"] = {"source": "hooks.c", **{name: name for name in NAMES}}
    trainer = Ranks(ranks, job)
    (trainer.folder / "hooks.c").write_text(HOOKS)
    trainer.build()
    return trainer


DIVIDED = r"""#include <accel/accel.h>
#include <accel/hooks.h>
#include <stdlib.h>
#include <string.h>

static void print_state(struct accel_run *run, const struct accel_progress *at, const char *when) {
  int64_t count = 0;
  const char *name = accel_weight_name(run, 0);
  const float *weights = accel_weight_of(run, name, &count);
  struct accel_store *store = accel_store_new();
  struct accel_value *has = accel_make_tensor(store, ACCEL_BOOL, 1, (int64_t[]){1}, (bool[]){weights != NULL});
  double sum = 0;
  for (int64_t i = 0; weights != NULL && i < count; i++) sum += (double)weights[i];
  if (strcmp(accel_process()->distributed_type, "FSDP") != 0) abort();
  accel_print(run, "%s %lld %s %.17g %s", when, (long long)at->step, accel_show(store, accel_gather(store, has)), sum, name);
  accel_store_free(store);
}

void on_step(struct accel_run *run, const struct accel_progress *at) {
  print_state(run, at, "before");
  accel_collect_weights(run);
  print_state(run, at, "after");
}
"""


def lines_of(result):
    lines = [line for line in result.stdout.splitlines() if line.startswith(("loaded", "start ", "float", "saved", "end", "gather"))]
    return lines, sorted(line for line in result.stderr.splitlines() if "hooks:[RANK" in line and "INFO" not in line)


def numbers(ranks):
    return ", ".join(['{"number": 1}'] * (ranks * (ranks - 1) // 2))


def of_step(ranks, step):
    mean = f"float32[2] ({sum(range(ranks)) / ranks * 2:g}, {2 * step})"
    every = ", ".join(f"{rank}, {step}" for rank in range(ranks))
    return f"{mean} float32[{2 * ranks}] ({every}) [{numbers(ranks)}]"


class Hooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainer = build(3, 2)

    def setUp(self):
        shutil.rmtree(self.trainer.folder / "run", ignore_errors=True)

    def test_on_all_ranks_and_on_one(self):
        """Three ranks, ended by the last one after 6 of 9 steps; one rank resumes from what they saved at 4, and from its end, where
        it was stopped, too, three ranks take the other steps."""
        result = self.trainer.launch()
        self.assertEqual(result.returncode, 0, result.stderr)
        lines, warnings = lines_of(result)
        self.assertEqual(lines, ["start 0, calls 0", *(of_step(3, i) for i in (1, 2, 3, 4)), "saved 4", of_step(3, 5),
                                 of_step(3, 6), "saved 6", "end 6"])
        self.assertEqual(warnings, [f"WARNING:hooks:[RANK {i}] {text}" for i, text in
                                    ((0, "once in 9"), (0, "triggered at 3"), (1, "triggered at 3"), (2, "triggered at 3"))])
        self.assertEqual((self.trainer.folder / "first.txt").read_text(), "1\n0\n0\n")
        rows = [json.loads(line) for line in (self.trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["calls"] for row in rows], [1, 2, 3, 4, 5, 6])
        self.assertIn("eval_loss", rows[-1])
        alone = build(1, 6)
        result = alone.launch("--resume", str(self.trainer.folder / "run/checkpoints/checkpoint_0"))
        self.assertEqual(result.returncode, 0, result.stderr)
        lines, warnings = lines_of(result)
        self.assertEqual(lines, ["loaded 3 at 0: [4, 8, 12]", "start 4, calls 4", of_step(1, 5), of_step(1, 6), "saved 6", "end 6"])
        again = self.trainer.launch("--resume", str(alone.folder / "run/checkpoints/checkpoint_0"))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(lines_of(again)[0], ["loaded 1 at 0: [6]", "start 6, calls 6", of_step(3, 7), of_step(3, 8), "saved 8", of_step(3, 9),
                                          "saved 9", "end 9"])

    def wrong(self, kind, expected):
        result = self.trainer.launch(WRONG=kind)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual((result.stdout + result.stderr).count(expected), 1, result.stdout + result.stderr)

    def test_a_rank_with_another_shape(self):
        self.wrong("shape", "gather: accel_reduce: rank 1 has mean times 2 of float32[1], but rank 0 has mean times 2 of float32[2]")

    def test_a_rank_at_another_operation(self):
        self.wrong("operation", "gather: rank 2 is at accel_broadcast while rank 0 is at accel_reduce")

    def test_a_rank_that_waits(self):
        self.wrong("wait", "rank 2: error: rank 2 is at accel_wait_for_everyone while rank 0 is at accel_reduce")

    def test_a_rank_that_does_not_come(self):
        result = self.trainer.launch(WRONG="absence")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count(f"another rank did not come within {TIMEOUT} s"), 1, result.stderr)
        self.assertRegex(result.stderr, f"(accel_reduce|what all ranks agree on): another rank did not come within {TIMEOUT} s")


class Divided(unittest.TestCase):
    """Weights that ranks divide are whole where they are asked for, and nowhere else."""

    def test_weights(self):
        job = job_of(2, 3, 4, parallelism={"zero_stage": 3}, checkpoint={"every": 1})
        job["hooks"] = {"source": "hooks.c", "on_step": "on_step"}
        trainer = Ranks(2, job)
        (trainer.folder / "hooks.c").write_text(DIVIDED)
        trainer.build()
        result = trainer.launch()
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split() for line in result.stdout.splitlines() if line.startswith(("before", "after"))]
        self.assertEqual([line[:5] for line in lines], [[when, str(step), "bool[2]", *has] for step in (1, 2, 3, 4)
                                                        for when, has in (("before", ("(0,", "0)")), ("after", ("(1,", "0)")))])
        for step, line in enumerate(lines[1::2]):
            saved = load_file(trainer.folder / "run" / "checkpoints" / f"checkpoint_{step}" / "model.safetensors")
            self.assertAlmostEqual(float(line[5]), float(saved[line[6]].astype("float64").sum()), places=9)


class StepsAlone(unittest.TestCase):
    """Ranks that step alone leave the mean of their weights, also where a hook ends the run between two means."""

    def test_stop(self):
        stop = "void on_step(struct accel_run *run, const struct accel_progress *at) { if (at->step == 3) accel_stop(run); }\n"
        left = []
        for steps, hooks in ((9, {"hooks": {"source": "hooks.c", "on_step": "on_step"}}), (3, {})):
            trainer = Ranks(2, job_of(2, 3, steps, parallelism={"local_sgd_steps": 4}, **hooks))
            (trainer.folder / "hooks.c").write_text("#include <accel/hooks.h>\n" + stop)
            trainer.build()
            self.assertEqual(len(trainer.run()), 3)
            left.append(trainer.weights())
        for name, value in left[0].items():
            self.assertEqual(value.tobytes(), left[1][name].tobytes(), name)


if __name__ == "__main__":
    unittest.main()
