"""parallelism.fsdp.state_dict_type: sharded_state_dict: each rank writes its part of a checkpoint, from which any division
continues, and accel-gen checkpoint makes one file of the parts. Parts that do not fit together are refused."""

import json
import os
import shutil
import signal
import subprocess
import unittest

import numpy as np
from ranks import CONFIG, GENERATOR, Ranks, Running, job_of, load_file, relative, save_file, start

LAYERS = {**CONFIG, "n_layer": 3}


def sharded(strategy, **axes):
    return {"fsdp": {"sharding_strategy": strategy, "state_dict_type": "sharded_state_dict"}, "ddp": {"bucket_cap_mb": 0.01}, **axes}


def built(ranks, parallelism, **checkpoint):
    """Six steps of 12 samples, with a checkpoint in the middle; stages take them as two micro-batches."""
    stages = parallelism.get("pp", 1)
    more = {"accumulation": {"num_steps": 2, "sync_with_dataloader": False}} if stages > 1 else {}
    batch = 12 * stages // ranks // (2 if more else 1)
    trainer = Ranks(ranks, job_of(ranks, batch, 6, config=LAYERS, parallelism=parallelism, checkpoint={"every": 3, **checkpoint}, **more))
    trainer.build()
    return trainer


def checkpoint(trainer, number):
    return trainer.folder / "run" / "checkpoints" / f"checkpoint_{number}"


