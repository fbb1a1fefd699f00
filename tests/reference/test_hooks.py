"""Hooks at the moments that Accelerate's GradientState and loops of PyTorch know: an epoch's end, its remainder, a batch
that user code changes, a save that it asks for."""

import unittest

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from rows import Mlp, Rows

SOURCE = """#include <accel/hooks.h>

static void note(struct accel_run *run, const char *what, const struct accel_progress *at) {
  accel_print(run, "%s %lld %lld %d %lld", what, (long long)at->step, (long long)at->epoch, at->end_of_dataloader,
              (long long)at->remainder);
}
void on_step_begin(struct accel_run *run, const struct accel_progress *at) { note(run, "begin", at); }
void on_step(struct accel_run *run, const struct accel_progress *at) {
  note(run, "step", at);
  if (at->step == 4) accel_save(run);
}
void on_epoch(struct accel_run *run, const struct accel_progress *at) { note(run, "epoch", at); }
void on_batch(struct accel_run *run, struct accel_batch *batch) {
  (void)run;
  for (int64_t i = 0; i < batch->count * batch->width; i++) batch->features[i] *= 2;
  for (int64_t i = 0; i < batch->count; i++)
    if (batch->classes[i] >= 0) batch->classes[i] = 2 - batch->classes[i];
}
"""
NAMES = ("on_step_begin", "on_step", "on_epoch", "on_batch")


class Hooks(unittest.TestCase):
    def rows(self, count, steps, **data):
        rows = Rows(count, 5, steps=steps, data={"shuffle": False, **data}, optimizer={"name": "sgd", "lr": 0.1, "weight_decay": 0},
                    hooks={"source": "hooks.c", **{name: name for name in NAMES}}, checkpoint={"automatic_checkpoint_naming": False})
        (rows.trainer.folder / "hooks.c").write_text(SOURCE)
        return rows

    def test_moments(self):
        """Each step and epoch, with what GradientState says of the loader."""
        rows = self.rows(12, 7, drop_last=False)
        rows.run()
        accelerator, wanted, step = Accelerator(cpu=True), [], 0
        loader = accelerator.prepare(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(12)), 5))
        for epoch in range(3):
            for _ in loader:
                state = accelerator.gradient_state
                about = f"{epoch} {int(state.end_of_dataloader)} {state.remainder}"
                wanted += [f"begin {step} {about}", f"step {step + 1} {about}"]
                step += 1
                wanted += [f"epoch {step} {about}"] if state.end_of_dataloader else []
        found = [line for line in rows.trainer.output.splitlines() if line.split() and line.split()[0] in ("begin", "step", "epoch") and line[-1].isdigit()]
        found = [line for line in found if len(line.split()) == 5]
        self.assertEqual(found, [line for line in wanted if int(line.split()[1]) < 7 or line.startswith("step 7 ")])
        self.assertEqual([path.name for path in (rows.trainer.folder / "run").glob("step_*")], ["step_4"])
        weights = rows.trainer.weights()
        rows.trainer.run("--resume", "run/step_4")
        for name, value in rows.trainer.weights().items():
            self.assertEqual(value.tobytes(), weights[name].tobytes(), name)

    def test_batches(self):
        """Twice the features, and other labels."""
        rows = self.rows(30, 6)
        rows.run()
        model = Mlp(rows.weights)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            x, y = rows.micro_batch(step)
            optimizer.zero_grad()
            F.cross_entropy(model(2 * x), 2 - y).backward()
            optimizer.step()
        self.assertLess(rows.distance(model), 1e-6)


if __name__ == "__main__":
    unittest.main()
