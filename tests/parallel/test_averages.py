"""training.ema of ranks that divide the optimizer's states, gradients or weights: the average is divided as states are, and evaluated,
saved, resumed from and restored as one process has it. Half of
the tests a run; CASES=all runs all."""

import math
import shutil
import unittest

import numpy as np
from ranks import CONFIG, ComparedWithOne, Ranks, job_of, json_lines, load_file, relative, trained
from rotation import in_turn, rotating  # tests/program; isort: skip

LAYERS = {**CONFIG, "n_layer": 4}
EVALUATED = {"eval_interval": 3, "eval_iters": "all", "ema": {"decay": 0.9, "evaluate": True}}
ACCUMULATING = {"num_steps": 2, "sync_with_dataloader": False}
FREE = {"name": "schedule_free_adamw", "lr": 1e-3, "weight_decay": 0.1, "eps": 1e-5, "clip_grad_norm": 1.0}
ENDS = {"training": {"eval_interval": 3, "eval_iters": "all"}, "optimizer": FREE}
FROZEN = {"freeze": ["wte.weight", "h.1.*", "*.ln_1.*"]}
QWEN = {"num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "head_dim": 8, "vocab_size": 256,
        "moe_intermediate_size": 8, "shared_expert_intermediate_size": 8, "num_experts": 4, "num_experts_per_tok": 2,
        "router_aux_loss_coef": 0}


def stage(number, **axes):
    return {"zero_stage": number, "ddp": {"bucket_cap_mb": 0.01}, **axes}


def left(trainer, name, folder="run"):
    return load_file(trainer.folder / folder / f"{name}.safetensors")


