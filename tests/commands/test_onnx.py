"""accel-gen export --format onnx: onnxruntime computes the logits of transformers' classes, for any batch and length. A run
tries some of the configurations (rotation.py)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import onnx
import onnxruntime
import torch
import transformers

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("program", "commands", "models")]

import test_round_trip_of_inputs as images  # noqa: E402
from harness import GENERATOR  # noqa: E402
from rotation import in_turn  # noqa: E402
from round_trips import BASES, CASES, save  # noqa: E402
from transformers.utils import logging  # noqa: E402

logging.disable_progress_bar()


SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
REWARD = {**SMALL, "vocab_size": 64, "max_position_embeddings": 16, "num_labels": 1, "pad_token_id": 0}


class Folder(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def model(self, name, number=0, **more):
        shutil.rmtree(self.folder / "base", ignore_errors=True)
        (self.folder / "out.onnx").unlink(missing_ok=True)
        kind = getattr(transformers, name)
        save(kind, {**BASES[name], **CASES[name][number], **more}, number, self.folder / "base")
        return kind.from_pretrained(self.folder / "base", dtype=torch.float32).eval()

    def export(self, *words, status=0, generator=GENERATOR):
        done = subprocess.run([generator, "export", "base", "--format", "onnx", "-o", "out.onnx", *words], cwd=self.folder,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def refused(self, words, *flags):
        self.assertIn(words, self.export(*flags, status=2))
        self.assertFalse([path for path in os.listdir(self.folder) if path.startswith("out.onnx")])

    def session(self):
        self.checked = onnx.load(self.folder / "out.onnx")
        onnx.checker.check_model(self.checked, full_check=True)
        return onnxruntime.InferenceSession(self.folder / "out.onnx")

    def compare(self, model, session, batch, length, **more):
        tokens = torch.randint(4, model.config.vocab_size, (batch, length))
        with torch.no_grad():
            theirs = model(tokens, **more)
        names = [output.name for output in session.get_outputs()]
        ours = session.run(None, {"input_ids": tokens.numpy(), **{name: x.numpy() for name, x in more.items()}})
        for name, x in zip(names, ours):
            wanted = theirs[name].numpy()
            self.assertEqual(x.shape, wanted.shape)
            self.assertLess(abs(x - wanted).max(), 1e-5 * max(1, abs(wanted).max()), (name, batch, length))


class Families(Folder):
    def test_families(self):
        cases = [(name, number) for number in range(3) for name in CASES]
        for name, number in in_turn(cases, 3):
            with self.subTest(family=name, number=number):
                model = self.model(name, number)
                self.export()
                session = self.session()
                for batch, length in ((2, 9), (1, 1), (3, 28)):
                    self.compare(model, session, batch, length)


class Images(Folder):
    def test_families(self):
        """All but those whose rows are no images; ResNet with the statistics that it has kept."""
        cases = [(name, number) for number in range(3) for name in images.CASES if name.endswith("ForImageClassification")]
        for name, number in in_turn(cases, 3):
            with self.subTest(family=name, number=number):
                shutil.rmtree(self.folder / "base", ignore_errors=True)
                (self.folder / "out.onnx").unlink(missing_ok=True)
                kind, config = getattr(transformers, name), images.CASES[name][2][number]
                images.save(kind, config, number, self.folder / "base")
                size, channels = config.get("image_size", 37), config.get("num_channels", 3)
                self.export(*(("--set", f"model.config.image_size={size}") if name.startswith("ResNet") else ()))
                model, session = kind.from_pretrained(self.folder / "base", dtype=torch.float32).eval(), self.session()
                for batch in (1, 2, 7):
                    pixels = torch.randn(batch, channels, size, size)
                    with torch.no_grad():
                        wanted = model(pixels).logits.numpy()
                    [found] = session.run(["logits"], {"pixel_values": pixels.numpy()})
                    self.assertEqual(found.shape, wanted.shape)
                    self.assertLess(abs(found - wanted).max(), 1e-5 * max(1, abs(wanted).max()), (name, batch))

    def test_sequence(self):
        images.save(transformers.ViTForImageClassification, images.VISION, 0, self.folder / "base")
        self.refused("it reads no sequences", "--sequence", "4")
        self.refused("of keys model.config.KEY, not data.batch_size", "--set", "data.batch_size=4")


class Windows(Folder):
    """GPT-2, whose positions are learned, with windows."""

    def windowed(self, window):
        """The generator with a GPT-2 that sees so many keys."""
        tree, tail = self.folder / "tree", TESTS.parent
        shutil.rmtree(tree, ignore_errors=True)
        (tree / "build").mkdir(parents=True)
        (tree / "examples").mkdir()
        for name in ("include", "share"):
            (tree / name).symlink_to(tail / name)
        shutil.copy(GENERATOR, tree / "build" / "accel-gen")
        shutil.copytree(tail / "examples" / "models", tree / "examples" / "models")
        model = tree / "examples" / "models" / "gpt2.c"
        whole = model.read_text()
        self.assertIn("attention(", whole)
        model.write_text(whole.replace(" attention(", " attention_window(").replace("CAUSAL)", f"{window})"))
        return tree / "build" / "accel-gen"

    def compare_windowed(self, model, window, length):
        tokens = torch.randint(4, model.config.vocab_size, (2, length))
        position = torch.arange(length)
        seen = (position[:, None] >= position) & (position[:, None] - position < window)
        mask = torch.zeros(2, 1, length, length).masked_fill(~seen, torch.finfo(torch.float32).min)
        with torch.no_grad():
            wanted = model(tokens, attention_mask=mask).logits.numpy()
        ours = self.session().run(None, {"input_ids": tokens.numpy()})[0]
        self.assertLess(abs(ours - wanted).max(), 1e-5 * max(1, abs(wanted).max()), (window, length))

    def test_windows(self):
        model = self.model("GPT2LMHeadModel")
        longest = model.config.n_positions
        for window, words in ((5, ()), (longest - 2, ()), (longest - 1, ("--sequence", str(longest)))):
            with self.subTest(window=window):
                generator = self.windowed(window)
                self.export(*words, generator=generator)
                for length in (longest,) if words else (4, 9, longest - 1, longest):
                    self.compare_windowed(model, window, length)
        (self.folder / "out.onnx").unlink()
        self.assertIn("all positions of the longest sequence but one", self.export(generator=generator, status=2))
        self.assertFalse((self.folder / "out.onnx").exists())


class Heads(Folder):
    def test_bert(self):
        """Classes with a mask, and segments."""
        for name in ("BertForSequenceClassification", "BertForQuestionAnswering", "BertForTokenClassification"):
            with self.subTest(name):
                kind = getattr(transformers, name)
                shutil.rmtree(self.folder / "base", ignore_errors=True)
                save(kind, {**BASES["BertForMaskedLM"], "num_labels": 2}, 1, self.folder / "base")
                model = kind.from_pretrained(self.folder / "base", dtype=torch.float32).eval()
                self.export()
                session = self.session()
                for batch, length in ((2, 9), (1, 1), (3, 28)):
                    mask = (torch.arange(length) < torch.randint(1, length + 1, (batch, 1))).long()
                    self.compare(model, session, batch, length, attention_mask=mask, token_type_ids=torch.randint(2, (batch, length)))


class Files(Folder):
    def test_fields(self):
        self.model("LlamaForCausalLM", tie_word_embeddings=True)
        self.export()
        self.session()
        model = self.checked
        self.assertEqual((model.ir_version, model.opset_import[0].version, model.producer_name), (9, 20, "accel-gen"))
        self.assertEqual([(one.key, one.value) for one in model.metadata_props], [("architecture", "LlamaForCausalLM")])
        dims = [[dim.dim_param for dim in one.type.tensor_type.shape.dim] for one in [*model.graph.input, *model.graph.output]]
        self.assertEqual(dims, [["batch", "sequence"], ["batch", "sequence", ""]])
        names = [one.name for one in model.graph.initializer if "." in one.name]
        self.assertEqual((names.count("model.embed_tokens.weight"), "lm_head.weight" in names), (1, False))

    def test_fixed(self):
        model = self.model("GPT2LMHeadModel")
        self.export("--sequence", "6", "--batch", "2")
        session = self.session()
        self.assertEqual(session.get_inputs()[0].shape, [2, 6])
        self.compare(model, session, 2, 6)
        self.export("--sequence", "32")
        session = self.session()
        self.assertEqual(session.get_inputs()[0].shape, ["batch", 32])
        self.compare(model, session, 3, 32)

    def test_angles_that_follow_the_length(self):
        dynamic = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
        self.model("LlamaForCausalLM", rope_parameters={**dynamic, "original_max_position_embeddings": 16})
        self.refused("--sequence N and --batch N fix them")
        model = self.model("LlamaForCausalLM", rope_parameters={**dynamic, "original_max_position_embeddings": 32})
        self.export("--sequence", "40")
        self.compare(model, self.session(), 2, 40)

    def test_other_inputs(self):
        """What is no row of token numbers and no image: pairs of texts, images with texts."""
        for kind, config in ((transformers.CLIPModel, images.CLIP), (transformers.LlamaForSequenceClassification, REWARD)):
            with self.subTest(kind.__name__):
                shutil.rmtree(self.folder / "base", ignore_errors=True)
                kind(kind.config_class(**config)).save_pretrained(self.folder / "base")
                self.refused("which is neither [batch][sequence] nor an image")

    def test_refused(self):
        self.model("GPT2LMHeadModel")
        self.refused("slice", "--sequence", "33")
        self.refused("--dtype is for --format gguf", "--dtype", "f16")
        self.refused("--sequence is a number from 1", "--sequence", "0")
        config = self.folder / "base" / "config.json"
        good = config.read_text()
        config.write_text(json.dumps({**json.loads(good), "n_embd": 20}))
        self.refused("tensors of another shape or type: ")
        config.write_text(json.dumps({**json.loads(good), "activation_function": "relu"}))
        self.refused("activation_function")
        config.write_text(good)
        (self.folder / "base" / "model.safetensors").write_bytes(b"none")
        self.refused("model.safetensors")

    def huge(self):
        """Weights above what one file may have: zeros, without blocks."""
        self.model("GPT2LMHeadModel")
        path = self.folder / "base" / "model.safetensors"
        whole = path.read_bytes()
        length = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + length])
        tensor = header["transformer.wte.weight"]
        rows = 2**29 // tensor["shape"][1] + 1
        size = len(whole) - 8 - length
        tensor["shape"][0], tensor["data_offsets"] = rows, [size, size + rows * tensor["shape"][1] * 4]
        hole = [name for name in header if name != "__metadata__"]
        end = 0
        for name in hole:
            count = header[name]["data_offsets"][1] - header[name]["data_offsets"][0]
            header[name]["data_offsets"] = [end, end + count]
            end += count
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + end)
        config = self.folder / "base" / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "vocab_size": rows}))

    def test_two_files_or_none(self):
        self.huge()
        for name, make in (("out.onnx", os.mkdir), ("out.onnx_data", os.mkdir), ("out.onnx_data", os.mkfifo)):
            with self.subTest(name=name, make=make.__name__):
                make(self.folder / name)
                self.assertIn(name, self.export(status=1))
                self.assertEqual([path for path in os.listdir(self.folder) if path.startswith("out")], [name])
                self.assertFalse((self.folder / name).is_file())
                (os.rmdir if make is os.mkdir else os.unlink)(self.folder / name)
        done = subprocess.run(["sh", "-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "sh", GENERATOR, "export", "base",
                               "--format", "onnx", "-o", "out.onnx"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([path for path in os.listdir(self.folder) if path.startswith("out")], [])

    def test_data_of_an_earlier_export(self):
        self.model("GPT2LMHeadModel")
        (self.folder / "out.onnx_data").write_bytes(b"data")
        self.assertIn("out.onnx does not use this file", self.export())
        self.assertEqual((self.folder / "out.onnx_data").read_bytes(), b"data")
        self.session()

    def test_outputs_that_are_no_files(self):
        self.model("GPT2LMHeadModel")
        os.mkfifo(self.folder / "out.onnx")
        self.export(status=1)
        self.assertTrue((self.folder / "out.onnx").is_fifo())


if __name__ == "__main__":
    unittest.main()
