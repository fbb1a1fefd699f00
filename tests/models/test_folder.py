"""checkpoint.folder_of: the folder that a run leaves opens with transformers' auto classes and PEFT with nothing copied by hand, and its
logits are those that the run's own programs compute."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers
import yaml

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "program"), str(TESTS / "commands")]

from chats_made import CHATML_MARKED, tokenizer_of  # noqa: E402
from harness import FAST, GENERATOR, load_file, save_file  # noqa: E402
from peft import AutoPeftModelForCausalLM  # noqa: E402
from peer import texts  # noqa: E402

TEXT = "A job is a page of keys, and a folder is a model. " * 200
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "intermediate_size": 24,
         "vocab_size": 600, "max_position_embeddings": 32, "initializer_range": 0.2, "dtype": "bfloat16"}
GPT2 = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 600, "n_positions": 32, "initializer_range": 0.2}
BERT = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 600,
        "max_position_embeddings": 32}
STEPS = 3


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "corpus.txt").write_text(TEXT)

    def command(self, *words, status=0):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "CFLAGS": FAST, "OMP_NUM_THREADS": "2"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def save(self, model, name="base"):
        """A published folder: weights, config, tokenizer."""
        model.save_pretrained(self.folder / name)
        tokenizer_of("llama3", TEXT, CHATML_MARKED).save_pretrained(self.folder / name)
        return self.folder / name

    def init(self, *flags, **sets):
        words = [word for key, value in sets.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
        self.command(GENERATOR, "init", "base", "--data", "corpus.txt", "--set", f"training.steps={STEPS}", "--set", "data.batch_size=2",
                     "--set", "tracking.every=1", "--set", "checkpoint.project_dir=run", *words, *flags)
        self.command(GENERATOR, "data", "corpus.txt", "-o", "corpus.txt.tok", "--tokenizer", "base/tokenizer.json")
        return yaml.safe_load((self.folder / "job.yaml").read_text())

    def train(self, *flags):
        self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
        return self.command("./trainer", *flags)

    def logits(self, prompt, *flags):
        """What the text generator of the job computes after a prompt with the weights in the run's folder."""
        if not (self.folder / "generator").exists():
            self.command(GENERATOR, "build", "job.yaml", "--program", "generate", "-o", "generator")
        self.command("./generator", "--prompt", " ".join(map(str, prompt)), "--tokens", 1, "--temperature", 0, "--logits", "logits", *flags)
        return torch.from_numpy(np.fromfile(self.folder / "logits", np.float32))

    def compare(self, theirs, *flags):
        prompt = [int(n) for n in np.random.default_rng(3).integers(0, 500, 9)]
        with torch.no_grad():
            wanted = theirs.eval()(torch.tensor([prompt])).logits[0, -1]
        self.assertLess(((self.logits(prompt, *flags) - wanted).norm() / wanted.norm()).item(), 1e-5)

    def card(self, path):
        """The front matter of a model card and its table."""
        _, front, body = path.read_text().split("---\n", 2)
        rows = dict(line.strip("| ").split(" | ", 1) for line in body.splitlines() if line.startswith("| ") and line != "| | |")
        return yaml.safe_load(front), rows

    def opened(self, kind=transformers.AutoModelForCausalLM):
        theirs, info = kind.from_pretrained(self.folder / "run", output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"], info)
        return theirs

    def test_llama(self):
        """From bfloat16, in shards: config, tokenizer, generation and the card; and a resumed run leaves the same."""
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).to(torch.bfloat16)
        model.generation_config.max_length = 17
        base = self.save(model)
        (base / "LICENSE").write_text("as you like")
        job = self.init(checkpoint__max_shard_size="20KB", checkpoint__every=2)
        self.assertEqual(job["checkpoint"]["folder_of"], "base")
        self.train()
        run = self.folder / "run"
        theirs = self.opened()
        self.assertEqual(theirs.dtype, torch.float32)
        self.compare(theirs)
        config = json.loads((base / "config.json").read_text())
        self.assertEqual(json.loads((run / "config.json").read_text()), {**config, "dtype": "float32"})
        self.assertEqual((run / "LICENSE").read_text(), "as you like")
        self.assertEqual(transformers.GenerationConfig.from_pretrained(run).max_length, 17)
        tokenizer = transformers.AutoTokenizer.from_pretrained(run)
        self.assertEqual(tokenizer("a page of keys").input_ids, transformers.AutoTokenizer.from_pretrained(base)("a page of keys").input_ids)
        said = transformers.pipeline("text-generation", model=str(run), device="cpu")("A job is", max_new_tokens=3, max_length=None)
        self.assertTrue(said[0]["generated_text"].startswith("A job is"))
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        front, rows = self.card(run / "README.md")
        self.assertEqual(front, {"base_model": "base", "library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["accel-gen"]})
        self.assertEqual((rows["steps"], rows["started from"]), (str(STEPS), "base"))
        self.assertAlmostEqual(float(rows["loss of the last step reported"]), lines[-1]["loss"], places=4)
        self.assertIn("corpus.txt.tok", rows["data"])
        before = {path.name: path.read_bytes() for path in run.glob("model*")}
        shutil.rmtree(run / "checkpoints" / "checkpoint_1")
        self.train("--resume", "auto")
        self.assertEqual(before, {path.name: path.read_bytes() for path in run.glob("model*")})

    def test_16_bits(self):
        """checkpoint.dtype: config.json names the type, in which transformers then opens the weights."""
        self.save(transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)))
        self.init(checkpoint__dtype="bf16")
        self.train()
        theirs = self.opened()
        self.assertEqual(theirs.dtype, torch.bfloat16)
        self.compare(theirs.float())

    def test_lora(self):
        """Adapters of GPT-2, whose published names are those of the inner model: they name their base, from any folder."""
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
        base = self.save(model)
        tensors = load_file(base / "model.safetensors")
        save_file({name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}, base / "model.safetensors", {"format": "pt"})
        self.init("--lora", optimizer__lr=0.01)
        self.train()
        adapter = AutoPeftModelForCausalLM.from_pretrained(self.folder / "run" / "adapter")
        self.compare(adapter)
        self.compare(self.opened())
        front, _ = self.card(self.folder / "run" / "adapter" / "README.md")
        self.assertEqual((front["library_name"], front["base_model"], front["tags"]), ("peft", "base", ["accel-gen", "lora"]))
        config = json.loads((self.folder / "run" / "adapter" / "adapter_config.json").read_text())
        self.assertEqual((config["task_type"], config["base_model_name_or_path"]), ("CAUSAL_LM", str(base.resolve())))

    def test_names(self):
        """Names with a prefix in the weights: they are written with it, and the run's own programs read them. A new head has its own."""
        model = transformers.BertForMaskedLM(transformers.BertConfig(**BERT))
        base = self.save(model)
        source = GENERATOR.parents[1] / "examples" / "models" / "bert_classifier.c"
        rows = np.random.default_rng(1).integers(1, 600, (40, 8))
        job = {"model": {"source": str(source), "weights": "base", "fresh": ["classifier.*", "bert.pooler.*"], "ignore": ["cls.*"],
                         "config": {**{key: BERT[key] for key in BERT}, "num_labels": 2}},
               "data": {**texts(self.folder / "rows.npz", rows), "batch_size": 4},
               "training": {"steps": 2}, "checkpoint": {"project_dir": "run", "folder_of": "base"}}
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.train()
        theirs = self.opened(transformers.AutoModelForSequenceClassification).eval()
        self.assertEqual(type(theirs).__name__, "BertForSequenceClassification")
        self.command(GENERATOR, "build", "job.yaml", "--program", "evaluate", "-o", "evaluator")
        said = self.command("./evaluator", "--data", "rows.npz")
        with torch.no_grad():
            loss = theirs(torch.from_numpy(rows), labels=torch.arange(40) % 2).loss.item()
        self.assertIn("loss", said)
        self.assertAlmostEqual(float(said.split("loss")[1].split()[0].strip(",:")), loss, places=4)
        self.assertTrue((base / "config.json").exists())

    def test_own_config(self):
        """Without a config.json anywhere it is made of the model's: with a folder that has a tokenizer alone, and with none. What no
        config.json can say is reported, and in the card."""
        tokenizer = tokenizer_of("llama3", TEXT, CHATML_MARKED)
        tokenizer.save_pretrained(self.folder / "words")
        self.command(GENERATOR, "data", "corpus.txt", "-o", "corpus.txt.tok", "--tokenizer", "words/tokenizer.json")
        self.command(GENERATOR, "init", "--model", "qwen_moe", "--data", "corpus.txt.tok", *[word for key, value in {
            "model.config.vocab_size": 600, "model.config.hidden_size": 16, "model.config.moe_intermediate_size": 8, "training.steps": 1,
            "model.config.num_hidden_layers": 1, "data.batch_size": 2, "data.sequence_length": 16, "checkpoint.project_dir": "run",
            "checkpoint.folder_of": "words"}.items() for word in ("--set", f"{key}={value}")])
        run = self.folder / "run"
        self.train()
        theirs = self.opened()
        self.assertEqual((type(theirs).__name__, theirs.config.max_position_embeddings), ("Qwen3MoeForCausalLM", 16))
        self.compare(theirs)
        self.assertEqual(transformers.AutoTokenizer.from_pretrained(run)("a page").input_ids, tokenizer("a page").input_ids)
        self.assertEqual(self.card(run / "README.md")[0], {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": ["accel-gen"]})
        for flags, reason in ((["--set", "model.config.capacity_factor=1.5"], "'capacity_factor' is 1.5, and no config.json says so"),
                              (["--set", "model.config.qkv_bias=true"], "its values are those of none of the model's classes"),
                              (["--set", "model.lora={targets: [q_proj], merge: false}"], "model.lora.merge is false")):
            shutil.rmtree(run)
            job = (self.folder / "job.yaml").read_text()
            (self.folder / "job.yaml").write_text(job.replace("folder_of: words", ""))
            self.command(GENERATOR, "build", "job.yaml", "-o", "trainer", *flags)
            self.assertIn(f"run gets no config.json that transformers opens: {reason}", self.command("./trainer"))
            self.assertFalse((run / "config.json").exists())
            self.assertIn(f"There is no config.json that transformers opens: {reason}", (run / "README.md").read_text())

    def test_refused(self):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        base = self.save(model)
        job = self.init(optimizer__lr=0.001)
        del job["model"]["weights"]  # from the model's initialization
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.train()
        self.compare(self.opened())
        run = self.folder / "run"
        shutil.rmtree(run)
        run.mkdir()
        (run / "README.md").write_text("mine")
        self.assertIn("README.md: no run has written it; it stays", self.command("./trainer"))
        self.assertEqual((run / "README.md").read_text(), "mine")
        self.assertIn("would be replaced", self.command("./trainer", "--project-dir", "base", status=1))
        config = (base / "config.json").read_text()
        for content, message in (("{", "config.json:1:1"), ("[]", "a config.json is an object"), (None, "config.json: cannot be read")):
            (base / "config.json").unlink() if content is None else (base / "config.json").write_text(content)
            self.assertIn(message, self.command("./trainer", "--project-dir", "other", status=1))
            self.assertFalse((self.folder / "other" / "metrics.jsonl").exists())
        self.assertIn("would open the folder of checkpoint.folder_of as the untrained model", self.command(
            GENERATOR, "plan", "job.yaml", "--set", "model.lora={targets: [c_attn], merge: false}", status=2))
        (base / "config.json").write_text(config.replace('"n_head": 2', '"n_head": 4'))
        self.assertIn("says 4 of 'n_head'", self.command(GENERATOR, "plan", "job.yaml", status=2))


if __name__ == "__main__":
    unittest.main()
