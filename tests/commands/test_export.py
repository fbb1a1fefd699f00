"""accel-gen export: files of GGUF, read by the package gguf. Names of tensors are those of its table, 8-bit blocks those of its
quantize; the order of elements is that of llama.cpp's converter, in NumPy."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "program"), str(TESTS / "commands")]

from chats_made import CHATML_MARKED, tokenizer_of  # noqa: E402
from exported import FAMILIES, save  # noqa: E402
from harness import GENERATOR  # noqa: E402

KINDS = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "q8_0": gguf.GGMLQuantizationType.Q8_0}


def pairs(x, heads):
    """Both halves of each head's rows in turn."""
    return x.reshape(heads, 2, -1, x.shape[-1]).swapaxes(1, 2).reshape(x.shape)


def stacked(tensors):
    """One tensor for the parts of a layer: llama.cpp's name for each and the numbers of the parts left out."""
    out = {}
    for name, x in tensors.items():
        before, found, after = name.partition(".experts.")
        key = f"{before}{found}{after.partition('.')[2]}" if found else name
        out.setdefault(key, []).append((int(after.partition(".")[0]) if found else 0, x))
    return {name: np.stack([x for _, x in sorted(parts, key=lambda one: one[0])]) if ".experts." in name else parts[0][1]
            for name, parts in out.items()}


