"""A folder of transformers becomes a job, trains three steps, and what the run leaves opens with transformers' auto classes: the logits
before and after are those of transformers. The same job without the folder leaves a folder, too: its config.json is made of the model's
config, and transformers computes with it what the model does. A run tries some of the configurations (rotation.py)."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
import transformers

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "program"), str(TESTS / "commands")]

from chats_made import CHATML_MARKED, tokenizer_of  # noqa: E402
from harness import GENERATOR, QUICK  # noqa: E402
from job_text import load  # noqa: E402
from rotation import in_turn  # noqa: E402
from round_trips import BASES, CASES, save  # noqa: E402
from transformers.utils import logging  # noqa: E402

logging.disable_progress_bar()

VOCABULARY = 600
TEXT = "A job is a page of keys, and a folder is a model. " * 100
# What a config.json of the model's config has besides the keys of the class: those of older files, which it still reads.
OLDER = {"architectures", "position_embedding_type", "net_structure_type", "num_memory_blocks", "gap_size", "down_scale_factor",
         "hidden_activation", "hidden_act", "sliding_window_pattern", "attention_bias", "head_dim", "num_experts", "qkv_bias",
         "shared_expert_intermediate_size", "num_local_experts", "scoring_func", "topk_method", "moe_layer_freq"}


def run_in(test, folder, *words):
    """What a command prints in a folder, where it succeeds."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**QUICK, "OMP_NUM_THREADS": "2"})
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout


class RoundTrip(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "corpus.txt").write_text(TEXT)

    def command(self, *words):
        return run_in(self, self.folder, *words)

    def save(self, kind, config, number):
        """A published folder: of one file in float32, of shards in bfloat16, of a pickle in float16."""
        base = self.folder / "base"
        save(kind, config, number, base)
        tokenizer_of("llama3", TEXT, CHATML_MARKED).save_pretrained(base)

    def opened(self, auto, folder):
        theirs, info = auto.from_pretrained(self.folder / folder, dtype=torch.float32, output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["mismatched_keys"], info)
        return theirs.eval()

    def compare(self, auto, folder):
        """The program's logits and those of transformers with the same folder."""
        theirs = self.opened(auto, folder)
        found = json.loads(self.command(GENERATOR, "model", "check", folder, "--logits", "--json"))["logits"]
        with torch.no_grad():
            wanted = theirs(torch.tensor([found["prompt"]])).logits[0, -1]
        self.assertLess(((torch.tensor(found["values"]) - wanted).norm() / wanted.norm()).item(), 1e-5)
        return theirs

    def job(self, masked):
        mask = ("--set", "data.masking.mask_token=5") if masked else ()
        self.command(GENERATOR, "init", "base", "--data", "corpus.txt", "--set", "training.steps=3", "--set", "data.batch_size=2",
                     "--set", "optimizer.lr=0.001", "--set", "data.sequence_length=16", "--set", "checkpoint.project_dir=run", *mask)
        self.command(GENERATOR, "plan", "job.yaml")
        return load((self.folder / "job.yaml").read_text())

    def train(self):
        self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
        self.command("./trainer")

    def check_folder(self, auto, masked):
        self.command(GENERATOR, "data", "corpus.txt", "-o", "corpus.txt.tok", "--tokenizer", "base/tokenizer.json")
        job = self.job(masked)
        self.compare(auto, "base")
        self.train()
        self.compare(auto, "run")
        ids = [transformers.AutoTokenizer.from_pretrained(self.folder / name)("a page of keys").input_ids for name in ("base", "run")]
        self.assertEqual(*ids)
        return job

    def check_no_folder(self, auto, kind, job):
        """Without the folder: the config of init from the folder that the run leaves is the job's, and the class knows its keys."""
        job["model"] = {key: job["model"][key] for key in ("source", "config")}
        del job["checkpoint"]["folder_of"]
        shutil.rmtree(self.folder / "run")
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.train()
        self.assertIs(type(self.compare(auto, "run")), kind)
        written = json.loads((self.folder / "run" / "config.json").read_text())
        known = set(dir(kind.config_class())) | {"decoder_start_token_id", "bos_token_id"}
        self.assertEqual(set(written) - OLDER - known, set())
        said = self.command(GENERATOR, "init", "run", "--data", "corpus.txt.tok", "--set", "data.masking.mask_token=5", "-o", "-")
        self.assertLessEqual(job["model"]["config"].items(), load(said)["model"]["config"].items())
        self.assertIn("library_name: transformers", (self.folder / "run" / "README.md").read_text())

    def test_families(self):
        cases = [(name, number) for number in range(3) for name in CASES]
        for name, number in in_turn(cases, len(cases) // 2):
            kind, more = getattr(transformers, name), CASES[name][number]
            auto = transformers.AutoModelForMaskedLM if name.endswith("MaskedLM") else transformers.AutoModelForCausalLM
            for made in self.folder.glob("[bjrt]*"):
                shutil.rmtree(made) if made.is_dir() else made.unlink()
            with self.subTest(family=name, **more):
                self.save(kind, {**BASES[name], **more, "vocab_size": VOCABULARY}, number)
                job = self.check_folder(auto, name.endswith("MaskedLM"))
                self.check_no_folder(auto, kind, job)
                print(name, more, "round trip", flush=True)

    def test_other_names_of_roberta(self):
        """XLM-RoBERTa and CamemBERT, each in every other run; the folder that the run leaves is of their own class."""
        names = ["XLMRobertaForMaskedLM", "CamembertForMaskedLM"]
        for number, name in in_turn(list(enumerate(names)), len(names)):
            kind = getattr(transformers, name)
            with self.subTest(family=name):
                self.save(kind, {**BASES["RobertaForMaskedLM"], **CASES["RobertaForMaskedLM"][number], "vocab_size": VOCABULARY}, number)
                self.check_folder(transformers.AutoModelForMaskedLM, True)
                self.assertIs(type(self.opened(transformers.AutoModelForMaskedLM, "run")), kind)


if __name__ == "__main__":
    unittest.main()
