"""Weights to and from the reference implementation of safetensors. Needs numpy, torch and safetensors."""


import numpy
import safetensors.numpy
import safetensors.torch
import torch

import support


class RoundTrip(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()

    def saved(self):
        return safetensors.numpy.load_file(self.folder / "runs/fake/model.safetensors")

    def test_ours_is_read_there(self):
        done = self.train("--data", "corpus.txt")
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.folder / "runs/fake/model.safetensors"
        with safetensors.safe_open(path, framework="pt") as file:
            self.assertEqual(file.metadata(), {"format": "pt"})
            self.assertEqual(sorted(file.keys()), ["bias", "noise.weight"])
        tensors = self.saved()
        self.assertEqual(tensors["bias"].shape, (256,))
        self.assertEqual(tensors["noise.weight"].shape, (8, 6))
        self.assertTrue(numpy.isfinite(tensors["bias"]).all() and tensors["bias"].any())
        self.assertAlmostEqual(float(tensors["noise.weight"].std()), 0.02, delta=0.01)

    def test_the_header_is_padded(self):
        self.train("--data", "corpus.txt")
        content = (self.folder / "runs/fake/model.safetensors").read_bytes()
        self.assertEqual(int.from_bytes(content[:8], "little") % 8, 0)

    def given(self, dtype, prefix=""):
        generator = torch.Generator().manual_seed(1)
        return {
            prefix + "noise.weight": torch.randn(8, 6, generator=generator).to(dtype),
            prefix + "bias": torch.zeros(256, dtype=dtype),
        }

    def check_given(self, tensors, **environment):
        safetensors.torch.save_file(tensors, self.folder / "given.safetensors")
        done = self.train("--data", "corpus.txt", FAKE_WEIGHTS="given.safetensors", **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"")
        name = next(name for name in tensors if name.endswith("noise.weight"))
        numpy.testing.assert_array_equal(self.saved()["noise.weight"], tensors[name].float().numpy())

    def test_theirs_is_read_here(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for prefix in ("", "transformer."):
                with self.subTest(dtype=dtype, prefix=prefix):
                    self.check_given(self.given(dtype, prefix))

    def test_extra_tensors_are_named(self):
        tensors = {**self.given(torch.float32), "h.0.attn.bias": torch.ones(1, 1, 4, 4, dtype=torch.bool)}
        safetensors.torch.save_file(tensors, self.folder / "given.safetensors")
        done = self.train("--data", "corpus.txt", FAKE_WEIGHTS="given.safetensors")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"error: given.safetensors: tensors that this model does not have: h.0.attn.bias\n", done.stderr)
        self.assertIn(b"model.ignore", done.stderr)
        self.check_given(tensors, FAKE_IGNORED="h.*.attn.bias")

    def test_what_may_start_fresh(self):
        tensors = self.given(torch.float32)
        missing = next(name for name in tensors if name.endswith("noise.weight"))
        tensors.pop(missing)
        safetensors.torch.save_file(tensors, self.folder / "given.safetensors")
        done = self.train("--data", "corpus.txt", FAKE_WEIGHTS="given.safetensors")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"model.fresh", done.stderr)
        done = self.train("--data", "corpus.txt", FAKE_WEIGHTS="given.safetensors", FAKE_FRESH="yes")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_prefix_of_the_job(self):
        tensors = {"inner." + name: tensor for name, tensor in self.given(torch.float32).items()}
        self.check_given(tensors, FAKE_PREFIX="inner.")

    def test_halves(self):
        """Values over the whole range of both formats, through a model's parameter."""
        for dtype in (torch.float16, torch.bfloat16):
            for start in range(0, 65536, 16384):
                bits = torch.arange(start, start + 48 * 341, dtype=torch.int32).to(torch.int16).view(dtype)
                for k in range(0, len(bits), 48 * 31):
                    self.check_given({**self.given(dtype), "noise.weight": bits[k : k + 48].reshape(8, 6).clone()})

    def test_damaged_files_are_refused(self):
        safetensors.torch.save_file(self.given(torch.float32), self.folder / "given.safetensors")
        whole = (self.folder / "given.safetensors").read_bytes()
        for cut in (0, 7, 8, 50, len(whole) - 1):
            (self.folder / "given.safetensors").write_bytes(whole[:cut])
            done = self.train("--data", "corpus.txt", FAKE_WEIGHTS="given.safetensors")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"error: given.safetensors: ", done.stderr)
            self.assertEqual(self.files(), ["corpus.txt", "given.safetensors"])


if __name__ == "__main__":
    support.main()
