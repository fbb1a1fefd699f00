"""Files of torch.save: what they hold is read as PyTorch has it, and nothing that they name is run."""

import io
import json
import os
import pickle
import subprocess
import zipfile

import torch
from safetensors.torch import load_file

import support

GENERATOR = support.ROOT / "build" / "accel-gen"
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


class Network(torch.nn.Module):
    """Tied weights, running statistics, a transposed parameter and an expanded buffer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(5, 7), torch.nn.Linear(5, 7)
        self.b.weight = self.a.weight
        self.norm = torch.nn.BatchNorm1d(7)
        self.turned = torch.nn.Parameter(torch.randn(4, 3).t())
        self.register_buffer("positions", torch.arange(6).expand((1, -1)))


class Runs:
    def __reduce__(self):
        return os.system, ("touch ran",)


class TorchFile(support.Folder):
    def read(self, path="pytorch_model.bin"):
        """What is written of it as safetensors, and the message otherwise."""
        done = subprocess.run([GENERATOR, "checkpoint", "merge", path, "-o", "out.safetensors"], cwd=self.folder, capture_output=True, text=True)
        return (load_file(self.folder / "out.safetensors") if done.returncode == 0 else None), done.stderr

    def check(self, tensors, path="pytorch_model.bin"):
        found, why = self.read(path)
        self.assertIsNotNone(found, why)
        self.assertEqual(sorted(found), sorted(tensors))
        for name, wanted in tensors.items():
            self.assertEqual((found[name].dtype, found[name].shape), (wanted.dtype, wanted.shape), name)
            self.assertEqual(found[name].contiguous().view(-1).view(torch.uint8).tolist() if wanted.numel() else [],
                             wanted.contiguous().view(-1).view(torch.uint8).tolist() if wanted.numel() else [], name)

    def save(self, what, **how):
        torch.save(what, self.folder / "pytorch_model.bin", **how)

    def test_state_of_a_model(self):
        model = Network()
        self.save(model.state_dict())
        self.check(model.state_dict())

    def test_types_and_views(self):
        whole = torch.arange(120).reshape(2, 3, 4, 5)
        tensors = {}
        for dtype in DTYPES:
            of = whole.to(dtype)
            views = {"whole": of, "part": of[1, 1:], "strided": of[:, ::2, 1:, ::3], "turned": of.permute(3, 1, 0, 2),
                     "number": of[1, 2, 3, 4], "none": of[:0], "reshaped": of.view(6, 20)[::5].t()}
            tensors |= {f"{name} {dtype}": view for name, view in views.items()}
        self.save(tensors)
        self.check(tensors)

    def test_index_and_folder(self):
        tensors = {"a": torch.randn(3), "b": torch.randn(2, 2)}
        for name in tensors:
            torch.save({name: tensors[name]}, self.folder / f"{name}.bin")
        (self.folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {name: f"{name}.bin" for name in tensors}}))
        self.check(tensors, ".")

    def test_a_run_starts_from_it(self):
        """Another name of what the model has is nothing extra."""
        self.write_corpus()
        given = {"noise.weight": torch.randn(8, 6).to(torch.bfloat16), "bias": torch.zeros(256)}
        self.save({**given, "tied": given["noise.weight"]})
        done = self.train("--data", "corpus.txt", FAKE_WEIGHTS="pytorch_model.bin")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(torch.equal(load_file(self.folder / "runs/fake/model.safetensors")["noise.weight"], given["noise.weight"].float()))

    def refused(self, message):
        found, why = self.read()
        self.assertIsNone(found)
        self.assertIn(f"pytorch_model.bin: {message}", why)
        self.assertIn("convert it: python -c", why)
        self.assertFalse((self.folder / "ran").exists())

    def test_what_is_refused(self):
        for what, message in (({"a": Runs()}, "the pickle names posix.system, which is not called"),
                              ({"model": {"a": torch.ones(1)}}, "'model' is no dense tensor"),
                              ({"step": 3, "a": torch.ones(1)}, "'step' is no dense tensor"),
                              (torch.ones(2), "is no dict of tensors"), (Network(), "the pickle names"),
                              ({"a": torch.ones(2).to_sparse()}, "the pickle names torch._utils._rebuild_sparse_tensor"),
                              ({"a": torch.ones(1).expand(1000)}, "tensor 'a' repeats elements of its storage")):
            with self.subTest(message=message):
                self.save(what)
                self.refused(message)
        self.save({"a": torch.ones(1)}, _use_new_zipfile_serialization=False)
        self.refused("is of torch.save before PyTorch 1.6")
        self.save({"a": torch.ones(1)}, pickle_protocol=4)
        self.refused("the pickle is of protocol 4, and 2 and 3 are read")

    def test_other_archives(self):
        pickled = pickle.dumps({"a": Runs()}, 2)
        for how, message in ((zipfile.ZIP_DEFLATED, "its file 'x/data.pkl' is compressed"), (zipfile.ZIP_STORED, "the pickle names posix.system")):
            with zipfile.ZipFile(self.folder / "pytorch_model.bin", "w", how) as archive:
                archive.writestr("x/data.pkl", pickled)
            self.refused(message)

    def test_damage(self):
        """Cut anywhere, and with any byte of its pickle or directory changed: an error, or other tensors."""
        out = io.BytesIO()
        torch.save({"a": torch.ones(2, 3), "b": torch.arange(4).t()}, out)
        whole = out.getvalue()
        for cut in range(4, len(whole), 97):
            (self.folder / "pytorch_model.bin").write_bytes(whole[:cut])
            self.assertIsNone(self.read()[0])
        begin = whole.index(b"data.pkl")
        for at in [*range(begin, begin + 300, 23), *range(len(whole) - 200, len(whole), 23)]:
            (self.folder / "pytorch_model.bin").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            self.read()


if __name__ == "__main__":
    support.main()
