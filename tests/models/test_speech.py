"""examples/models/whisper.c against its class of transformers, and a folder of it from init to what opens again."""

import io
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers
from peer import GENERATOR, Images, Order, QUICK, TRAIN, drawn
from transformers import WhisperConfig, WhisperForConditionalGeneration

SAMPLES = 40


def samples(rng, config, length):
    """Spectrograms and labels, of which most end in labels that do not count; some are padding, which is a token, too."""
    labels = rng.integers(0, config.vocab_size, (SAMPLES, length))
    labels[np.arange(length) >= rng.integers(1, length + 1, SAMPLES)[:, None]] = -100
    labels[(labels >= 0) & (rng.random(labels.shape) < 0.1)] = config.pad_token_id
    features = rng.standard_normal((SAMPLES, config.num_mel_bins, 2 * config.max_source_positions))
    return {"input_features": features.astype(np.float32), "labels": labels.astype(np.int32)}


class Whisper(Images):
    def compare(self, length, **more):
        heads = [self.random.randint(1, 3), self.random.randint(1, 3)]
        width = 2 * heads[0] * heads[1] * self.random.randint(2, 4)
        same = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": heads[0], "decoder_attention_heads": heads[1],
                "encoder_ffn_dim": self.random.randint(5, 40), "decoder_ffn_dim": self.random.randint(5, 40), "d_model": width,
                "vocab_size": self.random.randint(30, 90), "num_mel_bins": self.random.randint(1, 9),
                "max_source_positions": self.random.randint(3, 20), "max_target_positions": length + 1,
                "pad_token_id": 7, "decoder_start_token_id": 9, **more}
        config = WhisperConfig(**same, init_std=0.2, bos_token_id=1, eos_token_id=2, begin_suppress_tokens=None)
        theirs = WhisperForConditionalGeneration(config)
        arrays = samples(np.random.default_rng(self.random.randrange(2**32)), config, length)
        file = io.BytesIO()
        np.savez(file, **arrays)
        order = Order(1, TRAIN, True, 0, SAMPLES)
        data = {"train": {"path": "rows.npz", "format": "npz"}, "batch_size": self.BATCH, "eval_fraction": 0, "files": {"rows.npz": file.getvalue()},
                "inputs": {"input_features": {"shape": list(arrays["input_features"].shape[1:])}, "labels": {"shape": [length], "dtype": "int32"}}}

        def batch(n):
            chosen = [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
            return torch.tensor(arrays["input_features"][chosen]), torch.tensor(arrays["labels"][chosen]).long()

        self.check("whisper.c", theirs, same, data, batch, lambda model, x, labels: model(input_features=x, labels=labels).loss)

    @drawn
    def test_whisper(self):
        self.compare(self.random.randint(3, 20), encoder_layers=self.random.randint(1, 3))

    def test_untied(self):
        self.compare(1, tie_word_embeddings=False, decoder_layers=1, encoder_layers=1)

    def test_padding_starts(self):
        """Where the first token is padding, too, its row learns from the head alone."""
        self.first = False
        self.compare(5, decoder_start_token_id=7, max_source_positions=1)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words, status=0):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**QUICK, "OMP_NUM_THREADS": "2"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def save(self, **more):
        config = WhisperConfig(encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=3, encoder_ffn_dim=20,
                               decoder_ffn_dim=12, d_model=24, vocab_size=50, num_mel_bins=4, max_source_positions=6, max_target_positions=8,
                               pad_token_id=3, bos_token_id=1, eos_token_id=3, decoder_start_token_id=5, begin_suppress_tokens=None, init_std=0.2)
        torch.manual_seed(1)
        theirs = WhisperForConditionalGeneration(config)
        theirs.save_pretrained(self.folder / "base", **more)
        np.savez(self.folder / "speech.npz", **samples(np.random.default_rng(1), config, 8))
        return theirs

    def test_from_init_to_opening(self):
        for more in ({}, {"max_shard_size": "10KB"}):
            with self.subTest(**more):
                theirs = self.save(**more)
                self.assertNotIn("UNUSED", self.command(GENERATOR, "model", "check", "base"))
                self.command(GENERATOR, "init", "base", "--data", "speech.npz", "--set", "training.steps=3", "--set", "data.batch_size=2",
                             "--set", "optimizer.lr=0.01", "--set", "checkpoint.project_dir=run")
                self.command(GENERATOR, "plan", "job.yaml")
                self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
                self.command("./trainer")
                opened, info = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(self.folder / "run", output_loading_info=True)
                self.assertEqual((len(info["missing_keys"]), len(info["unexpected_keys"])), (0, 0))
                self.assertEqual(opened.config.to_dict() | {"dtype": None, "_name_or_path": ""},
                                 theirs.config.to_dict() | {"dtype": None, "_name_or_path": ""})
                before, after = theirs.state_dict(), opened.state_dict()
                moved = {name for name in before if not torch.equal(before[name], after[name])}
                self.assertEqual(set(before) - moved, {"model.encoder.embed_positions.weight"})
                for name in ("job.yaml", "run", "base"):
                    shutil.rmtree(self.folder / name) if name != "job.yaml" else os.remove(self.folder / name)

    def test_starts_as_theirs(self):
        """Without weights, the encoder's positions are the waves that transformers writes, in its float32."""
        self.save()
        self.command(GENERATOR, "init", "base", "--data", "speech.npz", "--set", "training.steps=1", "--set", "data.batch_size=2",
                     "--set", "checkpoint.project_dir=run", "--set", "model.fresh=['*']")
        self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
        self.command("./trainer")
        from safetensors.torch import load_file
        name = "model.encoder.embed_positions.weight"
        error = (load_file(self.folder / "run" / "model.safetensors")[name] - load_file(self.folder / "base" / "model.safetensors")[name]).abs().max()
        self.assertLess(error.item(), 1e-5)

    def test_refused(self):
        self.save()
        config = json.loads((self.folder / "base" / "config.json").read_text())
        for key, value in (("activation_function", "relu"), ("apply_spec_augment", True)):
            (self.folder / "base" / "config.json").write_text(json.dumps({**config, key: value}))
            self.assertIn(f"of '{key}'", self.command(GENERATOR, "init", "base", "--data", "speech.npz", status=2))


if __name__ == "__main__":
    unittest.main()
