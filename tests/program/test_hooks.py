"""Functions of a job's own: called when they should be, with what they should see; refused when they are none. And the
example runs."""

import json
import shutil
import subprocess
import sys
import unittest

import numpy as np
from harness import GENERATOR, TREE, Trainer
from matrix import mlp

SOURCE = """#include <accel/accel.h>
#include <accel/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

static void note(struct accel_run *run, const struct accel_progress *at, const char *what) {
  double accuracy = NAN;
  int64_t count = 0;
  const float *bias = accel_weight_of(run, "output.bias", &count), *none = accel_weight_of(run, "bias", &count);
  if (strcmp(accel_key_of(run, "training.steps"), "7") != 0 || accel_key_of(run, "training.nothing") != NULL) abort();
  if (strcmp(accel_key_of(run, "tracking.grad_norms"), "global") != 0) abort(); /* a default */
  accel_metric(run, "accuracy", &accuracy);
  accel_print(run, "%s %lld %lld %.9g %.9g %.9g %d %.9g %.9g %.9g %d", what, (long long)at->step, (long long)at->steps,
              at->loss, at->lr, at->grad_norm, at->has_eval, at->has_eval ? at->eval_loss : NAN, accuracy,
              (double)bias[count - 1], none == NULL && accel_is_main_process(run) && accel_is_last_process(run));
}
/* Values may be sent to where the program computes, and nowhere else. */
static void check_device(const char *device) {
  struct accel_store *store = accel_store_new();
  struct accel_value *value = accel_make_integer(store, 1);
  if (device == NULL) device = "cpu";
  if (strcmp(accel_process()->device, device) != 0 || strcmp(accel_process()->distributed_type, "NO") != 0) abort();
  if (accel_send_to_device(store, value, device) != value || accel_send_to_device(store, value, "cpu") != value) abort();
  if (accel_send_to_device(store, value, "xla") != NULL) abort();
  accel_store_free(store);
}
void on_start(struct accel_run *run, const struct accel_progress *at) {
  check_device(getenv("DEVICE"));
  note(run, at, "start");
  if (at->step == atoi(getenv("STOP_AT"))) accel_stop(run);
}
void on_step(struct accel_run *run, const struct accel_progress *at) {
  note(run, at, "step");
  accel_log(run, "last", (double)at->step);
  if (at->step == 2) accel_set_trigger(run);
  if (at->step == 3 && accel_check_trigger(run) && !accel_check_trigger(run)) accel_log(run, "triggered", 1);
  if (at->step == atoi(getenv("STOP_AT"))) accel_stop(run);
}
void on_eval(struct accel_run *run, const struct accel_progress *at) { note(run, at, "eval"); }
void on_save(struct accel_run *run, const struct accel_progress *at) { note(run, at, "save"); }
void on_end(struct accel_run *run, const struct accel_progress *at) { note(run, at, "end"); }
"""
ALL = {f"on_{name}": f"on_{name}" for name in ("start", "step", "eval", "save", "end")}


def prepare(test, source=SOURCE, names=ALL, **training):
    case = mlp("hooks", training={"steps": 7, "eval_interval": 3, "eval_iters": "all", "metrics": ["accuracy"], **training},
               checkpoint={"every": 4}, hooks={"source": "hooks.c", **names})
    trainer = Trainer(case.job)
    test.addCleanup(shutil.rmtree, trainer.folder)
    case.write_data(trainer.folder)
    (trainer.folder / "hooks.c").write_text(source)
    return trainer


