"""accel-gen launch --write: what each engine's own description of its files takes, and refusals. That Slurm runs its
script is part of tests/parallel/test_slurm.py."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import botocore.session
import yaml
from botocore.validate import validate_parameters
from kubeflow_trainer_api import models

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
JOB = """model: {source: %s/examples/models/nanogpt.c, config: {n_layer: 1, n_head: 2, n_embd: 16, vocab_size: 256, block_size: 8}}
data: {train: {path: corpus.txt, format: bytes}, batch_size: 2}
optimizer: {name: adamw, lr: 1e-3}
training: {steps: 2}
devices: {nodes: 3, per_node: 2, threads: 4}
checkpoint: {project_dir: run, resume: auto}
""" % TREE
SAGEMAKER = ("--with", "image=registry.example/a:1", "--with", "role=arn:aws:iam::123456789012:role/trains",
             "--with", "instance_type=ml.c5.4xlarge", "--with", "output=s3://bucket/out")


class Write(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "My_Job.yaml").write_text(JOB)

    def launch(self, *words, status=0):
        command = [GENERATOR, "launch", *words[:2], *words[2:], "My_Job.yaml", "trainer", "--steps", "1", "it's"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def test_slurm(self):
        self.assertEqual(self.launch("--write", "slurm", "--with", "time=1-00:00:00", "--set", "training.seed=2").splitlines(), [
            "#!/bin/sh", "#SBATCH --job-name=my-job", "#SBATCH --nodes=3", "#SBATCH --ntasks-per-node=2", "#SBATCH --cpus-per-task=4",
            "#SBATCH --time=1-00:00:00", "#SBATCH --requeue", "#SBATCH --open-mode=append",
            r"exec accel-gen launch --set training.seed=2 My_Job.yaml trainer --steps 1 'it'\''s'"])

    def test_kubernetes(self):
        """The members of MPIJob, kubeflow.org/v2beta1."""
        text = self.launch("--write", "kubernetes", "--with", "image=a/b:1", "--with", "namespace=train", "--set", "devices.kind=cuda")
        job = yaml.safe_load(text)
        self.assertEqual((job["apiVersion"], job["kind"], job["metadata"]), ("kubeflow.org/v2beta1", "MPIJob", {"name": "my-job", "namespace": "train"}))
        spec = job["spec"]
        self.assertEqual((spec["slotsPerWorker"], spec["mpiImplementation"]), (2, "OpenMPI"))
        launcher, worker = (spec["mpiReplicaSpecs"][kind] for kind in ("Launcher", "Worker"))
        self.assertEqual((launcher["replicas"], worker["replicas"]), (1, 3))
        command = launcher["template"]["spec"]["containers"][0]["command"]
        self.assertEqual(command[command.index("-n"):], ["-n", "6", "./trainer", "--steps", "1", "it's"])
        limits = worker["template"]["spec"]["containers"][0]["resources"]["limits"]
        self.assertEqual(limits, {"cpu": 8, "nvidia.com/gpu": 2})

    def test_kubeflow(self):
        """As Kubeflow Trainer's own model of a TrainJob reads it; its command is one that a shell reads."""
        text = self.launch("--write", "kubeflow", "--with", "image=a/b:1")
        made = yaml.safe_load(text)
        job = models.TrainerV1alpha1TrainJob.from_dict(made)
        self.assertEqual(job.spec.trainer.num_nodes, 3)
        self.assertEqual(job.spec.runtime_ref.name, "torch-distributed")
        self.assertEqual({key for key in made["spec"]["trainer"]} - set(job.spec.trainer.to_dict()), set())
        script = job.spec.trainer.command[2].replace("cd /work", ":").replace("exec accel-gen", "printf '%s\\n' $RANK-of-$WORLD_SIZE")
        shown = subprocess.check_output(["sh", "-c", script], text=True, env={"PET_NODE_RANK": "1", "PET_NNODES": "3", "PET_MASTER_ADDR": "a", "PET_MASTER_PORT": "1"})
        self.assertEqual(shown.splitlines(), ["1-of-3", "launch", "--by", "env", "My_Job.yaml", "trainer", "--steps", "1", "it's"])

    def test_sagemaker(self):
        """As Amazon's own model of the request takes it."""
        request = json.loads(self.launch("--write", "sagemaker", *SAGEMAKER, "--with", "data=s3://bucket/in"))
        model = botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateTrainingJob")
        validate_parameters(request, model.input_shape)
        self.assertEqual(request["ResourceConfig"]["InstanceCount"], 3)
        self.assertTrue(request["AlgorithmSpecification"]["ContainerArguments"][0].startswith("cd /opt/ml/code && exec accel-gen launch --by env "))

    def test_refusals(self):
        for words, message in [
                (("slurm", "--with", "image=a"), "--write slurm has no parameter 'image'; it has partition, account, time"),
                (("kubernetes",), "--write kubernetes needs --with image=VALUE"),
                (("kubernetes", "--with", "image=a b"), "--with image: 'a b' is not a value that can be written without quotes"),
                (("sagemaker", *SAGEMAKER, "--with", "time=1h"), "--with time: '1h' is not a number"),
                (("slurm", "--with", "time"), "--with needs NAME=VALUE, not time"),
                (("kubeflow", "--with", "image=a", "--set", "devices.kind=cuda"), "devices.per_node is 2; use --write kubernetes or slurm")]:
            with self.subTest(message):
                self.assertIn(message, self.launch("--write", *words, status=2))


if __name__ == "__main__":
    unittest.main()
