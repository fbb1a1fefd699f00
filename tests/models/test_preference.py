"""Preference pairs from JSON Lines to transformers and back: the rows of accel-gen data against transformers' tokenizer and chat template, and
examples/models/llama_dpo.c against a program of PyTorch with transformers' Llama, for each loss: loss, gradients, AdamW, metrics, and the
folder of the policy, which AutoModelForCausalLM opens."""

import json
import os
import random
import shutil
import subprocess
import sys
import unittest

import numpy as np
import torch
from peer import GENERATOR, MODELS, TRAIN, Order, Trainer
from safetensors.torch import load_file
from torch.nn.functional import logsigmoid
from transformers import (AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, LlamaConfig, LlamaForCausalLM,
                          LlamaForSequenceClassification)

sys.path.insert(0, str(MODELS.parents[1] / "examples" / "jobs"))

import chats  # noqa: E402

LENGTH, BATCH, PAIRS = 28, 4, 24
SAME = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "hidden_size": 16, "intermediate_size": 24,
        "vocab_size": 260, "rms_norm_eps": 1e-6}
NAMES = ("rejected", "chosen")


def pair(rng):
    """Of texts or of messages, with a prompt or whole."""
    words = lambda n: " ".join(rng.choice(["sum", "two", "é", "20", "it is", "no"]) for _ in range(rng.randint(1, n)))
    if rng.random() < 0.4:
        prompt = words(3) + " ?"
        record = {"prompt": prompt, "chosen": " a" + words(3), "rejected": " b" + words(3)}
        return record if rng.random() < 0.5 else {name: prompt + record[name] for name in NAMES}
    prompt = [{"role": "user", "content": words(3)}]
    record = {"prompt": prompt, **{name: [{"role": "assistant", "content": name[0] + words(3)}] for name in NAMES}}
    return record if rng.random() < 0.5 else {name: prompt + record[name] for name in NAMES}


