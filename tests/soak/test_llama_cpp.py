"""Files of GGUF against llama.cpp itself: its converter writes the same tensors and metadata from the same folder, and its program
generates the text that transformers generates. LLAMA_CPP names its source, built in its folder build (llama-simple)."""

# long

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "program"), str(TESTS / "commands")]

from exported import FAMILIES, save  # noqa: E402
from harness import GENERATOR  # noqa: E402

SOURCE = os.environ.get("LLAMA_CPP")
BINARY = os.environ.get("LLAMA_CPP_SIMPLE", f"{SOURCE}/build/bin/llama-simple")
PROMPT, TOKENS = "A job is a page", 24
DIVISIONS = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2"}
# The converter knows a published tokenizer by a digest of what it makes of a text, which one trained here has not.
CONVERT = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
division = sys.argv[2]
from conversion.base import TextModel
TextModel.get_vocab_base_pre = lambda self, tokenizer: division
del sys.argv[1:3]
import convert_hf_to_gguf
convert_hf_to_gguf.main()
"""
# What one of them writes and the other does not: what follows from the rest, and what the folder's name says.
ASIDE = {"general.alignment", "general.name", "general.size_label", "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token",
         "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "attention.key_length", "attention.value_length",
         "rope.dimension_count", "vocab_size", "rope.freq_base"}


def metadata(reader):
    return {field.name: field.contents() for field in reader.fields.values() if not field.name.startswith("GGUF.")}


@unittest.skipUnless(SOURCE, "LLAMA_CPP does not name the source of llama.cpp")
@unittest.skipUnless(importlib.util.find_spec("sentencepiece"), "llama.cpp's converter needs the Python package sentencepiece")
class LlamaCpp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_in(self, *words):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:].decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    def export(self, dtype):
        self.run_in(GENERATOR, "export", "base", "--format", "gguf", "--dtype", dtype, "-o", "ours.gguf")

    def compare(self, family, dtype):
        self.export(dtype)
        self.run_in(sys.executable, "-c", CONVERT, SOURCE, DIVISIONS[FAMILIES[family][2]], "base", "--outfile", "theirs.gguf", "--outtype",
                    dtype)
        ours, theirs = (gguf.GGUFReader(self.folder / name) for name in ("ours.gguf", "theirs.gguf"))
        for a, b in zip(sorted(ours.tensors, key=lambda one: one.name), sorted(theirs.tensors, key=lambda one: one.name), strict=True):
            self.assertEqual((a.name, a.tensor_type, list(a.shape)), (b.name, b.tensor_type, list(b.shape)))
            if a.name == "rope_freqs.weight":  # the converter computes them in float32
                np.testing.assert_allclose(a.data, b.data, rtol=1e-6)
                continue
            self.assertEqual(a.data.tobytes(), b.data.tobytes(), a.name)
        ours, theirs = metadata(ours), metadata(theirs)
        for key in ours.keys() | theirs.keys():
            if key not in ASIDE and key.partition(".")[2] not in ASIDE:
                self.assertEqual((key, ours.get(key)), (key, theirs.get(key)))
        return ours

    def greedy(self):
        """The text after the prompt by transformers."""
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(self.folder / "base")
        model = transformers.AutoModelForCausalLM.from_pretrained(self.folder / "base", dtype=torch.float32).eval()
        ids = tokenizer(PROMPT, return_tensors="pt").input_ids
        with torch.no_grad():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False, eos_token_id=599,
                                 pad_token_id=0)[0]
        return tokenizer.decode(out)

    def text(self):
        """The same by llama.cpp, which prints a token at a time and ends with a line."""
        return self.run_in(BINARY, "-m", "ours.gguf", "-n", TOKENS, "-ngl", 0, PROMPT).strip("\n")

    def check_text(self, wanted):
        found, wanted = self.text(), wanted.replace("\0", "")  # it prints no NUL, and takes <|end|> for the end
        same = wanted.startswith(found.rstrip("\ufffd"))
        whole = len(found) >= len(wanted) - 8 or wanted[len(found):].startswith("<|end|>")
        self.assertTrue(same and whole and len(found) > len(PROMPT) + 4, f"{found!r}\n{wanted!r}")

    def test_all(self):
        for family in FAMILIES:
            with self.subTest(family):
                base = save(family, self.folder / "base")
                for name in ("config.json", "generation_config.json"):  # no token ends the text
                    values = json.loads((base / name).read_text())
                    (base / name).write_text(json.dumps({**values, "bos_token_id": 1, "eos_token_id": 2}))
                wanted = self.greedy()
                for dtype in ("f32", "f16", "q8_0"):
                    self.export(dtype)
                    if family != "gpt_neox":  # the converter reads keys that transformers does not write any more
                        self.compare(family, dtype)
                    if dtype == "q8_0":
                        self.assertTrue(self.text().startswith(PROMPT))
                    else:
                        self.check_text(wanted)


if __name__ == "__main__":
    unittest.main()
