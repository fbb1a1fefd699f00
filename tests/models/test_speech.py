"""examples/models/whisper.c against its class of transformers, the texts that it writes from spectrograms, one size a run, and a folder of
it from init to what opens again."""

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
from rotation import in_turn  # tests/program
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


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words, status=0):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**QUICK, "OMP_NUM_THREADS": "2"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Texts(Commands):
    """Texts from spectrograms: the tokens of transformers' greedy generate, and the logits that they are chosen from."""

    # heads of the encoder and the decoder, d_model, vocabulary, mel bins, positions of the source and of the text, tokens of the prompt
    SIZES = [(2, 3, 24, 50, 4, 6, 20, 1, {}), (1, 1, 10, 301, 3, 1, 12, 4, {"decoder_layers": 1}),
             (3, 2, 18, 77, 7, 11, 60, 37, {"tie_word_embeddings": False, "encoder_layers": 1})]

    def save(self, sizes, **rules):
        heads, writing_heads, width, vocabulary, bins, source, length, _, more = sizes
        config = WhisperConfig(**{"encoder_layers": 2, "decoder_layers": 2, **more}, encoder_attention_heads=heads,
                               decoder_attention_heads=writing_heads, encoder_ffn_dim=20, decoder_ffn_dim=13, d_model=width,
                               vocab_size=vocabulary, num_mel_bins=bins, max_source_positions=source, max_target_positions=length,
                               pad_token_id=3, bos_token_id=1, eos_token_id=3, decoder_start_token_id=5, begin_suppress_tokens=None,
                               init_std=0.4)
        torch.manual_seed(vocabulary)
        theirs = WhisperForConditionalGeneration(config).eval()
        theirs.generation_config.update(**rules)
        theirs.save_pretrained(self.folder / "base")
        rng = np.random.default_rng(vocabulary)
        self.features = rng.standard_normal((1, bins, 2 * source)).astype(np.float32)
        np.save(self.folder / "one.npy", self.features[0])
        np.savez(self.folder / "speech.npz", **samples(rng, config, length))
        return theirs

    def build(self):
        self.command(GENERATOR, "init", "base", "--data", "speech.npz", "--set", "training.steps=1", "--set", "data.batch_size=2",
                     "--set", "checkpoint.project_dir=base")
        self.command(GENERATOR, "job.yaml", "--program", "generate", "-o", "write.c")
        self.command(GENERATOR, "build", "job.yaml", "--program", "generate", "-o", "write")

    def write(self, *flags, status=0):
        return self.command("./write", "--input", "one.npy", "--temperature", 0, *flags, status=status)

    def compare(self, sizes, theirs):
        """The new tokens of ours, and of theirs as far as they do not depend on rounding."""
        prompt = [5, *range(10, 9 + sizes[7])]
        tokens = [int(word) for word in self.write("--prompt", " ".join(map(str, prompt)), "--logits", "logits").split()]
        logits = np.fromfile(self.folder / "logits", np.float32).reshape(-1, sizes[3])
        features, new = torch.tensor(self.features), len(tokens) - len(prompt)
        with torch.no_grad():
            want = theirs(input_features=features, decoder_input_ids=torch.tensor([tokens[:-1]])).logits[0, len(prompt) - 1:].numpy()
            text = theirs.generate(input_features=features, decoder_input_ids=torch.tensor([prompt]), do_sample=False,
                                   max_new_tokens=sizes[6] - len(prompt))[0].tolist()
        self.assertLess(np.linalg.norm(logits - want), 1e-5 * np.linalg.norm(want))
        self.assertEqual(tokens[len(prompt):][:len(text)], text[:new])
        return tokens[len(prompt):], text

    def test_greedy(self):
        for sizes in in_turn(self.SIZES, 3):
            with self.subTest(sizes=sizes):
                theirs = self.save(sizes)
                self.build()
                first, _ = self.compare(sizes, theirs)
                audit = self.command(GENERATOR, "audit", "write.c")
                self.assertIn(", 0 broken", audit)
                theirs.generation_config.update(suppress_tokens=[int(np.bincount(first).argmax())], eos_token_id=[first[-1], 4])
                theirs.generation_config.save_pretrained(self.folder / "base")
                second, _ = self.compare(sizes, theirs)
                theirs.generation_config.update(begin_suppress_tokens=second[:1], suppress_tokens=None, eos_token_id=first[-1])
                theirs.generation_config.save_pretrained(self.folder / "base")
                ours, text = self.compare(sizes, theirs)
                self.assertNotEqual(ours[0], second[0])
                self.assertEqual(len(ours), len(text) + (ours[-1:] == first[-1:] and text[-1:] != first[-1:]))
                for name in ("job.yaml", "base"):
                    shutil.rmtree(self.folder / name) if name == "base" else os.remove(self.folder / name)

    def test_encoder_runs_once(self):
        """The function of a later position neither reads the spectrogram nor calls the encoder."""
        self.save(self.SIZES[0])
        self.build()
        program = (self.folder / "write.c").read_text()
        step = program[program.index("static void decoder_layer_step_forward("):program.index("static void open_primitives")]
        self.assertEqual([word for word in ("input_features", "encode_forward", "encoder_layer_forward", "memory", "keep_") if word in step], [])
        self.assertIn("encode_forward(", program)

    def test_refused(self):
        theirs = self.save(self.SIZES[0])
        self.build()
        self.assertEqual(self.write("--tokens", 1).split()[0], "5")
        for key, value in (("num_beams", 4), ("return_timestamps", True), ("no_repeat_ngram_size", 2), ("do_sample", True),
                           ("suppress_tokens", [50]), ("eos_token_id", "x")):
            written = {**theirs.generation_config.to_diff_dict(), key: value}
            (self.folder / "base" / "generation_config.json").write_text(json.dumps(written))
            self.assertIn(f"generation_config.json: '{key}'", self.write(status=1))
        (self.folder / "base" / "generation_config.json").write_text('{"decoder_start_token_id": 5, "lang_to_id": {"<|en|>": 7}}')
        self.assertIn("--prompt is missing", self.write(status=2))
        (self.folder / "base" / "generation_config.json").write_text('{"suppress_tokens": %s}' % list(range(50)))
        self.assertIn("suppresses every token", self.write("--prompt", "5", status=1))
        self.assertIn("20 tokens of a text", self.write("--prompt", "5 6", "--tokens", 19, status=2))
        np.save(self.folder / "one.npy", np.ascontiguousarray(self.features[0].T))
        self.assertIn("[12][4], and 'input_features' is float32 [4][12]", self.write("--prompt", "5", status=1))
        self.assertIn("--input is missing", self.command("./write", status=2))
        self.assertIn("by one process", self.command(GENERATOR, "job.yaml", "--program", "generate", "--set", "devices.kind=cuda", "-o", "x.c", status=2))
        self.assertIn("what reads that and what writes", self.command(GENERATOR, "export", "base", "--format", "onnx", "-o", "x.onnx", status=2))
        self.assertFalse((self.folder / "x.onnx").exists())


class Folder(Commands):
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
