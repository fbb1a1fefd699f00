"""Token files that say which tokens are trained on: a Llama's losses are those of transformers' with labels of -100 elsewhere, over
ten steps, whatever makes samples, on one rank or several, and after a resume. Some samples have nothing to train on."""

import subprocess
import unittest

import numpy as np
import torch
from ranks import GENERATOR, MODELS, Ranks  # isort: skip
from harness import TRAIN, Order, save_file  # tests/program; isort: skip
from token_files import token_file
from transformers import LlamaConfig, LlamaForCausalLM

SEED, LENGTH, VOCABULARY, STEPS, RATE = 1337, 24, 50, 10, 0.05
CONFIG = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "intermediate_size": 24,
          "vocab_size": VOCABULARY}
TOKENS = {"num_steps": 2, "normalize": "tokens", "sync_with_dataloader": False}


def made(seed):
    rng = np.random.default_rng(seed)
    documents = [rng.integers(VOCABULARY, size=n) for n in rng.integers(2, 60, size=70)]
    marks = [np.zeros(len(document), bool) for document in documents]
    for document, mark in enumerate(marks):
        for _ in range(document % 4):  # a fourth of the documents has none
            first = rng.integers(len(mark))
            mark[first:first + rng.integers(1, 12)] = True
    return documents, marks