def command(*words):
    return subprocess.run([GENERATOR, "checkpoint", *words], capture_output=True, text=True)


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.saver = built(4, sharded("full_shard", dp_shard=2))
        cls.saver.run()

    def weights_on(self, trainer, *flags):
        shutil.rmtree(trainer.folder / "on", ignore_errors=True)
        result = trainer.launch("--resume", checkpoint(self.saver, 0), "--project-dir", "on", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return load_file(trainer.folder / "on" / "model.safetensors")

    def test_files(self):
        """One for each of the ranks that divide, none for their replicas."""
        names = {path.name for path in checkpoint(self.saver, 0).iterdir()}
        self.assertEqual({name for name in names if ".safetensors" in name},
                         {f"{stem}{ending}" for stem in ("model", "optimizer") for ending in
                          ("-00001-of-00002.safetensors", "-00002-of-00002.safetensors", ".safetensors.parts.json")})
        self.assertEqual(command("verify", checkpoint(self.saver, 0)).returncode, 0)

    def test_merged(self):
        whole = self.saver.folder / "whole.safetensors"
        self.assertEqual(command("merge", checkpoint(self.saver, 1), "-o", whole).returncode, 0)
        merged, weights = load_file(whole), self.saver.weights()
        self.assertEqual(merged.keys(), weights.keys())
        for name, value in weights.items():
            self.assertTrue(np.array_equal(value, merged[name]), name)

    def test_same_ranks(self):
        """To the last bit, states too."""
        on = self.weights_on(self.saver)
        for name, value in self.saver.weights().items():
            self.assertTrue(np.array_equal(value, on[name]), name)
        self.assertEqual(command("diff", checkpoint(self.saver, 1), self.saver.folder / "on" / "checkpoints" / "checkpoint_0").returncode, 0)

    def test_other_ranks(self):
        for ranks, parallelism in ((1, {}), (3, sharded("full_shard")), (2, {"zero_stage": 1}), (4, sharded("shard_grad_op", pp=2))):
            with self.subTest(ranks=ranks, parallelism=parallelism):
                on = self.weights_on(built(ranks, parallelism))
                for name, value in self.saver.weights().items():
                    self.assertLess(relative(on[name], value), 1e-4, name)

    def test_stages(self):
        """Each rank of a stage writes what the stage has, of what several have the first: whole weights, where these are no shards,
        are its first rank's. To the last bit on these ranks."""
        saver = built(4, sharded("shard_grad_op", pp=2))
        saver.run()
        index = json.loads((checkpoint(saver, 0) / "model.safetensors.parts.json").read_text())
        self.assertEqual((index["ranks"], sorted(index["tensors"])), (4, sorted(saver.weights())))
        for trainer in (saver, built(2, sharded("full_shard"))):
            result = trainer.launch("--resume", checkpoint(saver, 0), "--project-dir", "on")
            self.assertEqual(result.returncode, 0, result.stderr)
            on = load_file(trainer.folder / "on" / "model.safetensors")
            for name, value in saver.weights().items():
                self.assertTrue(np.array_equal(on[name], value) if trainer is saver else relative(on[name], value) < 1e-4, name)

    def test_signal(self):
        """To a rank that is not the first."""
        trainer = Ranks(2, job_of(2, 2, 100000, config=LAYERS, parallelism=sharded("full_shard"), tracking={"every": 1}))
        trainer.build()
        running = Running(trainer)
        os.kill(running.ranks[1][1], signal.SIGUSR1)
        result = running.end()
        self.assertEqual(result.returncode, 128 + signal.SIGUSR1, result.stderr)
        self.assertIn("saved", result.stdout)
        self.assertEqual(command("verify", checkpoint(trainer, 0)).returncode, 0)

    def test_damage(self):
        for name, words in (("optimizer-00002-of-00002.safetensors", "its bytes have changed"), ("model.safetensors.parts.json", "its bytes have changed")):
            copy = self.saver.folder / "damaged"
            shutil.copytree(checkpoint(self.saver, 0), copy)
            bytes = bytearray((copy / name).read_bytes())
            bytes[-3] ^= 1
            (copy / name).write_bytes(bytes)
            result = self.saver.launch("--resume", copy, "--project-dir", "on")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"{name}: {words}", result.stderr)
            shutil.rmtree(copy)

    def test_rank_that_cannot_write(self):
        """Rank 1 may write files of 8 KiB at most: the run ends with its problem, and nothing is left of the save."""
        trainer = built(2, sharded("shard_grad_op"))
        limited = trainer.folder / "limited.sh"
        limited.write_text('#!/bin/sh\ntrap "" XFSZ\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || ulimit -f 16\nexec ./trainer\n')
        limited.chmod(0o755)
        result = start(limited, 2, cwd=trainer.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("optimizer-00002-of-00002.safetensors", result.stderr)
        self.assertIn("rank 1 along dp_shard", result.stderr)
        self.assertEqual(list((trainer.folder / "run" / "checkpoints").glob("checkpoint_?")), [])


class Pieces(unittest.TestCase):
    """What is read of parts that are not what a save leaves."""

    def merged(self, index, *files):
        folder = Ranks(1, job_of(1, 1, 1)).folder
        (folder / "model.safetensors.parts.json").write_text(index if isinstance(index, str) else json.dumps(index))
        for i, tensors in enumerate(files):
            save_file({name: np.array(values, np.float32) for name, values in tensors.items()},
                      folder / f"model-{i + 1:05}-of-{len(files):05}.safetensors")
        result = command("merge", folder, "-o", folder / "whole")
        return load_file(folder / "whole") if result.returncode == 0 else result.stderr

    def test_joined(self):
        index = {"ranks": 2, "tensors": {"a": {"dtype": "F32", "shape": [2, 2]}, "b": {"dtype": "F32", "shape": [1]}}}
        whole = self.merged(index, {"a[0:3]": [1, 2, 3]}, {"a[3:4]": [4], "b[0:1]": [5]})
        self.assertEqual((whole["a"].tolist(), whole["b"].tolist()), ([[1, 2], [3, 4]], [5]))

    def test_refused(self):
        index = {"ranks": 2, "tensors": {"a": {"dtype": "F32", "shape": [2, 2]}}}
        ends, gap = "the parts of 'a' end before it does", "does not begin where the parts before it end"
        for files, words in (([{"a[0:2]": [1, 2]}, {"a[3:4]": [4]}], gap), ([{"a[0:2]": [1, 2]}, {"a[1:4]": [2, 3, 4]}], gap),
                             ([{"a[0:2]": [1, 2]}, {"a[2:5]": [3, 4, 5]}], gap), ([{"a[0:2]": [1, 2]}, {"a[2:4]": [3]}], gap),
                             ([{"a[0:2]": [1, 2]}, {"a[2:3]": [3]}], ends), ([{"a[0:2]": [1, 2]}, {"c[0:1]": [3]}], "is not a part"),
                             ([{"a[0:2]": [1, 2]}, {"a": [3, 4]}], "is not a part"), ([{"a[0:4]": [1, 2, 3, 4]}], "No such file")):
            with self.subTest(files=files):
                self.assertIn(words, self.merged(index, *files))
        for bad in ('{"ranks": 1', '{"ranks": 1, "tensors": []}', '{"ranks": 1, "tensors": {"a": {"dtype": "F31", "shape": [1]}}}',
                    '{"ranks": 0, "tensors": {}}', '{"ranks": 1, "tensors": {"a": {"dtype": "F32", "shape": [4294967296, 4294967296]}}}'):
            with self.subTest(index=bad):
                self.assertIn("model.safetensors.parts.json", self.merged(bad, {}))


if __name__ == "__main__":
    unittest.main()
