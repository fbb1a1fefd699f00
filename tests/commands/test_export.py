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
from exported import FAMILIES, save, strip_as_phi3  # noqa: E402
from harness import GENERATOR  # noqa: E402

BLANK = "\u2581"
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
        if family.startswith("gemma") and name.endswith("norm.weight"):
            x = x + 1
        if name.endswith("A_log"):
            x = -np.exp(x)
        if name.endswith("conv1d.weight"):
            x = x.squeeze(1)
        if family == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            x = x.T
        if name.endswith("kv_b_proj.weight"):
            keys, values = np.split(x.reshape(config["num_attention_heads"], -1, x.shape[-1]), [config["qk_nope_head_dim"]], axis=1)
            out[names.get_name(name.replace("kv_b", "k_b"), try_suffixes=(".weight",))] = np.ascontiguousarray(keys.swapaxes(1, 2))
            name, x = name.replace("kv_b", "v_b"), values
        if name.endswith("e_score_correction_bias"):
            name = name.replace("_bias", ".bias")
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
            wide = x.ndim == 1 or one.name.endswith(("_norm.weight", "ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight",
                                                     "position_embd.weight", "ssm_conv1d.weight", "ssm_a"))
            kind = KINDS["f32" if wide else dtype]
            self.assertEqual((one.name, one.tensor_type, list(one.shape)), (one.name, kind, list(x.shape[::-1])))
            if one.name == "rope_freqs.weight" or one.name.endswith("ssm_a"):  # transformers computes them in float32
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
        config = json.loads((base / "config.json").read_text())
        self.assertEqual(len(tokens), config["vocab_size"])
        self.assertEqual({text: tokens[number] for text, number in tokenizer.get_vocab().items()}, {t: t for t in tokenizer.get_vocab()})
        self.assertEqual(keys["tokenizer.ggml.pre"], {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "deepseek_v3": "deepseek-v3"}.get(kind, "default"))
        self.assertEqual(keys["tokenizer.ggml.bos_token_id"], tokenizer.bos_token_id)
        self.assertEqual(keys["tokenizer.chat_template"], CHATML_MARKED)
        merges = json.loads((base / "tokenizer.json").read_text())["model"]["merges"]
        if keys["tokenizer.ggml.model"] == "llama":
            return self.check_pieces(keys, tokenizer, merges, prefix=kind != "gemma")
        self.assertEqual(keys["tokenizer.ggml.merges"], [" ".join(pair) for pair in merges])

    def check_pieces(self, keys, tokenizer, merges, prefix):
        """Neighbours whose token has the highest score are joined: that gives the tokens that the list of pairs gives."""
        self.assertEqual(keys["tokenizer.ggml.add_space_prefix"], prefix)
        tokens, scores, types = (keys[f"tokenizer.ggml.{name}"] for name in ("tokens", "scores", "token_type"))
        numbers = {text: number for number, text in enumerate(tokens)}
        self.assertEqual([text for text, kind in zip(tokens, types, strict=True) if kind == 6], [f"<0x{byte:02X}>" for byte in range(256)])
        self.assertLess(min(scores[numbers["".join(pair)]] for pair in merges), 0)
        for text in "A job is a page", "of keys, and  a folder", "is the folder's model? \u00e9\u4e2d", "a":
            pieces = list((BLANK if prefix else "") + text.replace(" ", BLANK))
            while True:
                joined = [(scores[numbers[a + b]], -at) for at, (a, b) in enumerate(zip(pieces, pieces[1:])) if a + b in numbers]
                if not joined:
                    break
                at = -max(joined)[1]
                pieces[at:at + 2] = ["".join(pieces[at:at + 2])]
            found = [number for piece in pieces
                     for number in ([numbers[piece]] if piece in numbers else [numbers[f"<0x{byte:02X}>"] for byte in piece.encode()])]
            self.assertEqual(found, tokenizer.encode(text, add_special_tokens=False), text)

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
                                  ("model", {"type": "Unigram", "vocab": []}, "only a BPE is exported"),
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

    def test_stripped(self):
        """llama.cpp strips blanks after added tokens by the model's name, which therefore follows the tokenizer."""
        base = save("phi3", self.folder / "base")
        for folder, name in ("Phi-3-mini", None), ("a-PHI3", None), ("modern-bert", None), ("phi-4", "phi-4"):
            base = base.rename(self.folder / folder)
            self.assertNotIn("strips", self.export(name=folder))
            self.assertEqual(self.field("general.name"), name)
        strip_as_phi3(base)
        for folder, name in ("Phi-3-mini", "Phi-3-mini"), ("base", "base (phi-3)"):
            base = base.rename(self.folder / folder)
            self.assertIn("warning: llama.cpp strips ASCII's blanks", self.export(name=folder))
            self.assertEqual(self.field("general.name"), name)
        tokenizer = json.loads((base / "tokenizer.json").read_text())
        tokenizer["added_tokens"][-1]["rstrip"] = False
        text = json.dumps(tokenizer)
        (self.folder / "out.gguf").unlink()
        for changed, words in ((text, "'rstrip', which a file of GGUF cannot represent"),
                               (text.replace('"rstrip": false', '"rstrip": true'), "'rstrip', which a file of GGUF cannot represent"),
                               (text.replace("<|endoftext|>", "<|other|>").replace('"rstrip": false', '"rstrip": true').replace(
                                   '"rstrip": true', '"rstrip": false', 2), "there is no token '<|endoftext|>'")):
            (base / "tokenizer.json").write_text(changed)
            self.refused(words)

    def test_pieces(self):
        """What scores cannot say, or llama.cpp has not."""
        base = save("llama2", self.folder / "base")
        tokenizer = json.loads((base / "tokenizer.json").read_text())
        model, merges = tokenizer["model"], tokenizer["model"]["merges"]
        first = "".join(merges[0])
        many = next(pair for pair in merges if sum("".join(pair) == "".join(other) for other in merges) > 1)
        without = {text: number for text, number in model["vocab"].items() if text != "<0x41>"}
        metaspace = {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "first", "split": True}
        for values, words in (({"model": {**model, "merges": [pair for pair in merges if pair != many]}}, "pairs of tokens, and"),
                              ({"model": {**model, "merges": [*merges, merges[0]]}}, f"merges that give token '{first}' have others between"),
                              ({"model": {**model, "merges": [*merges, ["x", "never"]]}}, "merge 'x never' gives no token"),
                              ({"model": {**model, "vocab": without}}, "the model has no token '<0x41>'"),
                              ({"model": {**model, "ignore_merges": True}}, "'ignore_merges' with 'byte_fallback'"),
                              ({"normalizer": {"type": "NFKC"}}, "'normalizer' and 'pre_tokenizer' change"),
                              ({"normalizer": None, "pre_tokenizer": metaspace}, "'normalizer' and 'pre_tokenizer' change")):
            with self.subTest(words):
                (base / "tokenizer.json").write_text(json.dumps({**tokenizer, **values}))
                self.refused(words)

    def test_windows(self):
        """Which layers see a window; what llama.cpp computes otherwise."""
        base = save("gemma2", self.folder / "base")
        self.export()
        self.assertEqual(self.field("gemma2.attention.sliding_window_pattern"), [True, False, True])
        for key, value in ("query_pre_attn_scalar", 32), ("attn_logit_softcapping", None), ("final_logit_softcapping", 0.0):
            with self.subTest(key):
                config = (base / "config.json").read_text()
                self.edit(base, "config.json", **{key: value})
                self.assertIn(f"'{key}' is", self.export(status=2))
                (base / "config.json").write_text(config)

    def tensors(self):
        """Those of a good export, which is removed."""
        self.export()
        tensors = gguf.GGUFReader(self.folder / "out.gguf").tensors
        (self.folder / "out.gguf").unlink()
        return tensors

    def test_latent(self):
        """What llama.cpp computes otherwise than DeepSeek-V3, and keys that files have only where they mean something."""
        base = save("deepseek_v3_yarn", self.folder / "base")
        self.export()
        self.assertEqual([self.field(f"deepseek2.{key}") for key in ("attention.key_length", "attention.q_lora_rank", "expert_group_count",
                                                                      "expert_weights_norm", "rope.scaling.original_context_length")],
                         [48, 0, None, None, 32])
        self.assertAlmostEqual(self.field("deepseek2.rope.scaling.yarn_log_multiplier"), 0.07)
        (self.folder / "out.gguf").unlink()
        config = json.loads((base / "config.json").read_text())
        rope = config["rope_parameters"]
        for values, words in (({"rms_norm_eps": 1e-5}, "'rms_norm_eps' is 1e-05, which a file of GGUF cannot represent"),
                              ({"rope_interleave": False}, "'rope_interleave' is false"),
                              ({"routed_scaling_factor": 0.0}, "'routed_scaling_factor' is 0"),
                              ({"rope_parameters": {**rope, "rope_type": "linear"}}, "'rope.kind' is ROPE_LINEAR"),
                              ({"rope_parameters": {**rope, "mscale": 1.0}}, "'rope.mscale' is 1"),
                              ({"rope_parameters": {**rope, "mscale": 0, "mscale_all_dim": 0}}, "'rope.mscale_all_dim' is 0"),
                              ({"rope_parameters": {**rope, "factor": 0.5}}, "'rope.factor' is 0.5")):
            with self.subTest(words):
                (base / "config.json").write_text(json.dumps({**config, **values}))
                self.refused(words)
        (base / "config.json").write_text(json.dumps(config))
        tensors = load_file(base / "model.safetensors")
        names = {one.name for one in self.tensors()}
        for more, status in (("model.layers.61.eh_proj.weight", 0), ("model.layers.60.eh_proj.weight", 2)):
            save_file({**tensors, more: np.ones((4, 4), np.float32)}, base / "model.safetensors")
            self.export(status=status)
        self.assertEqual({one.name for one in gguf.GGUFReader(self.folder / "out.gguf").tensors}, names)
        (self.folder / "out.gguf").unlink()
        shutil.rmtree(base)
        save("deepseek_v3", base, num_hidden_layers=26, n_routed_experts=2, n_group=1, topk_group=1, num_experts_per_tok=1)
        self.refused("'q_lora_rank' is 24, which a file of GGUF cannot represent")

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
