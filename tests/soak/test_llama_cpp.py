"""Files of GGUF against llama.cpp itself: its converter writes the same tensors and metadata from the same folder, and its program
generates the text that transformers generates. LLAMA_CPP names its source, built in its folder build (llama-simple).
LLAMA_CPP_FAMILIES="gpt2 llama" tries these alone."""

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

from exported import FAMILIES, save, strip_as_phi3  # noqa: E402
from harness import GENERATOR  # noqa: E402

SOURCE = os.environ.get("LLAMA_CPP")
BINARY = os.environ.get("LLAMA_CPP_SIMPLE", f"{SOURCE}/build/bin/llama-simple")
BLANK, BYTES = "\u2581", {c: byte for byte, c in gguf.vocab.bytes_to_unicode().items()}
PROMPT, TOKENS, NONE = "A job is a page", 24, 1 << 30
ENDS = b"<|end|>", b"</s>", b"<|im_end|>", b"<|eot_id|>", b"<end_of_turn>"
MARKED = "<|user|>\n\t A job<|end|>\n is <|assistant|> a page<|user|><s> of\n"
DIVISIONS = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "deepseek_v3": "deepseek-v3", "llama2": "default", "mistral": "default", "gemma": "default"}
# The converter knows a published tokenizer by a digest of what it makes of a text, which one trained here has not.
CONVERT = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
division = sys.argv[2]
from conversion.base import TextModel
TextModel.get_vocab_base_pre = lambda self, tokenizer: division
if division == "default":  # there is no tokenizer.model
    import conversion.gemma, conversion.phi
    TextModel._set_vocab_sentencepiece = TextModel._set_vocab_gpt2 = conversion.phi.Phi3MiniModel.set_vocab = TextModel._set_vocab_llama_hf
del sys.argv[1:3]
import convert_hf_to_gguf
convert_hf_to_gguf.main()
"""
# What one of them writes and the other does not: what follows from the rest, and what the folder's name says.
ASIDE = {"general.alignment", "general.name", "general.size_label", "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token",
         "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "attention.key_length", "attention.value_length",
         "rope.dimension_count", "vocab_size", "rope.freq_base", "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.scores",
         "ssm.dt_b_c_rms", "attention.sliding_window_pattern", "rope.scaling.original_context_length",
         *(f"tokenizer.ggml.{name}_token_id" for name in ("prefix", "suffix", "middle", "fsep", "eot"))}
# What one of them leaves out where it means nothing: one group of experts; queries that are not narrowed.
OPTIONAL = {"expert_group_count", "expert_group_used_count", "attention.q_lora_rank"}


def bytes_of(tokenizer, number):
    """A token's text; those of a tokenizer of pieces that are a byte are that byte."""
    text = tokenizer.convert_ids_to_tokens(int(number)) or ""  # the model may have more numbers than there are tokens
    if text.startswith("<0x") and len(text) == 6:
        return bytes([int(text[3:5], 16)])
    if BLANK in json.dumps(tokenizer.backend_tokenizer.to_str(), ensure_ascii=False):
        return text.replace(BLANK, " ").encode()
    return bytes(BYTES[c] for c in text) if all(c in BYTES for c in text) else text.encode()


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
        return done.stdout

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
            after = key.partition(".")[2]
            if key not in ASIDE and after not in ASIDE and not (after in OPTIONAL and None in (ours.get(key), theirs.get(key))):
                self.assertEqual((key, ours.get(key)), (key, theirs.get(key)))
        return ours

    def greedy(self, prompt=PROMPT):
        """The text with what follows the prompt by transformers."""
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(self.folder / "base")
        model = transformers.AutoModelForCausalLM.from_pretrained(self.folder / "base", dtype=torch.float32).eval()
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.no_grad():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False, eos_token_id=NONE,
                                 pad_token_id=0)[0]
        return b"".join(bytes_of(tokenizer, number) for number in out)

    def text(self, prompt=PROMPT):
        """The same by llama.cpp, which prints a token at a time and ends with a line."""
        return self.run_in(BINARY, "-m", "ours.gguf", "-n", TOKENS, "-ngl", 0, prompt).strip(b"\n")

    def check_text(self, wanted, prompt=PROMPT):
        """llama.cpp prints no NUL, takes some tokens for the end, and leaves out characters that are not whole at the end."""
        found, wanted = self.text(prompt), wanted.replace(b"\0", b"")
        whole = len(found) >= len(wanted) - 8 or wanted[len(found):].startswith(ENDS)
        self.assertTrue(wanted.startswith(found) and whole and len(found) > len(wanted) / 2, f"{found!r}\n{wanted!r}")

    def test_all(self):
        for family in os.environ.get("LLAMA_CPP_FAMILIES", "").split() or FAMILIES:
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
                        self.assertTrue(self.text().lstrip().startswith(PROMPT.encode()))
                    else:
                        self.check_text(wanted)

    def test_stripped(self):
        """Blanks after added tokens: the tokens of a text are printed with it."""
        for strips in False, True:
            base = save("phi3", self.folder / "base")
            if strips:
                strip_as_phi3(base)
            with self.subTest(strips=strips):
                wanted = self.greedy(MARKED)
                self.assertEqual(b"<|user|> A job" in wanted.replace(b"<|user|>A", b"<|user|> A"), strips, wanted)
                self.export("f32")
                self.check_text(wanted, MARKED)


if __name__ == "__main__":
    unittest.main()