def expected(family, tensors, config):
    """Name to elements, by gguf's table of names."""
    architecture = FAMILIES[family][3]
    kind = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, config.get("num_hidden_layers", config.get("n_layer")))
    out = {}
    for name, x in stacked(tensors).items():
        if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            x = pairs(x, config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"])
        if "query_key_value" in name:
            x = x.reshape(config["num_attention_heads"], 3, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
        if family == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            x = x.T
        mapped = names.get_name(name.replace("model.", "").replace("block_sparse_moe", "feed_forward")
                                if "block_sparse_moe" in name else name, try_suffixes=(".weight", ".bias"))
        out[mapped] = np.ascontiguousarray(x)
    if family == "llama3":
        kind = transformers.LlamaConfig(**FAMILIES[family][1])
        scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](kind, "cpu")
        width = kind.hidden_size // kind.num_attention_heads
        out["rope_freqs.weight"] = (10000.0 ** (-np.arange(0, width, 2) / width) / scaled.double().numpy()).astype(np.float32)
    return out


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def export(self, *words, status=0, name="base"):
        done = subprocess.run([GENERATOR, "export", name, "--format", "gguf", "-o", "out.gguf", *words], cwd=self.folder,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def refused(self, words, *flags, name="base"):
        self.assertIn(words, self.export(*flags, status=2, name=name))
        self.assertFalse([path for path in os.listdir(self.folder) if path.startswith("out.gguf")])


class Gguf(Folder):
    def check(self, family, dtype):
        base = save(family, self.folder / "base")
        self.export("--dtype", dtype)
        reader = gguf.GGUFReader(self.folder / "out.gguf")
        wanted = expected(family, load_file(base / "model.safetensors"), json.loads((base / "config.json").read_text()))
        self.assertEqual({one.name for one in reader.tensors}, set(wanted))
        for one in reader.tensors:
            x = wanted[one.name]
            wide = x.ndim == 1 or one.name.endswith(("_norm.weight", "ffn_gate_inp.weight", "position_embd.weight"))
            kind = KINDS["f32" if wide else dtype]
            self.assertEqual((one.name, one.tensor_type, list(one.shape)), (one.name, kind, list(x.shape[::-1])))
            if one.name == "rope_freqs.weight":  # transformers computes them in float32
                np.testing.assert_allclose(one.data, x, rtol=1e-6)
                continue
            self.assertEqual(one.data.tobytes(), gguf.quantize(x, kind).tobytes(), one.name)
        return {field.name: field.contents() for field in reader.fields.values()}, base

    def check_keys(self, family):
        keys, base = self.check(family, "f32")
        _, config, kind, architecture = FAMILIES[family]
        self.assertEqual(keys["general.architecture"], architecture)
        self.assertEqual(keys[f"{architecture}.block_count"], config.get("num_hidden_layers", config.get("n_layer")))
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(base)
        tokens = keys["tokenizer.ggml.tokens"]
        self.assertEqual(len(tokens), config["vocab_size"])
        self.assertEqual({text: tokens[number] for text, number in tokenizer.get_vocab().items()}, {t: t for t in tokenizer.get_vocab()})
        self.assertEqual(keys["tokenizer.ggml.pre"], {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2"}[kind])
        self.assertEqual(keys["tokenizer.ggml.bos_token_id"], tokenizer.bos_token_id)
        self.assertEqual(keys["tokenizer.chat_template"], CHATML_MARKED)
        merges = json.loads((base / "tokenizer.json").read_text())["model"]["merges"]
        self.assertEqual(keys["tokenizer.ggml.merges"], [" ".join(pair) for pair in merges])

    def test_llama(self):
        self.check_keys("llama")
        for dtype in ("f16", "q8_0"):
            shutil.rmtree(self.folder / "base")
            self.check("llama", dtype)

    def test_gpt2(self):
        self.check_keys("gpt2")

    def test_others(self):
        for family in FAMILIES:
            if family in ("llama", "gpt2"):
                continue
            with self.subTest(family):
                self.check_keys(family)
                shutil.rmtree(self.folder / "base")

    def test_kept(self):
        """A bfloat16 file in shards, tied, gives what float32 gives; rows that are no blocks are float16."""
        base = save("llama", self.folder / "base", tie_word_embeddings=True, intermediate_size=80)
        model = transformers.AutoModelForCausalLM.from_pretrained(base).to(torch.bfloat16)
        shutil.rmtree(base)
        model.save_pretrained(base, max_shard_size="40KB")
        tokenizer_of("llama3", "text " * 90, CHATML_MARKED).save_pretrained(base)
        self.export("--dtype", "q8_0")
        types = {one.name: one.tensor_type for one in gguf.GGUFReader(self.folder / "out.gguf").tensors}
        self.assertNotIn("output.weight", types)
        self.assertEqual((types["blk.1.ffn_down.weight"], types["blk.1.ffn_up.weight"]), (KINDS["f16"], KINDS["q8_0"]))

    def test_numbers(self):
        """Blocks of any size give what gguf's quantize gives; float32 keeps what is no number."""
        base = save("llama", self.folder / "base")
        name, tensors = "model.layers.0.mlp.up_proj.weight", load_file(base / "model.safetensors")
        x = tensors[name]
        sizes = np.float32(10.0) ** -np.arange(30, 46, dtype=np.float32)  # down to numbers that float32 has no reciprocal of
        x[:16] *= sizes[:, None]
        x[16] = 0
        for dtype in ("f16", "q8_0", "f32"):
            if dtype == "f32":
                x[0, :3] = np.nan, np.inf, -np.inf
            save_file(tensors, base / "model.safetensors")
            self.export("--dtype", dtype)
            found = {one.name: one.data for one in gguf.GGUFReader(self.folder / "out.gguf").tensors}["blk.0.ffn_up.weight"]
            with np.errstate(all="ignore"):
                self.assertEqual(found.tobytes(), gguf.quantize(x, KINDS[dtype]).tobytes(), dtype)
        for dtype in ("f16", "q8_0"):
            self.assertIn("ffn_up.weight has numbers that are not finite", self.export("--dtype", dtype, status=2))

    def test_places(self):
        """What stands where the file goes and is no file stays; a file of the partial one's name is not written through."""
        save("llama", self.folder / "base")
        out, kept = self.folder / "out.gguf", self.folder / "kept"
        for make, words in ((os.mkfifo, "out.gguf: is not a regular file, and would be replaced"), (os.mkdir, "out.gguf: is a folder")):
            make(out)
            kind = out.stat().st_mode
            self.assertIn(words, self.export(status=1))
            self.assertEqual(out.stat().st_mode, kind)
            self.assertEqual(sorted(os.listdir(self.folder)), ["base", "out.gguf"])
            (out.unlink if make is os.mkfifo else out.rmdir)()
        self.assertIn("does not write to standard output", self.export("-o", "-", status=2))
        self.assertIn("cannot be created: No such file", self.export("-o", "none/out.gguf", status=1))
        kept.write_text("kept")
        os.symlink("kept", self.folder / "out.gguf.partial")
        self.export()
        self.assertEqual((kept.read_text(), sorted(os.listdir(self.folder))), ("kept", ["base", "kept", "out.gguf"]))
        gguf.GGUFReader(out)

    def test_full_disk(self):
        """A file that cannot be written whole is absent, with status 1."""
        save("llama", self.folder / "base")
        limit = (resource.RLIMIT_FSIZE, (100_000, 100_000))
        done = subprocess.run([GENERATOR, "export", "base", "--format", "gguf", "-o", "out.gguf"], cwd=self.folder, capture_output=True, text=True,
                              preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(*limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("out.gguf: cannot be written: File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["base"])

    def edit(self, base, name, **values):
        path = base / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    def test_refused(self):
        """What a file of GGUF cannot have, by its key."""
        base = save("llama", self.folder / "base")
        config, tokenizer = (base / "config.json").read_text(), json.loads((base / "tokenizer.json").read_text())
        rope = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 32}
        self.edit(base, "config.json", rope_parameters=rope)
        self.refused("'rope.kind' is ROPE_YARN, which a file of GGUF cannot represent")
        (base / "config.json").write_text(config)
        for key, value, words in (("pre_tokenizer", {"type": "Whitespace"}, "'pre_tokenizer' divides texts"),
                                  ("normalizer", {"type": "Lowercase"}, "'normalizer' changes texts"),
                                  ("model", {"type": "Unigram", "vocab": []}, "only a byte-level BPE"),
                                  ("added_tokens", [{"id": 9999, "content": "x"}], "is not one of the model's"),
                                  ("post_processor", {"type": "TemplateProcessing", "single": []}, "'post_processor' adds")):
            with self.subTest(key):
                (base / "tokenizer.json").write_text(json.dumps({**tokenizer, key: value}))
                self.refused(words)
        (base / "tokenizer.json").write_text("{")
        self.refused("tokenizer.json:1")
        (base / "tokenizer.json").unlink()
        self.refused("there is no such file")

    def field(self, name):
        fields = gguf.GGUFReader(self.folder / "out.gguf").fields
        return fields[name].contents() if name in fields else None

    def test_tokens(self):
        """Tokens and ways to find them that llama.cpp has not."""
        base = save("llama", self.folder / "base")
        tokenizer = json.loads((base / "tokenizer.json").read_text())
        first, *others = tokenizer["added_tokens"]
        edited = [({"added_tokens": [{**first, key: True}, *others]}, f"added token '{first['content']}' has '{key}'")
                  for key in ("lstrip", "rstrip", "single_word")]
        edited += [({"model": {**tokenizer["model"], key: value}}, f"the model has '{key}'")
                   for key, value in (("dropout", 0.1), ("end_of_word_suffix", "</w>"), ("continuing_subword_prefix", "##"))]
        edited += [({"added_tokens": [first, {**first, "id": 599}, *others]}, f"token '{first['content']}' has the numbers {first['id']} and 599"),
                   ({"added_tokens": [first, {**first, "content": "new"}, *others]}, f"tokens 'new' and '{first['content']}' have the same number")]
        for values, words in edited:
            with self.subTest(words):
                (base / "tokenizer.json").write_text(json.dumps({**tokenizer, **values}))
                self.refused(words)
        plain = {"dropout": None, "end_of_word_suffix": "", "continuing_subword_prefix": None}
        (base / "tokenizer.json").write_text(json.dumps({**tokenizer, "model": {**tokenizer["model"], **plain}, "normalizer": {"type": "NFC"}}))
        self.assertIn("warning: llama.cpp does not normalize texts to NFC", self.export())

    def test_specials(self):
        """Special tokens and templates of chats, as folders name them."""
        base = save("llama", self.folder / "base")
        (base / "chat_template.jinja").unlink(missing_ok=True)
        self.edit(base, "tokenizer_config.json", eos_token=None)
        self.edit(base, "config.json", eos_token_id=[5, 2])
        for template, found in ([{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}], "d"), ("", None), ("t", "t"), (None, None):
            self.edit(base, "tokenizer_config.json", chat_template=template)
            self.export()
            self.assertEqual((self.field("tokenizer.ggml.eos_token_id"), self.field("tokenizer.chat_template")), (5, found))
        (self.folder / "out.gguf").unlink()
        for template, words in ([{"name": "rag", "template": "r"}], "has none of the name 'default'"), ({"a": 1}, "'chat_template' is no text"):
            self.edit(base, "tokenizer_config.json", chat_template=template)
            self.refused(words)
        self.edit(base, "tokenizer_config.json", chat_template=None)
        self.edit(base, "config.json", eos_token_id=600)
        self.refused("'eos_token_id' is 600, and the vocabulary has 600 tokens")
        for named in "none", {"content": "none"}:
            self.edit(base, "tokenizer_config.json", eos_token=named)
            self.refused("'eos_token' is 'none', which is no token of the vocabulary")

    def test_broken(self):
        """Folders that are no model."""
        base = save("llama", self.folder / "base")
        weights = base / "model.safetensors"
        tensors, whole = load_file(weights), weights.read_bytes()
        large = {**tensors, "model.layers.0.mlp.up_proj.weight": tensors["model.layers.0.mlp.up_proj.weight"] + np.float32(1e30)}
        broken = {**large, "model.layers.0.mlp.up_proj.weight": large["model.layers.0.mlp.up_proj.weight"] * np.float32(np.inf)}
        for what, words in ((dict(list(tensors.items())[1:]), "no tensor for the parameters"),
                            ({**tensors, "more": np.zeros(3, np.float32)}, "more"),
                            ({**tensors, "lm_head.weight": tensors["lm_head.weight"][:9]}, "another shape"),
                            (large, "up.weight has numbers that a float16 cannot hold"),
                            (broken, "up.weight has numbers that are not finite")):
            with self.subTest(words):
                save_file(what, weights)
                self.refused(words, "--dtype", "f16")
        weights.write_bytes(whole[:-9])
        self.refused("error")
        weights.unlink()
        self.refused("no weights")
        (base / "config.json").write_text('{"architectures": ["ResNetForImageClassification"]')
        self.refused("config.json")
        self.refused("no such folder", name="nothing")

    def test_input_is_spared(self):
        base = save("llama", self.folder / "base")
        done = subprocess.run([GENERATOR, "export", "base", "--format", "gguf", "-o", "base/model.safetensors"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("model.safetensors", done.stderr)
        load_file(base / "model.safetensors")


if __name__ == "__main__":
    unittest.main()
