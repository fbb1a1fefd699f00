"""The search of a mesh (parallelism: auto): the model of cost against its formulas written again over every mesh (cost.py), the
exchange of a division against published counts, what jobs are refused; and programs of meshes that it has chosen, on 2 and 4 ranks."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "parallel"))

from cost import Cluster, best_of, name_of, step_bytes, step_seconds  # noqa: E402
from ranks import GENERATOR, ComparedWithOne, job_of, trained  # noqa: E402

CONFIG = {"n_layer": 4, "n_head": 4, "n_embd": 64, "vocab_size": 256, "block_size": 32}
SPEEDS = {"memory": "1GiB", "peak_flops": 5e10, "memory_bandwidth": 5e9, "link": {"latency": 2, "bandwidth": 2000}}
NETWORK = {"network": {"latency": 50, "bandwidth": 1000}}
STEPS = 5
MEMORY = {"1GiB": 2**30, "7MB": 7e6, "3MB": 3e6}


def auto_job(nodes, per_node, samples, devices=None, **groups):
    """The job of a search."""
    job = job_of(per_node, "auto", STEPS, config=groups.pop("config", CONFIG), **groups)
    job["devices"].update({"nodes": nodes, **SPEEDS, **(NETWORK if nodes > 1 else {}), **(devices or {})})
    job["accumulation"] = {"num_steps": "auto", "train_batch_size": samples, "sync_with_dataloader": False}
    job.setdefault("memory", {"activation_checkpointing": "auto"})
    job["parallelism"] = "auto"
    return job


def run(command, job, *flags):
    with tempfile.TemporaryDirectory(prefix="accel-search-") as folder:
        path = pathlib.Path(folder) / "job.yaml"
        path.write_text(json.dumps(job))
        return subprocess.run([GENERATOR, command, path, *flags], capture_output=True, text=True, timeout=300)


def keys_of(mesh, job):
    """The groups of a job that runs so."""
    parallelism = {axis: length for axis, length in mesh["axes"].items() if length > 1}
    if mesh["order"]:
        parallelism["pp_schedule"] = mesh["order"]
    if mesh["zero_stage"]:
        parallelism["zero_stage"] = mesh["zero_stage"]
    if mesh["sequence_parallelism"]:
        parallelism["megatron"] = {"sequence_parallelism": True}
    if mesh["chunks"] > 1:
        each = job["model"]["config"]["n_layer"] // (mesh["axes"]["pp"] * mesh["chunks"])
        parallelism.setdefault("megatron", {})["num_layers_per_virtual_pipeline_stage"] = each
    return {"parallelism": parallelism, "memory": {"activation_checkpointing": "all" if mesh["recomputes"] else "none"},
            "data": {**job["data"], "batch_size": mesh["batch_size"]}, "accumulation": {**job["accumulation"], "num_steps": mesh["num_steps"]}}


def search_of(job):
    return json.loads(run("plan", job, "--json").stdout)["search"]


def bytes_of(mesh, job):
    """What the whole plan takes; of a pipeline, whose plan has memory for all stages, what the stage with the most does."""
    if mesh["axes"]["pp"] == 1:
        return mesh["planned_bytes"]
    plan = json.loads(run("plan", {**job, **keys_of(mesh, job)}, "--json").stdout)
    stages = [stage["weights"] + stage["gradients"] + stage["optimizer"] + stage["activations"] for stage in plan["pipeline"]["stages"]]
    return max(stages) + plan["arena_bytes"]["scratch"] + plan["arena_bytes"]["batch"]


class BruteForce(unittest.TestCase):
    def compared(self, nodes, per_node, samples, memory="1GiB", **groups):
        search = search_of(auto_job(nodes, per_node, samples, {"memory": memory}, **groups))
        cluster = Cluster(nodes * per_node, per_node, MEMORY[memory], samples, search)
        best, total = best_of(cluster)
        if memory == "1GiB":  # what does not fit with a batch is not tried with larger ones
            self.assertEqual(search["meshes"], total)
        self.assertEqual(len(search["best"]), len(best))
        for ours, (seconds, mesh) in zip(search["best"], best):
            self.assertLess(abs(ours["seconds"] / seconds - 1), 1e-9, (ours, mesh))
            self.assertLess(abs(step_seconds(cluster, ours) / ours["seconds"] - 1), 1e-9)
            self.assertLess(abs(step_bytes(cluster, ours) / ours["bytes"] - 1), 1e-9)
            self.assertLessEqual(abs(sum(ours["parts"].values()) / ours["seconds"] - 1), 1e-9)
            speed = search["model_flops"] * samples / (ours["seconds"] * search["peak"] * cluster.ranks)
            self.assertLess(abs(ours["mfu"] / speed - 1), 1e-9)
        return search

    def test_one_machine(self):
        search = self.compared(1, 4, 16)
        self.assertEqual({(d["tp"], d["cp"], d["sp"]) for d in search["divisions"]},
                         {(1, 1, 1), (2, 1, 1), (4, 1, 1), (1, 2, 1), (1, 4, 1), (1, 1, 2), (1, 1, 4), (2, 2, 1), (2, 1, 2)})

    def test_two_machines(self):
        self.compared(2, 2, 24)

    def test_little_memory(self):
        search = self.compared(2, 4, 32, "3MB")
        self.assertTrue(search["best"])
        self.assertLess(search["fitting"], search["meshes"])

    def test_fixed_batch(self):
        """Keys that the job gives stay: a micro-batch, and no recomputation."""
        job = auto_job(1, 4, 16, memory={"activation_checkpointing": "none"})
        job["data"]["batch_size"] = 2
        search = search_of(job)
        self.assertEqual({mesh["batch_size"] for mesh in search["best"]}, {2})
        self.assertEqual({d["recomputes"] for d in search["divisions"]}, {False})


class Division(unittest.TestCase):
    def test_published_exchange(self):
        """Ranks along tp add up 4 times b s h in a layer (Shoeybi et al. 2019); two stages give each other b s h. The work of a
        layer's products is 72 b s h^2 in forward and backward, and 2 b s h V each way of the logits (Narayanan et al. 2021, (3))."""
        search = search_of(auto_job(1, 2, 8))
        width, length, layers = CONFIG["n_embd"], CONFIG["block_size"], CONFIG["n_layer"]
        one, two = (next(d for d in search["divisions"] if d["tp"] == tp and not d["recomputes"] and d["cp"] == d["sp"] == 1) for tp in (1, 2))
        residual = length * width * 4
        self.assertEqual(one["bytes"]["crossing"], residual)
        self.assertEqual([(e["kind"], e["per_layer"]) for e in two["exchanges"] if e["bytes"] == residual], [("all-reduce", 4)])
        self.assertEqual(one["layer"], 12 * width * width + 13 * width)
        self.assertEqual((one["first"], one["all"]), ((256 + length) * width, (256 + length + 2) * width + layers * one["layer"]))
        products = 72 * length * width**2 * layers + 6 * length * width * 256
        attention = 12 * length**2 * width * layers  # of a whole square; a causal one is half of it, which is gone over again
        self.assertGreater(one["matmul_flops"], products + attention / 2)
        self.assertLess(one["matmul_flops"], products + attention)

    def test_memory(self):
        """What the model of cost says is what the whole plan takes."""
        job = auto_job(1, 4, 16)
        planned = [mesh for mesh in search_of(job)["best"] if "planned_bytes" in mesh]
        self.assertGreater(len(planned), 4)
        for mesh in planned:
            self.assertLess(abs(mesh["bytes"] / bytes_of(mesh, job) - 1), 0.1, mesh)