class Preference(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.start = LlamaForCausalLM(LlamaConfig(**SAME, initializer_range=0.3, max_position_embeddings=64)).eval()
        self.records = [pair(random.Random(i)) for i in range(PAIRS)]

    def trainer(self, config, metrics=(), model=None, **job):
        inputs = {"input_ids": {"shape": [2, LENGTH], "dtype": "int32"}, "completion_mask": {"shape": [2, LENGTH]},
                  "labels": {"dtype": "int32", "below": 2}}
        rules = [{"from": "*", "to": "policy.*"}, {"from": "*", "to": "reference.*", "path": "base"}]
        trainer = Trainer({
            "model": {"source": str(MODELS / "llama_dpo.c"), "weights": "base", "weights_map": rules, "config": {**SAME, **config},
                      **(model or {"freeze": ["reference.*"]})},
            "data": {"train": {"path": "pairs.npz", "format": "npz"}, "eval": {"path": "pairs.npz", "format": "npz"}, "batch_size": BATCH,
                     "inputs": inputs}, "checkpoint": {"folder_of": "base"},
            "training": {"steps": 1, "seed": 1, **({"eval_interval": 1, "eval_iters": "all", "metrics": list(metrics)} if metrics else {})}, **job})
        self.addCleanup(shutil.rmtree, trainer.folder)
        base = self.base = trainer.folder / "base"
        self.start.save_pretrained(base)
        (base / "tokenizer.json").write_text(json.dumps(chats.tokenizer()))
        (base / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "pad_token": "<|end|>", "padding_side": "left",
                                                                "tokenizer_class": "PreTrainedTokenizerFast"}))
        (base / "chat_template.jinja").write_text(chats.TEMPLATE)
        return trainer

    def data(self, trainer, records, *words, status=0):
        (trainer.folder / "pairs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        done = subprocess.run([GENERATOR, "data", "pairs.jsonl", "-o", "pairs.npz", "--chat", "base", "--task", "preference", "--max-length",
                               str(LENGTH), *words], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return dict(np.load(trainer.folder / "pairs.npz")) if status == 0 else done.stderr

    def tokens(self, tokenizer, record, name):
        """Of a prompt and of both together, as TRL has them: messages by the template, texts as they are and with the token that ends them."""
        prompt, whole = record.get("prompt"), record[name]
        if prompt is None:
            if isinstance(whole, list):
                prompt = [turn for turn in whole if turn["role"] == "user"]
            else:
                prompt = os.path.commonprefix([record[one] for one in NAMES]).rstrip(" ")
            whole = whole[len(prompt):]
        if isinstance(whole, str):
            ids = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            ids = lambda turns: tokenizer.apply_chat_template(turns, add_generation_prompt=turns is prompt, return_dict=False)
        return len(ids(prompt)), [*ids(prompt + whole), tokenizer.eos_token_id]

    def test_rows(self):
        trainer = self.trainer({})
        rows, tokenizer = self.data(trainer, self.records, "--end", "<|end|>"), AutoTokenizer.from_pretrained(self.base)
        self.assertEqual(rows["input_ids"].shape, (PAIRS, 2, LENGTH))
        np.testing.assert_array_equal(rows["labels"], np.ones(PAIRS, "int32"))
        shortened = 0
        for i, record in enumerate(self.records):
            for side, name in enumerate(NAMES):
                prompted, ids = self.tokens(tokenizer, record, name)
                shortened += len(ids) > LENGTH
                ids = ids[:LENGTH]
                padded = ids + [tokenizer.pad_token_id] * (LENGTH - len(ids))
                at = np.arange(LENGTH)
                self.assertEqual(rows["input_ids"][i, side].tolist(), padded, record)
                np.testing.assert_array_equal(rows["attention_mask"][i, side], at < len(ids))
                np.testing.assert_array_equal(rows["completion_mask"][i, side], (at >= prompted) & (at < len(ids)), str(record))
        self.assertGreater(shortened, 0)

    def test_refusals(self):
        trainer = self.trainer({})
        good = {"prompt": "a", "chosen": "b", "rejected": "c"}
        for change, message in [
            ({"chosen": None}, "pairs.jsonl:2: 'prompt', 'chosen' and 'rejected' are neither texts nor lists of messages"),
            ({"chosen": []}, "are neither texts nor lists"),
            ({"rejected": ""}, "pairs.jsonl:2: 'rejected' has no token"),
            ({"prompt": "a" * LENGTH}, "pairs.jsonl:2: 'rejected' has no token within the first ones, which the prompt takes"),
            ({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"content": "b"}], "rejected": [{"role": "assistant", "content": "c"}]},
             "has no 'role'"),
        ]:
            self.assertIn(message, self.data(trainer, [good, {**good, **change}], status=1))
            self.assertEqual(len(self.data(trainer, [good, {**good, **change}, good], "--on-bad-record", "skip")["labels"]), 2)
        self.assertIn("the record has no 'rejected'", self.data(trainer, [{"prompt": "a", "chosen": "b"}], status=1))
        self.assertIn("without --label", self.data(trainer, [good], "--label", "x", status=2))
        for same in ({"chosen": "b", "rejected": "b"}, {"prompt": "a", "chosen": "b", "rejected": "b"}):
            self.assertIn("pairs.jsonl:1: 'chosen' and 'rejected' are the same", self.data(trainer, [same], status=1))

    def test_texts_without_a_prompt(self):
        """What both begin with is the prompt, of texts where one begins with the other all but its last character; no NUL ends a text."""
        trainer, encode = self.trainer({}), lambda text: AutoTokenizer.from_pretrained(self.base)(text, add_special_tokens=False)["input_ids"]
        for record, prompt in [({"chosen": "Q? 5", "rejected": "Q? 5 and more"}, "Q? "), ({"prompt": None, "chosen": "Q? 5", "rejected": "Q? 6"}, "Q?"),
                               ({"chosen": "ab\0xyz", "rejected": "ac"}, "a"), ({"chosen": "é", "rejected": "éa"}, "")]:
            rows = self.data(trainer, [record])
            for side, name in enumerate(NAMES):
                marked = rows["completion_mask"][0, side].astype(bool)
                whole = rows["input_ids"][0, side][rows["attention_mask"][0, side].astype(bool)]
                self.assertEqual(whole.tolist(), encode(record[name]), record)
                completes = int(marked.sum())
                self.assertEqual(encode(prompt + record[name][len(prompt):])[-completes:], rows["input_ids"][0, side][marked].tolist(), record)

    # ---- The oracle ----

    def rewards(self, policy, rows, chosen, config):
        """[pairs][2]: beta times the log-probability of each completion, less the reference's; of ipo, of the mean over its tokens."""
        ids, attends, counts = (torch.tensor(rows[name][chosen].astype("int64")).flatten(0, 1) for name in (
            "input_ids", "attention_mask", "completion_mask"))

        def log_probability(model):
            logits = model(input_ids=ids, attention_mask=attends).logits[:, :-1].log_softmax(-1)
            sums = (logits.gather(2, ids[:, 1:, None])[:, :, 0] * counts[:, 1:]).sum(1)
            return sums / counts[:, 1:].sum(1) if config.get("loss") == "IPO" else sums

        with torch.no_grad():
            reference = log_probability(self.start)
        return config.get("beta", 0.1) * (log_probability(policy) - reference).reshape(-1, 2)

    def loss(self, rewards, config):
        margin, beta, smoothing = rewards[:, 1] - rewards[:, 0], config.get("beta", 0.1), config.get("label_smoothing", 0)
        if config.get("loss") == "HINGE":
            return torch.relu(1 - margin).mean()
        if config.get("loss") == "IPO":
            return ((margin / beta - 1 / (2 * beta)) ** 2).mean()
        return -((1 - smoothing) * logsigmoid(margin) + smoothing * logsigmoid(-margin)).mean()

    def policy(self):
        policy = LlamaForCausalLM(self.start.config)
        policy.load_state_dict(self.start.state_dict())
        return policy

    def test_losses(self):
        """Steps of plain descent: from the first, where both are equal, to what a gradient makes of it; and of AdamW."""
        for config, optimizer, steps in [({}, {"name": "sgd", "lr": 0.5}, 2), ({}, {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1}, 12),
                                         ({"beta": 0.5, "label_smoothing": 0.2}, {"name": "sgd", "lr": 0.2}, 3),
                                         ({"loss": "HINGE", "beta": 0.3}, {"name": "sgd", "lr": 0.2}, 3),
                                         ({"loss": "IPO", "beta": 0.5}, {"name": "sgd", "lr": 0.02}, 3)]:
            with self.subTest(config=config, optimizer=optimizer):
                self.trained(config, {"weight_decay": 0, **optimizer}, steps)

    def trained(self, config, optimizer, steps):
        trainer = self.trainer(config, ["accuracy", "margin"], optimizer=optimizer)
        trainer.job["training"].update(steps=steps, eval_interval=steps)
        trainer.write()
        rows = self.data(trainer, self.records, "--end", "<|end|>")
        trainer.build()
        metrics = trainer.run()
        policy, order = self.policy(), Order(1, TRAIN, True, 0, PAIRS)
        kind = torch.optim.SGD if optimizer["name"] == "sgd" else torch.optim.AdamW
        peer = kind(policy.parameters(), lr=optimizer["lr"], weight_decay=optimizer["weight_decay"])
        for step in range(steps):
            chosen = [order.start(step * BATCH + i) for i in range(BATCH)]
            loss = self.loss(self.rewards(policy, rows, chosen, config), config)
            peer.zero_grad()
            loss.backward()
            self.assertLess(abs(metrics[step]["loss"] / loss.item() - 1), 1e-5, f"step {step}")
            norm = sum(p.grad.norm() ** 2 for p in policy.parameters()).item() ** 0.5
            self.assertLess(abs(metrics[step]["grad_norm"] / norm - 1), 1e-4, f"step {step}")
            peer.step()
        saved = AutoModelForCausalLM.from_pretrained(trainer.folder / "run", output_loading_info=True)
        self.assertFalse(saved[1]["missing_keys"] or saved[1]["unexpected_keys"])
        ours = saved[0].state_dict()
        for name, start in self.start.state_dict().items():
            moved, wanted = ours[name] - start, policy.state_dict()[name] - start
            self.assertLess((moved - wanted).norm().item(), 2e-3 * wanted.norm().item() + 1e-6, name)
        with torch.no_grad():
            rewards = self.rewards(saved[0].eval(), rows, list(range(PAIRS)), config)
        margin = rewards[:, 1] - rewards[:, 0]
        last = metrics[-1]
        self.assertLess(abs(last["eval_margin"] - margin.mean().item()), 1e-5)
        self.assertLess(abs(last["eval_accuracy"] - (margin > 0).float().mean().item()), 1e-6)
        self.assertLess(abs(last["eval_loss"] - self.loss(rewards, config).item()), 1e-5 * max(1, last["eval_loss"]))

    def test_adapters(self):
        """Adapters of the policy alone: the reference is the model without them, and the folder has what they make of it."""
        trainer = self.trainer({}, ["accuracy", "margin"], {"lora": {"targets": ["policy.*.q_proj", "policy.*.v_proj"], "rank": 2, "alpha": 4}},
                               optimizer={"name": "adamw", "lr": 1e-2})
        trainer.job["training"].update(steps=4, eval_interval=4)
        trainer.write()
        rows = self.data(trainer, self.records, "--end", "<|end|>")
        trainer.build()
        last = trainer.run()[-1]
        saved = AutoModelForCausalLM.from_pretrained(trainer.folder / "run").eval()
        with torch.no_grad():
            rewards = self.rewards(saved, rows, list(range(PAIRS)), {})
        self.assertLess(abs(last["eval_margin"] - (rewards[:, 1] - rewards[:, 0]).mean().item()), 1e-5)
        self.assertGreater(last["eval_margin"], 0.01)
        subprocess.run([GENERATOR, "build", trainer.path, "-o", trainer.folder / "evaluate", "--program", "evaluate"], check=True, cwd=trainer.folder)
        said = json.loads(subprocess.check_output([trainer.folder / "evaluate", "--format", "json"], cwd=trainer.folder))  # the reference is in base
        for name in ("loss", "accuracy", "margin"):
            self.assertLess(abs(said[name] - last[f"eval_{name}"]), 1e-5, name)
        for name, tensor in self.start.state_dict().items():
            same = torch.equal(saved.state_dict()[name], tensor)
            self.assertEqual(same, not name.endswith(("q_proj.weight", "v_proj.weight")), name)
        self.assertTrue(all(name.startswith("base_model.model.model.layers.")
                            for name in load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")))

    def test_rewards(self):
        """A model of rewards: llama_reward.c and LlamaForSequenceClassification of one label, which opens what the run leaves."""
        base = LlamaForSequenceClassification(LlamaConfig(**SAME, initializer_range=0.3, num_labels=1, pad_token_id=259)).eval()
        self.start = base
        trainer = self.trainer({}, ["accuracy", "margin"], {"source": str(MODELS / "llama_reward.c")}, optimizer={
            "name": "adamw", "lr": 1e-3, "weight_decay": 0.1})
        del trainer.job["model"]["weights_map"], trainer.job["data"]["inputs"]["completion_mask"]
        trainer.job["data"]["inputs"]["attention_mask"] = {"shape": [2, LENGTH]}
        trainer.job["training"].update(steps=8, eval_interval=8)
        trainer.write()
        config = json.loads((self.base / "config.json").read_text())  # of a language model, whose class the run's folder has not
        (self.base / "config.json").write_text(json.dumps({**config, "architectures": ["LlamaForCausalLM"]}))
        rows = self.data(trainer, self.records, "--end", "<|end|>", "--pad", "<|system|>")  # which no text has
        trainer.build()
        metrics, order = trainer.run(), Order(1, TRAIN, True, 0, PAIRS)
        peer = torch.optim.AdamW(base.parameters(), lr=1e-3, weight_decay=0.1)

        def margins(model, chosen):
            ids, attends = (torch.tensor(rows[name][chosen].astype("int64")).flatten(0, 1) for name in ("input_ids", "attention_mask"))
            rewards = model(input_ids=ids, attention_mask=attends).logits.reshape(-1, 2)
            return rewards[:, 1] - rewards[:, 0]

        for step in range(8):
            loss = -logsigmoid(margins(base, [order.start(step * BATCH + i) for i in range(BATCH)])).mean()
            peer.zero_grad()
            loss.backward()
            self.assertLess(abs(metrics[step]["loss"] / loss.item() - 1), 1e-5, f"step {step}")
            norm = sum(p.grad.norm() ** 2 for p in base.parameters()).item() ** 0.5
            self.assertLess(abs(metrics[step]["grad_norm"] / norm - 1), 1e-4, f"step {step}")
            peer.step()
        self.assertEqual(json.loads((trainer.folder / "run" / "config.json").read_text())["architectures"], ["LlamaForSequenceClassification"])
        saved, info = AutoModelForSequenceClassification.from_pretrained(trainer.folder / "run", output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["unexpected_keys"])
        with torch.no_grad():
            margin = margins(saved.eval(), list(range(PAIRS)))
        self.assertLess(abs(metrics[-1]["eval_margin"] - margin.mean().item()), 1e-5)
        self.assertLess(abs(metrics[-1]["eval_accuracy"] - (margin > 0).float().mean().item()), 1e-6)


if __name__ == "__main__":
    unittest.main()