class Averages(ComparedWithOne):
    def compared(self, ranks, samples, steps=8, tolerance=1e-6, files=("ema",), **groups):
        """With one process that takes the samples of a step as one batch. Evaluations are of the averages; the files have all
        parameters, frozen ones too."""
        mesh, micro = groups["parallelism"], groups.get("accumulation", {}).get("num_steps", 1)
        taken = ranks // math.prod(mesh.get(axis, 1) for axis in ("tp", "cp", "sp", "pp"))
        groups = {"config": LAYERS, "training": EVALUATED, **groups}
        several, lines = trained(ranks, job_of(ranks, samples // taken // micro, steps, **groups))
        one, wanted = self.one(samples // micro, steps, **groups)
        self.compare(several, lines, one, wanted, tolerance)
        evaluated = [line["step"] for line in wanted if "eval_loss" in line]
        self.assertTrue(evaluated)
        self.assertEqual([line["step"] for line in lines if "eval_loss" in line], evaluated)
        for file in files:
            ours, whole = left(several, file), left(one, file)
            self.assertEqual(ours.keys(), whole.keys())
            for name, value in whole.items():
                self.assertLess(relative(ours[name], value), 1000 * tolerance, f"{file}: {name}")
        several.generate()
        self.assertRegex(several.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")
        return several, lines

    def test_stages(self):
        for number, ranks, axes, more in ((1, 2, {}, {}), (2, 4, {"dp_shard": 2}, {"accumulation": ACCUMULATING}), (3, 3, {}, {})):
            with self.subTest(stage=number):
                self.compared(ranks, 24, parallelism=stage(number, **axes), **more)

    def test_in_bf16(self):
        """The copies in 16 bits are of the averages for as long as these are evaluated."""
        for number in (1, 3):
            with self.subTest(stage=number):
                self.compared(2, 12, tolerance=1e-3, parallelism=stage(number), precision={"mixed_precision": "bf16"},
                              optimizer={"state_dtype": "bf16"})

    def test_other_axes(self):
        """Frozen parameters, of which no rank has a part, are those of the weights in the file."""
        mixture = {"model": "qwen_moe", "config": QWEN, "data": {"sequence_length": 16}}
        for axes, groups in ((stage(1, tp=2), {"model_keys": FROZEN}), (stage(3, pp=2), {"accumulation": ACCUMULATING}),
                             (stage(2, cp=2), {"training": {**EVALUATED, "ema": {"decay": 0.9, "evaluate": True, "every": 2, "warmup": True, "power": 0.75}}}),
                             (stage(3, ep=2), mixture)):
            with self.subTest(axes):
                self.compared(4, 12, parallelism=axes, **groups)

    def test_schedule_free(self):
        """Whose model is an average: each rank has its part of it, evaluated and left."""
        mixture = {"model": "qwen_moe", "config": QWEN, "data": {"sequence_length": 16}}
        accumulating = {"accumulation": ACCUMULATING}
        for ranks, mesh, more in in_turn([(2, stage(1), {}), (4, stage(2, dp_shard=2), accumulating), (2, stage(3), accumulating), (4, stage(3, sp=2), {}),
                                         (2, {"tp": 2}, {}), (4, {"tp": 2, "cp": 2, "megatron": {"sequence_parallelism": True}}, {}), (4, stage(1, tp=2), {}), (4, stage(3, tp=2), {}), (2, {"pp": 2}, accumulating),
                                         (4, stage(1, pp=2), accumulating), (4, stage(3, pp=2), accumulating), (2, {"ep": 2}, mixture),
                                         (4, stage(2, ep=2), mixture)], 7):
            with self.subTest(mesh):
                self.compared(ranks, 24, 6, parallelism=mesh, files=("model",), **ENDS, **more)

    def test_one_order_of_sums(self):
        """What is between gradients is zero after an evaluation, too: the losses of one process to the last bit."""
        for file, more in in_turn([("ema", {"training": EVALUATED}), ("model", ENDS)], 2):
            runs = [trained(ranks, job_of(ranks, 3, 6, parallelism={"reproducible": "topology", **axes}, config=LAYERS,
                                          accumulation={**ACCUMULATING, "num_steps": 4 // ranks}, **more))
                    for ranks, axes in ((1, {}), (2, stage(1)))]
            for line, want in zip(runs[1][1], runs[0][1], strict=True):
                self.assertEqual([line[name] for name in ("loss", "grad_norm")], [want[name] for name in ("loss", "grad_norm")])
            for name, value in left(runs[0][0], file).items():
                self.assertTrue(np.array_equal(left(runs[1][0], file)[name], value), name)

    def test_best(self):
        """Of averages, and of weights of which each rank has a part."""
        stopping = {"eval_interval": 2, "early_stopping": {"patience": 3, "restore_best": True}}
        averages = {"ema": {"decay": 0.5, "evaluate": True}}
        for number, more, optimizer in ((1, averages, {}), (3, averages, {}), (3, {"ema": {"decay": 0.5}}, {}), (1, {}, FREE), (3, {}, FREE)):
            with self.subTest(stage=number, optimizer=optimizer, **more):
                files = ("best", "model", *more)
                _, lines = self.compared(2, 12, 40, tolerance=1e-5, files=files, parallelism=stage(number),
                                         optimizer={**optimizer, "lr": 1e-1 if optimizer else 3e-2}, training={**stopping, **more})
                self.assertLess(len(lines), 40)


HOOK = """#include <accel/hooks.h>
#include <stdio.h>

void on_step(struct accel_run *run, const struct accel_progress *at) {
  int64_t count;
  accel_collect_weights(run);
  const float *average = accel_average_of(run, "h.0.mlp.c_fc.bias", &count);
  FILE *file = accel_is_main_process(run) ? fopen("average.bin", "wb") : NULL;
  if (file != NULL) fwrite(average, sizeof *average, (size_t)count, file);
  if (file != NULL) fclose(file);
}
"""


class Hooked(unittest.TestCase):
    def test_average(self):
        """That a hook collects is what the run leaves, when it is called after the last step."""
        for number in (1, 3):
            trainer = Ranks(2, job_of(2, 6, 4, config=LAYERS, parallelism=stage(number), training=EVALUATED, hooks={"source": "hooks.c", "on_step": "on_step"}))
            (trainer.folder / "hooks.c").write_text(HOOK)
            trainer.build()
            trainer.run()
            found = np.fromfile(trainer.folder / "average.bin", np.float32)
            self.assertTrue(np.array_equal(found, left(trainer, "ema")["h.0.mlp.c_fc.bias"]), f"stage {number}")


AVERAGED = {"training": EVALUATED, "model_keys": {"freeze": ["wpe.weight", "ln_f.*"]}}  # some are frozen


def built(ranks, parallelism, **more):
    """Six steps of 12 samples, with a checkpoint in the middle."""
    stages = parallelism.get("pp", 1)
    trainer = Ranks(ranks, job_of(ranks, 6 * stages // ranks, 6, config=LAYERS, parallelism=parallelism, checkpoint={"every": 3},
                                  accumulation=ACCUMULATING, **more))
    trainer.build()
    return trainer


def in_parts(strategy, **axes):
    return {"fsdp": {"sharding_strategy": strategy, "state_dict_type": "sharded_state_dict"}, "ddp": {"bucket_cap_mb": 0.01}, **axes}


class Resumed(unittest.TestCase):
    def test_each_from_each(self):
        """A checkpoint, whole or in parts, resumes with any other division; with its own to the last bit."""
        for file, more in in_turn([("ema", AVERAGED), ("model", ENDS)], 2):
            self.check_each(file, more)

    def check_each(self, file, more):
        trainers = [built(ranks, mesh, **more) for ranks, mesh in ((1, {}), (2, stage(1)), (4, in_parts("shard_grad_op", pp=2)))]
        wanted = [line["eval_loss"] for line in trainers[0].run() if "eval_loss" in line]
        self.assertEqual(len(wanted), 2)
        for trainer in trainers[1:]:
            trainer.run()
        for saver in trainers:
            for trainer in trainers:
                with self.subTest(saved=saver.ranks, resumed=trainer.ranks):
                    self.check(saver, trainer, wanted[1], file)

    def check(self, saver, trainer, wanted, file):
        shutil.rmtree(trainer.folder / "on", ignore_errors=True)
        result = trainer.launch("--resume", str(saver.folder / "run" / "checkpoints" / "checkpoint_0"), "--project-dir", "on")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(abs(json_lines(trainer.folder / "on")[-1]["eval_loss"] / wanted - 1), 1e-6)
        on = left(trainer, file, "on")
        for name, value in left(saver, file).items():
            self.assertTrue(np.array_equal(on[name], value) if saver is trainer else relative(on[name], value) < 1e-4, name)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