class Reference:
    """transformers' Llama, trained by labels; float64."""

    def __init__(self):
        torch.manual_seed(3)
        self.model = LlamaForCausalLM(LlamaConfig(**CONFIG, rms_norm_eps=1e-6, max_position_embeddings=64,
                                                  tie_word_embeddings=False, initializer_range=0.1))
        self.start = {name: value.numpy().copy() for name, value in self.model.state_dict().items()}
        self.model = self.model.double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)

    def step(self, tokens, labels):
        """The loss of a step; labels are the tokens, -100 where one is not trained on."""
        logits = self.model(torch.tensor(tokens)).logits[:, :-1]
        total = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(labels)[:, 1:].flatten(), ignore_index=-100,
                                                  reduction="sum")
        loss = total / max(1, int((labels[:, 1:] != -100).sum()))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class TrainedTokens(unittest.TestCase):
    def setUp(self):
        self.documents, self.marks = made(7)
        self.text = np.concatenate(self.documents).astype(np.int64)
        self.labels = np.where(np.concatenate(self.marks), self.text, -100)
        self.edges = np.cumsum([0, *map(len, self.documents)])

    def trainer(self, ranks=1, batch=2, packing="none", **groups):
        job = {"model": {"source": str(MODELS / "llama.c"), "weights": "start.safetensors", "config": {**CONFIG, "head_dim": 8}},
               "data": {"train": {"path": "chats.tok", "format": "tokens"}, "batch_size": batch, "sequence_length": LENGTH,
                        "packing": packing},
               "optimizer": {"name": "sgd", "lr": RATE, "weight_decay": 0.0}, "accumulation": dict(TOKENS),
               "training": {"steps": STEPS, "seed": SEED}, "devices": {"per_node": ranks}}
        if "eval" not in groups.get("data", {}):
            job["data"]["eval_fraction"] = 0
        for group, keys in groups.items():
            job.setdefault(group, {}).update(keys)
        trainer = Ranks(ranks, job)
        self.reference = Reference()
        save_file(self.reference.start, trainer.folder / "start.safetensors")
        (trainer.folder / "chats.tok").write_bytes(token_file(self.documents, self.marks, VOCABULARY))
        trainer.build()
        return trainer

    def sample(self, order, position, packing):
        """LENGTH + 1 tokens and labels."""
        first = order.start(position)
        if packing == "none":
            return self.text[first:first + LENGTH + 1], self.labels[first:first + LENGTH + 1]
        tokens, labels = np.zeros(LENGTH + 1, np.int64), np.full(LENGTH + 1, -100)
        has = min(len(self.documents[first]), LENGTH + 1)
        tokens[:has] = self.text[self.edges[first]:][:has]
        labels[:has] = self.labels[self.edges[first]:][:has]
        return tokens, labels

    def losses(self, samples, packing):
        """Of each step, of so many samples."""
        count, length = (len(self.text), LENGTH) if packing == "none" else (len(self.documents), None)
        order = Order(SEED, TRAIN, True, 0, count, length, batch=samples // TOKENS["num_steps"])
        losses = []
        for step in range(STEPS):
            cut = [self.sample(order, step * samples + i, packing) for i in range(samples)]
            losses.append(self.reference.step(np.stack([c[0] for c in cut]), np.stack([c[1] for c in cut])))
        return losses

    def compare(self, lines, samples, packing="none"):
        wanted = self.losses(samples, packing)
        self.assertEqual(len(lines), STEPS)
        for line, loss in zip(lines, wanted):
            self.assertLess(abs(line["loss"] - loss), 1e-6 * max(1, loss), [(one["loss"], w) for one, w in zip(lines, wanted)])

    def test_windows(self):
        self.compare(self.trainer().run(), 4)

    def test_padded(self):
        self.compare(self.trainer(packing="pad").run(), 4, "pad")

    def test_single_samples(self):
        """A micro-batch is often without a token to train on, and a step sometimes."""
        self.compare(self.trainer(packing="pad", batch=1).run(), 2, "pad")

    def test_ranks_and_resume(self):
        trainer = self.trainer(ranks=2, packing="pad", checkpoint={"every": 4})
        lines = trainer.run()
        self.compare(lines, 8, "pad")
        resumed = trainer.run("--resume", "run/checkpoints/checkpoint_0")
        self.assertEqual([line["loss"] for line in resumed], [line["loss"] for line in lines])

    def test_divided_sequences(self):
        self.compare(self.trainer(ranks=2, parallelism={"cp": 2}).run(), 4)

    def test_pipeline(self):
        self.compare(self.trainer(ranks=2, parallelism={"pp": 2}).run(), 4)

    def test_evaluation(self):
        """The mean over the tokens to train on of all samples."""
        trainer = self.trainer(data={"eval": {"path": "chats.tok", "format": "tokens"}}, optimizer={"lr": 1e-30},
                               training={"eval_interval": STEPS, "eval_iters": "all"})
        loss = trainer.run()[-1]["eval_loss"]
        count = (len(self.text) - 1) // LENGTH
        cut = [np.s_[i * LENGTH:i * LENGTH + LENGTH + 1] for i in range(count)]
        wanted = self.reference.step(np.stack([self.text[c] for c in cut]), np.stack([self.labels[c] for c in cut]))
        self.assertLess(abs(loss - wanted), 1e-5)

    def test_refused(self):
        """By a loss that is a mean of batches, which would have no value without a token to train on."""
        trainer = self.trainer(packing="pad", accumulation={"normalize": "batches"})
        with self.assertRaises(AssertionError) as caught:
            trainer.run()
        self.assertIn("set accumulation.normalize: tokens in the job", str(caught.exception))

    def test_model_that_looks_targets_up(self):
        """T5's decoder reads its targets, and a table has no row for the number of those that are left out."""
        sizes = {"num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "d_model": 8, "d_kv": 4, "d_ff": 8, "vocab_size": VOCABULARY}
        data = {"train": {"path": "chats.tok", "format": "tokens"}, "batch_size": 2, "sequence_length": LENGTH, "eval_fraction": 0}
        job = {"model": {"source": str(MODELS / "t5.c"), "config": sizes}, "data": data, "accumulation": dict(TOKENS),
               "training": {"steps": 1, "seed": SEED}}
        trainer = Ranks(1, job)
        (trainer.folder / "chats.tok").write_bytes(token_file(self.documents, self.marks, VOCABULARY))
        trainer.build()
        trainer.generate()
        self.assertIn(" 0 broken", trainer.command("audit", "trainer.c"))  # which fails where a claim cannot be decided
        with self.assertRaises(AssertionError) as caught:
            trainer.run()
        self.assertIn("are trained on, and the loss of this job counts all", str(caught.exception))
        data["packing"] = "documents"
        trainer.write()
        refused = subprocess.run([GENERATOR, "job.yaml", "-o", "none.c"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("also looks 'targets' up in a table, which has no row for a target left out", refused.stderr)


if __name__ == "__main__":
    unittest.main()