class Refusals(unittest.TestCase):
    def refused(self, job, *words, status=2):
        done = run("plan", job)
        self.assertEqual(done.returncode, status, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def test_unknown_speeds(self):
        job = auto_job(2, 2, 16)
        for key in ("peak_flops", "memory_bandwidth", "link", "network"):
            del job["devices"][key]
        self.refused(job, "'devices.peak_flops' is not given", "'devices.memory_bandwidth'", "'devices.link'", "'devices.network'",
                     "name a product that is known, by devices.hardware")

    def test_nothing_fits(self):
        self.refused(auto_job(1, 2, 8, {"memory": "64KB"}), "no mesh of 2 ranks fits in devices.memory", "takes the least takes some")

    def test_samples(self):
        job = auto_job(1, 2, 7)
        job["data"]["batch_size"] = 2
        self.refused(job, "no number of ranks divides the 7 samples")

    def test_only_predicted(self):
        """Rows that cannot be generated are those that the generator refuses, by keys or as its plan does not fit."""
        job = auto_job(1, 4, 16, {"memory": "7MB"})
        search = search_of(job)
        self.assertTrue(any("refused" in mesh for mesh in search["best"]))
        for mesh in search["best"]:
            if mesh["order"] in ("", "gpipe", "1f1b"):
                done = run("check", {**job, **keys_of(mesh, job)})
                self.assertEqual(done.returncode != 0, "refused" in mesh, (mesh, done.stderr))
        self.assertNotIn("refused", search["chosen"])

    def test_not_training(self):
        """What does not train has no mesh to find."""
        done = run("plan", auto_job(1, 2, 8), "--program", "evaluate", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("search", json.loads(done.stdout))


class Chosen(ComparedWithOne):
    """Meshes that the search chose run, and learn what one process learns."""

    def runs(self, ranks, job, *axes):
        """Runs the job that the search completes; `axes` are those that it gives several ranks."""
        chosen, done = search_of(job)["chosen"], run("check", job, "--resolved")
        self.assertEqual({axis for axis, length in chosen["axes"].items() if length > 1}, set(axes))
        for key in (*[f"{axis}: {chosen['axes'][axis]}" for axis in axes], f"batch_size: {chosen['batch_size']}",
                    f"num_steps: {chosen['num_steps']}"):
            self.assertRegex(done.stdout, rf"\n  {key} *(#.*)?\n")
        several, lines = trained(ranks, job)
        samples = job["accumulation"]["train_batch_size"]
        one, wanted = self.one(samples, STEPS, config=CONFIG)
        self.compare(several, lines, one, wanted)
        plan = several.plan()
        self.assertEqual(plan["arena_bytes"]["total"], chosen["planned_bytes"])

    def test_two_ranks(self):
        self.runs(2, auto_job(1, 2, 8), "dp_shard")

    def test_one_sample(self):
        """Ranks that have one sample together divide the layers' work."""
        self.runs(2, auto_job(1, 2, 1), "tp")

    def test_four_ranks(self):
        self.runs(4, auto_job(2, 2, 8), "dp_shard")


if __name__ == "__main__":
    unittest.main()