class Hooks(unittest.TestCase):
    def calls(self, trainer, stop_at, *flags):
        """What the hooks printed: lists of words."""
        if not flags:
            shutil.rmtree(trainer.folder / "run", ignore_errors=True)
        result = subprocess.run([trainer.folder / "trainer", *flags], cwd=trainer.folder, capture_output=True, text=True,
                                env={"STOP_AT": str(stop_at), "OMP_NUM_THREADS": "2"}, check=True)
        words = [line.split() for line in result.stdout.splitlines()]
        return [line for line in words if line and "on_" + line[0] in ALL and len(line) == 11]

    def metrics(self, trainer):
        lines = (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()
        return {row["step"]: row for row in map(json.loads, lines)}

    def test_calls(self):
        trainer = prepare(self)
        trainer.build()
        calls = self.calls(trainer, -1)
        steps = [f"step {i}" for i in range(1, 8)]
        expected = ["start 0", *steps[:3], "eval 3", steps[3], "save 4", *steps[4:6], "eval 6", steps[6], "eval 7", "save 7",
                    "end 7"]
        self.assertEqual([" ".join(call[:2]) for call in calls], expected)
        rows = self.metrics(trainer)
        for what, at, of, loss, lr, norm, has_eval, eval_loss, accuracy, bias, good in calls[1:]:
            row = rows[int(at)]
            self.assertEqual((of, good, has_eval), ("7", "1", str(int("eval_loss" in row and what != "step"))))
            self.assertEqual([float(x) for x in (loss, lr, norm)], [row["loss"], row["lr"], row["grad_norm"]])
            self.assertEqual(row["last"], int(at))
            if what == "eval":
                self.assertEqual((float(eval_loss), float(accuracy)), (row["eval_loss"], row["eval_accuracy"]))
        self.assertEqual([at for at, row in rows.items() if "triggered" in row], [3])
        self.assertAlmostEqual(float(calls[-1][9]), trainer.weights()["output.bias"][-1], places=7)

    def test_stop(self):
        """The step at hand becomes the last one, evaluated and saved; what came before is as without the stop."""
        trainer = prepare(self)
        trainer.build()
        self.calls(trainer, -1)
        whole = self.metrics(trainer)
        calls = self.calls(trainer, 5)
        self.assertEqual([" ".join(call[:2]) for call in calls[-4:]], ["step 5", "eval 5", "save 5", "end 5"])
        self.assertEqual(max(self.metrics(trainer)), 5)
        for step, row in self.metrics(trainer).items():
            self.assertEqual(row["loss"], whole[step]["loss"])
        self.assertEqual(self.calls(trainer, 1)[-1][:2], ["end", "1"])

    def test_a_stopped_run_resumes(self):
        """A hook ends this run and not those that resume it: as in Transformers, where a new training takes back
        should_training_stop. They take the steps that were left, with the same bits."""
        trainer = prepare(self)
        trainer.build()
        self.calls(trainer, -1)
        whole, weights = self.metrics(trainer), trainer.weights()
        self.calls(trainer, 5)
        self.assertEqual([call[:2] for call in self.calls(trainer, 5, "--resume", "auto")], [["start", "5"], ["end", "5"]])
        self.assertEqual([call[:2] for call in self.calls(trainer, 6, "--resume", "auto")][:2], [["start", "5"], ["step", "6"]])
        self.assertEqual(max(self.metrics(trainer)), 6)
        self.assertEqual(self.calls(trainer, -1, "--resume", "auto")[-1][:2], ["end", "7"])
        self.assertEqual([row["loss"] for row in self.metrics(trainer).values()], [row["loss"] for row in whole.values()])
        for name, value in trainer.weights().items():
            self.assertEqual(value.tobytes(), weights[name].tobytes(), name)

    def test_a_file_name_is_no_flag(self):
        trainer = prepare(self, names={"on_end": "on_end", "source": "-Wl,-rpath.c"})
        (trainer.folder / "-Wl,-rpath.c").write_text(SOURCE)
        subprocess.run([GENERATOR, "build", "job.yaml", "-o", "trainer"], cwd=trainer.folder, check=True)
        self.assertEqual([call[:2] for call in self.calls(trainer, -1)], [["end", "7"]])

    def test_a_hook_changes_no_training(self):
        trainer, plain = prepare(self), prepare(self)
        del plain.job["hooks"]
        plain.write()
        trainer.build()
        plain.build()
        self.calls(trainer, -1)
        plain.run()
        for name, value in plain.weights().items():
            self.assertTrue(np.array_equal(value, trainer.weights()[name]), name)


SAVING = """#include <accel/hooks.h>
static int64_t saved;
void on_pre_load(struct accel_run *run, const struct accel_progress *at) {
  int64_t step = 0, count;
  int64_t size = accel_load_file(run, "notes.bin", &step, sizeof step);
  accel_print(run, "pre_load %lld %lld %lld %s %d", (long long)at->step, (long long)size, (long long)step,
              accel_resumed_from(run), accel_weight_of(run, "output.bias", &count)[0] == 0);
}
void on_start(struct accel_run *run, const struct accel_progress *at) {
  accel_register_for_checkpointing(run, &saved, sizeof saved);
  accel_print(run, "start %lld %lld %d", (long long)at->step, (long long)saved, accel_resumed_from(run) == NULL);
}
void on_pre_save(struct accel_run *run, const struct accel_progress *at) {
  saved = 100 + at->step;
  accel_save_file(run, "notes.bin", &at->step, sizeof at->step);
}
void on_save(struct accel_run *run, const struct accel_progress *at) { accel_print(run, "save %lld", (long long)at->step); }
"""


class Saving(unittest.TestCase):
    """What register_save_state_pre_hook and register_load_state_pre_hook are for: a file of one's own in each checkpoint."""

    def prepare(self, source, names, every):
        trainer = prepare(self, source, {name: name for name in names})
        trainer.job["checkpoint"]["every"] = every
        trainer.write()
        trainer.build()
        return trainer

    def run_it(self, trainer, *arguments, status=0):
        done = subprocess.run([trainer.folder / "trainer", *arguments], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return [line for line in done.stdout.splitlines() if line.split()[0] in ("pre_load", "start", "save")], done.stderr

    def test_files_and_objects(self):
        trainer = self.prepare(SAVING, ("on_pre_load", "on_start", "on_pre_save", "on_save"), {"steps": 4, "minutes": 1000})
        self.assertEqual(self.run_it(trainer)[0], ["start 0 0 1", "save 4", "save 7"])
        for number, step in ((0, 4), (1, 7)):
            folder = trainer.folder / "run" / "checkpoints" / f"checkpoint_{number}"
            self.assertEqual((folder / "notes.bin").read_bytes(), step.to_bytes(8, "little"))
            self.assertIn("notes.bin", json.loads((folder / "manifest.json").read_text())["files"])
        one = "run/checkpoints/checkpoint_0"
        self.assertEqual(self.run_it(trainer, "--resume", one)[0],
                         [f"pre_load 0 8 4 {one} 1", "start 4 104 0", "save 7"])
        (trainer.folder / one / "notes.bin").write_bytes(bytes(8))
        self.assertIn("notes.bin: its bytes have changed", self.run_it(trainer, "--resume", one, status=1)[1])

    def test_by_the_clock(self):
        """on_pre_save and on_save stand around each save by the clock, too."""
        trainer = self.prepare(SAVING, ("on_pre_save", "on_save"), {"minutes": 1e-6})
        calls = self.run_it(trainer)[0]
        self.assertEqual(calls, [f"save {step}" for step in range(1, 8)])
        self.assertEqual((trainer.folder / "run/checkpoints/checkpoint_2/notes.bin").read_bytes(), (3).to_bytes(8, "little"))

    def test_a_name_that_is_taken(self):
        trainer = self.prepare(SAVING.replace("notes.bin", "job.json"), ("on_pre_save",), 4)
        self.assertIn("job.json: user code saves a file of a name that the checkpoint has already",
                      self.run_it(trainer, status=1)[1])


END = SOURCE[: SOURCE.index("void on_end(")].count("\n") + 1  # the line of on_end


class Refusals(unittest.TestCase):
    def refused(self, expected, source=SOURCE, names=ALL, **training):
        trainer = prepare(self, source, names, **training)
        result = subprocess.run([GENERATOR, trainer.path, "-o", trainer.folder / "t.c"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        for text in expected:
            self.assertIn(text, result.stderr)

    def test_missing(self):
        source = SOURCE.replace("void on_save(", "void on_saved(")
        self.refused(["hooks.c defines no function 'on_save'", "write 'void on_save(struct accel_run *run"], source)

    def test_declared_only(self):
        self.refused(["defines no function 'on_x'"], SOURCE + "void on_x(struct accel_run *, const struct accel_progress *);\n",
                     {"on_step": "on_x"})

    def test_type(self):
        source = SOURCE.replace("void on_end(struct accel_run *run, const", "int on_end(struct accel_run *run, const")
        self.refused([f"hooks.c:{END}:5: error: 'on_end' is of type 'int (struct accel_run *, const struct accel_progress *)'",
                      "'hooks.on_end' names it here"], source)

    def test_static(self):
        source = SOURCE.replace("void on_end(", "static void on_end(")
        self.refused([f"hooks.c:{END}:13: error: 'on_end' is static, so the trainer cannot call it"], source)

    def test_names(self):
        for name in ("step", "on_", "on_a b", "on_x;y", "on_step\n"):
            self.refused(["must be a C identifier that begins with on_" if len(name) > 3 else "on_"], names={"on_step": name})

    def test_no_file(self):
        self.refused(["cannot read the hooks"], names={**ALL, "source": "other.c"})

    def test_no_names(self):
        self.refused(["'hooks' names no function"], names={})

    def test_no_evaluation(self):
        self.refused(["eval_interval"], eval_interval=0, metrics=[])


class Example(unittest.TestCase):
    def test_runs(self):
        trainer = prepare(self)
        table = subprocess.run([sys.executable,
                                TREE / "examples" / "jobs" / "table.py"], capture_output=True, check=True).stdout
        (trainer.folder / "table.csv").write_bytes(table)
        program = trainer.folder / "example"
        subprocess.run([GENERATOR, "build", TREE / "examples" / "jobs" / "hooks.yaml", "-o", program], check=True)
        output = subprocess.run([program], cwd=trainer.folder, capture_output=True, text=True, check=True).stdout
        self.assertIn("6 parameters, 300 steps to go", output)
        self.assertIn("four of five are right", output)
        self.assertIn("ended after step", output)
        rows = (trainer.folder / "runs" / "hooks" / "metrics.jsonl").read_text().splitlines()
        self.assertTrue(all(json.loads(row)["output_norm"] > 0 for row in rows))


if __name__ == "__main__":
    unittest.main()
