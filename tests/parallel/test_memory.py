"""What the plan says of a rank's memory is what its process takes, to 1 %: the arena, what ranks of a machine share in addition to it,
and a constant for libraries and MPI, which a program of few layers shows. Ranks that come late leave more to MPI, so the fewest bytes of
some runs are held to the plan."""

import operator
import os
import subprocess
import sys
import unittest

from ranks import MPI, Ranks, job_of
from harness import STEADY  # tests/program; isort: skip
from rotation import rotating, in_turn  # tests/program; isort: skip

MIB = 1 << 20
LAYERS = 24
RUNS = 5  # at most
# The peak that a process inherits from the one that it was before exec must be small: a bare interpreter's.
MEASURE = """
import os, sys
process = os.posix_spawn("./trainer", ["./trainer"], os.environ)
_, status, usage = os.wait4(process, 0)
open("peak." + os.environ["OMPI_COMM_WORLD_RANK"], "w").write(str(usage.ru_maxrss * 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""
NAMES = 2048 * 12  # bytes that a layer's names take in the lists of tensors, of which the plan says nothing: tests/program/test_figures.py
# Schedules x what ranks of a stage shard x with tensors, which they divide too: two of them in a run that has these.
SHARDED = [(schedule, zero_stage, mesh) for mesh in ({}, {"tp": 2}) for zero_stage in (1, 2, 3) for schedule in ("1f1b", "interleaved", "zero_bubble")]
# What a stage has is in many parts of the arena, each of which ends with a page: here none of 2 MiB (PR_SET_THP_DISABLE).
SMALL_PAGES = "import ctypes; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)"


class Memory(unittest.TestCase):
    def trainer(self, layers, **parallelism):
        # With both divisions a rank's part of a layer is about as large, next to what each layer takes whatever its size.
        averaged = {"eval_interval": 1, "eval_iters": 2, "ema": {"decay": 0.9, "evaluate": True}} if parallelism.pop("averages", False) else {}
        coded = {"state_dtype": "8bit"} if parallelism.pop("codes", False) else {}
        ranks, width = (4, 192) if len(parallelism) > 1 else (2, 128)
        config = {"n_layer": layers, "n_head": 2, "n_embd": width, "vocab_size": 256, "block_size": 32}
        trainer = Ranks(ranks, job_of(ranks, 2, 3, config=config, parallelism=parallelism, training=averaged, optimizer=coded))
        trainer.build(CFLAGS=STEADY)
        return trainer

    def peaks(self, trainer, before=""):
        """By rank."""
        result = subprocess.run(["mpirun", "-n", str(trainer.ranks), sys.executable, "-S", "-E", "-c", before + MEASURE], cwd=trainer.folder,
                                capture_output=True, text=True, timeout=300, env={**os.environ, **MPI})
        self.assertEqual(result.returncode, 0, result.stderr)
        return [int((trainer.folder / f"peak.{rank}").read_text()) for rank in range(trainer.ranks)]

    def constants(self, layers, **parallelism):
        trainer = self.trainer(layers, **parallelism)
        plan = trainer.plan()
        least = [min(peaks) for peaks in zip(*(self.peaks(trainer) for _ in range(2)), strict=True)]
        constants = [peak - plan["arena_bytes"]["total"] - plan["shared_bytes"]["touched"] for peak in least]
        print("for the process", *(f"{constant / MIB:.2f} MiB of rank {rank}" for rank, constant in enumerate(constants)))
        return constants

    def test_peak(self):
        self.check(self.constants(1), {}, {"zero_stage": 1}, {"zero_stage": 2})

    def test_peak_of_parts(self):
        """With what MPI keeps from sending layers to rank 0, which saves them."""
        self.check(self.constants(3, zero_stage=3), {"zero_stage": 3})

    def test_peak_of_averages(self):
        """Which ranks exchange to evaluate them, and then the weights again where each has all of these."""
        for zero_stage, layers in in_turn([(1, 1), (3, 3)], 1):
            self.check(self.constants(layers, zero_stage=zero_stage, averages=True), {"zero_stage": zero_stage, "averages": True})

    def test_peak_of_codes(self):
        """Whose parameters ranks cut one by one: between a rank's parts some pages are mapped with them."""
        for zero_stage in in_turn((1, 2), 2):
            self.check(self.constants(1, zero_stage=zero_stage, codes=True), {"zero_stage": zero_stage, "codes": True})

    def test_peak_of_split_tensors(self):
        """Of which ranks have shards."""
        self.check(self.constants(1, tp=2, zero_stage=2), {"tp": 2, "zero_stage": 2})

    def stages(self, stages, layers, batch, micro_batches, width=96, **mesh):
        """The trainer of a pipeline, and the bytes that the plan says of each of its ranks."""
        config = {"n_layer": layers, "n_head": 2, "n_embd": width, "vocab_size": 256, "block_size": 32}
        tensors = mesh.get("tp", 1)
        ranks = stages * tensors * mesh.get("dp_shard", 1)
        trainer = Ranks(ranks, job_of(ranks, batch, 2, config=config, parallelism={"pp": stages, **mesh},
                                      accumulation={"num_steps": micro_batches, "sync_with_dataloader": False}))
        trainer.build(CFLAGS=STEADY)
        planned = [sum(stage[name] for name in ("weights", "gradients", "optimizer", "averages", "activations", "shared"))
                   for stage in trainer.plan()["pipeline"]["stages"]]
        return trainer, [planned[rank // tensors % stages] for rank in range(ranks)]

    def test_peak_of_stages(self):
        """Which keep activations of 4, 3, 2 and 1 micro-batches."""
        self.check_stages(self.stages(4, 4, 8, 5), self.stages(4, 2 * LAYERS, 8, 5), (2 * LAYERS - 4) // 4)

    def test_peak_of_chunks(self):
        """Two stages on each rank, of 3 and 1 micro-batches on the last one."""
        self.check_stages(*(self.stages(2, 4 * each, 8, 4, pp_schedule="interleaved", megatron={"num_layers_per_virtual_pipeline_stage": each})
                            for each in (1, 8)), 14)

    def test_peak_of_sharded_stages(self):
        """Whose ranks along dp_shard have parts of states, gradients or weights."""
        for schedule, zero_stage, mesh in in_turn(SHARDED, len(SHARDED) // 2):
            names = 2 if "tp" in mesh else 1  # of wholes and of parts
            mesh = {"dp_shard": 2, "zero_stage": zero_stage, "pp_schedule": schedule, **mesh}
            with self.subTest(**mesh):
                if schedule == "interleaved":
                    self.check_stages(*(self.stages(2, 4 * each, 2, 4, 128, megatron={"num_layers_per_virtual_pipeline_stage": each}, **mesh)
                                        for each in (1, 8)), names * 14)
                else:
                    self.check_stages(*(self.stages(2, layers, 2, 4, 128, **mesh) for layers in (8, 2 * LAYERS)), names * (LAYERS - 4))

    def check_stages(self, smaller, larger, layers):
        """A pipeline, and one of so many layers more on each rank. Rank 0 saves, so it has all weights in the end."""
        (few, little), (many, much) = smaller, larger
        constants = [min(peaks) - bytes for *peaks, bytes in zip(*(self.peaks(few, SMALL_PAGES) for _ in range(2)), little, strict=True)]
        most = [0.01 * bytes + NAMES * layers for bytes in much]
        taken = [float("inf")] * few.ranks
        for _ in range(RUNS):
            taken = [min(pair) for pair in zip(taken, map(operator.sub, self.peaks(many, SMALL_PAGES), constants), strict=True)]
            if all(abs(taken[rank] - much[rank]) < most[rank] for rank in range(1, few.ranks)):
                break
        for rank in range(1, few.ranks):
            print(f"rank {rank}: {much[rank] / MIB:.2f} MiB planned, {taken[rank] / MIB:.2f} taken, {100 * (taken[rank] / much[rank] - 1):+.2f} %")
            self.assertLess(abs(taken[rank] - much[rank]), most[rank], f"rank {rank}")

    def check(self, constants, *divisions):
        for parallelism in divisions:
            trainer = self.trainer(LAYERS, **parallelism)
            plan = trainer.plan()
            planned, touched = plan["arena_bytes"]["total"], plan["shared_bytes"]["touched"]
            wanted, taken = planned + touched, [float("inf")] * trainer.ranks
            # Rank 0 of ranks that divide has the whole of the weights, to save them at the end.
            ranks = range(1, trainer.ranks) if parallelism else (0, 1)
            # Rank 0 saves, with the names of all tensors in addition. Ranks that divide tensors list them as wholes, too, each of them
            # with its part.
            names = NAMES * (LAYERS - 1)
            most = [0.01 * wanted + (names if rank == 0 or "tp" in parallelism else 0) for rank in range(trainer.ranks)]
            for _ in range(RUNS):
                taken = [min(pair) for pair in zip(taken, map(operator.sub, self.peaks(trainer), constants), strict=True)]
                if all(taken[rank] - wanted < most[rank] for rank in ranks):
                    break
            for rank in ranks:
                print(f"{parallelism}: {planned / MIB:.2f} MiB planned, {touched / MIB:.2f} shared, {taken[rank] / MIB:.2f} taken "
                      f"by rank {rank}, {100 * (taken[rank] / wanted - 1):+.2f} %")
                self.assertLess(abs(taken[rank] - wanted), most[rank], f"{parallelism}, rank {rank}")


load_tests = rotating(3)

if __name__ == "__main__":
    unittest.main()
