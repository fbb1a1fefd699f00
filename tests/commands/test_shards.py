"""accel-gen data of shards of WebDataset: the samples that Python's tarfile finds, in their order, grouped as webdataset groups
them; images as Pillow decodes them. Archives that are cut, damaged or hostile are refused, and nothing is written elsewhere."""

import gzip
import io
import json
import os
import random
import re
import resource
import subprocess
import tarfile
import unittest

import numpy as np
from data_folder import TREE, Folder
from harness import GENERATOR
from PIL import Image, ImageOps
from test_changes import peak_of
from test_data import read
from tokenizers_made import FAMILIES

SEED = int(os.environ.get("SEED", "1"))
MISSING = (TREE / "build/config/missing").read_text().split()
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def add(out, name, content, **values):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in values.items():
        setattr(member, key, value)
    out.addfile(member, io.BytesIO(content))


def samples_of(paths):
    """By tarfile, as webdataset's tar_file_iterator, base_plus_ext and group_by_keys have them."""
    for path in paths:
        sample = None
        with tarfile.open(path) as archive:
            for member in archive:
                found = re.match(r"^((?:.*/|)[^./]+)[.]([^/]*)$", member.name)
                if not member.isreg() or found is None or re.match(r"__[^/]*__($|/)", member.name):
                    continue
                if sample is None or sample["__key__"] != found[1]:
                    if sample is not None:
                        yield sample
                    sample = {"__key__": found[1]}
                assert found[2].lower() not in sample
                sample[found[2].lower()] = archive.extractfile(member).read()
        if sample is not None:
            yield sample


def picture(draw, size=None):
    pixels = np.frombuffer(draw.randbytes(7 * 9 * 3), dtype=np.uint8).reshape(7, 9, 3)
    return Image.fromarray(pixels).resize(size or (draw.randint(5, 40), draw.randint(5, 40)), Image.BICUBIC)


def encoded(image, ending):
    out = io.BytesIO()
    image.save(out, "PNG" if ending == "png" else "JPEG")
    return out.getvalue()


@unittest.skipIf("archive" in MISSING, "built without libarchive")
class Shards(Folder):
    def setUp(self):
        super().setUp()
        self.draw = random.Random(SEED)

    def open(self, name, **options):
        path = self.folder / name
        mode = "w:gz" if name.endswith("gz") else "w"
        return tarfile.open(path if not name.endswith("zst") else path.with_suffix(""), mode, **options)

    def pack(self, name):
        if name.endswith("zst"):
            subprocess.run(["zstd", "-q", "--rm", name[:-4]], cwd=self.folder, check=True)

    def make(self, names, samples=30):
        """Shards of all kinds of tar, with what is no sample between the files of samples."""
        number = 0
        for at, name in enumerate(names):
            with self.open(name, format=FORMATS[at % 3]) as out:
                add(out, "__meta__/x.txt", b"no sample")
                for _ in range(samples):
                    key = f"train/{self.draw.choice(('a', 'dir.x/b', 'ä' * 40 if at % 3 else 'c'))}{number:06}"
                    ending = self.draw.choice(("jpg", "JPEG", "png"))
                    files = {"txt": f"text {number} ä\n" * self.draw.randrange(60), "cls": f" {number * 7 % 11}\n", "json": json.dumps({"caption": f"c {number}", "kind": f"k{number % 5}", "id": number % 13}, indent=1),
                             "seg.png": "not read", ending: encoded(picture(self.draw), ending.lower())}
                    for suffix in self.draw.sample(sorted(files), len(files)):
                        add(out, f"{key}.{suffix}", files[suffix].encode() if isinstance(files[suffix], str) else files[suffix])
                        add(out, "train", b"", type=tarfile.DIRTYPE)
                        add(out, "link.txt", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")
                    add(out, "LICENSE", b"without an ending")
                    number += 1
            self.pack(name)
        return list(samples_of([self.folder / name for name in names if not name.endswith("zst")]))

    def texts(self):
        tokens, starts, _ = read(self.folder / "out.tok")
        return [bytes(tokens[a:b]) for a, b in zip(starts, [*starts[1:], len(tokens)])]

    def test_texts(self):
        names = [f"s-{i:06}.tar" for i in range(9, 12)]
        samples = self.make(names)
        self.assertEqual(len(samples), 90)
        wanted = [sample["txt"] for sample in samples if sample["txt"]]
        self.data(*names, "-o", "out.tok")
        self.assertEqual(self.texts(), wanted)
        for pattern in ("s-{000009..000011}.tar", "./s-0000{09..11}.tar"):
            self.data(pattern, "-o", "out.tok")  # quoted, as no shell is between
            self.assertEqual(self.texts(), wanted)
        self.data(*names, "-o", "out.tok", "--text-field", "caption")
        self.assertEqual(self.texts(), [json.loads(sample["json"])["caption"].encode() for sample in samples])
        plain = [(self.folder / name).read_bytes() for name in names]
        (self.folder / "p.tar.gz").write_bytes(gzip.compress(plain[0][:3000]) + gzip.compress(plain[0][3000:]))
        self.data("p.tar.gz", names[1], "-o", "out.tok")
        self.assertEqual(self.texts(), [sample["txt"] for sample in samples[:60] if sample["txt"]])
        if "zstd" not in MISSING:
            subprocess.run(["zstd", "-q", names[2]], cwd=self.folder, check=True)
            self.data(*names[:2], names[2] + ".zst", "-o", "out.tok")
            self.assertEqual(self.texts(), wanted)
        (self.folder / "any.dat").write_bytes(plain[0])  # by what is in it, not by its name
        self.data("any.dat", "-o", "out.tok")
        self.assertEqual(len(self.texts()), sum(1 for sample in samples[:30] if sample["txt"]))
        self.data(names[0], "-o", "out.tok", "--format", "text")
        self.assertEqual(read(self.folder / "out.tok")[0].tobytes(), plain[0])

    def test_tokens(self):
        """The same tokens as of the same texts in JSON Lines."""
        samples = self.make(["s.tar.gz"], samples=400)
        (self.folder / "s.jsonl").write_text("".join(json.dumps({"text": sample["txt"].decode()}) + "\n" for sample in samples))
        FAMILIES["gpt2"](samples[0]["txt"].decode() + "text", 300).save(str(self.folder / "t.json"))
        self.data("s.jsonl", "-o", "wanted.tok", "--text-field", "text", "--tokenizer", "t.json")
        self.data("s.tar.gz", "-o", "out.tok", "--tokenizer", "t.json")
        self.assertEqual((self.folder / "out.tok").read_bytes(), (self.folder / "wanted.tok").read_bytes())

    @unittest.skipIf("pictures" in MISSING, "built without libpng and libjpeg")
    def test_images(self):
        names = ["s-0.tar", "s-1.tar.gz", "s-2.tar"]
        samples = self.make(names)
        with tarfile.open(self.folder / "s-1.tar.gz") as archive:
            self.assertTrue(any(name.isascii() is False for name in archive.getnames()))
        pixels = [ImageOps.fit(Image.open(io.BytesIO(next(sample[e] for e in ("jpg", "jpeg", "png") if e in sample))).convert("RGB"), (8, 6), Image.BILINEAR) for sample in samples]
        self.data("s-0.tar", *names[1:], "-o", "out.npy", "--size", "6x8")
        found, labels = np.load(self.folder / "out.npy"), np.load(self.folder / "out.labels.npy")
        self.assertLessEqual(np.abs(found.astype(int) - np.stack([np.asarray(one) for one in pixels]).transpose(0, 3, 1, 2)).max(), 1)
        self.assertEqual((labels.tolist(), labels.dtype), ([int(sample["cls"]) for sample in samples], np.dtype("<i4")))
        self.assertEqual(json.loads((self.folder / "out.json").read_text())["id2label"], {str(i): str(i) for i in range(11)})
        for label, named in (("kind", lambda record: record["kind"]), ("id", lambda record: record["id"])):
            self.data(*names, "-o", "by.npy", "--size", "6x8", "--label", label)
            values = [named(json.loads(sample["json"])) for sample in samples]
            order = sorted(set(values))
            self.assertEqual(np.load(self.folder / "by.labels.npy").tolist(), [order.index(value) for value in values])
            self.assertEqual(json.loads((self.folder / "by.json").read_text())["id2label"], {str(i): str(name) for i, name in enumerate(order)})
            self.assertEqual((self.folder / "by.npy").read_bytes(), (self.folder / "out.npy").read_bytes())
        for threads in ("1", "3"):
            subprocess.run([GENERATOR, "data", *names, "-o", "t.npy", "--size", "6x8"], cwd=self.folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": threads})
            self.assertEqual((self.folder / "t.npy").read_bytes(), (self.folder / "out.npy").read_bytes())

    @unittest.skipIf("pictures" in MISSING, "built without libpng and libjpeg")
    def test_bad_samples(self):
        """Refused by their names, or skipped: without a label or an image, with two, a label that is none."""
        png = encoded(picture(self.draw, (4, 4)), "png")
        good, bad = [], {"b0": ("has no .cls", {"png": png}), "b1": ("no image", {"cls": b"1"}), "b2": ("two images", {"png": png, "jpg": png, "cls": b"1"}), "b3": ("not a whole number", {"png": png, "cls": b"-1"}),
                         "b4": ("not below 1000000", {"png": png, "cls": b"99999999999999999999"}), "b5": ("the .cls is empty", {"png": png, "cls": b" "}), "b6": ("no PNG", {"png": png[:60], "cls": b"1"})}
        for name, (told, files) in bad.items():
            with self.open("one.tar") as out:
                for ending, content in files.items():
                    add(out, f"{name}.{ending}", content)
            shown = self.data("one.tar", "-o", "out.npy", status=1)
            self.assertRegex(shown, f"one.tar: {name}.*: .*{told}")
            self.assertEqual(list(self.folder.glob("out*")), [])
        with self.open("all.tar") as out:
            for i, (name, (_, files)) in enumerate(bad.items()):
                for ending, content in files.items():
                    add(out, f"{name}.{ending}", content)
                add(out, f"g{i}.cls", str(i).encode())
                add(out, f"g{i}.png", png)
                good.append(i)
        told = self.data("all.tar", "-o", "out.npy", "--on-bad-record", "skip")
        self.assertIn("7 records were skipped; the first: all.tar: b0: the sample has no .cls", told)
        self.assertEqual(np.load(self.folder / "out.labels.npy").tolist(), good)
        for ending, labels, names in (("cls", ("0", "7"), {"0": 0}), ("txt", ("cat", "ant"), {"cat": 0})):  # of images that are left
            with self.open("left.tar") as out:
                for i, content in enumerate((png, png[:60])):
                    add(out, f"{i}.{ending}", labels[i].encode())
                    add(out, f"{i}.png", content)
            self.data("left.tar", "-o", "left.npy", "--size", "4", "--on-bad-record", "skip", *(("--label", ".TXT") if ending == "txt" else ()))
            self.assertEqual(json.loads((self.folder / "left.json").read_text())["label2id"], names)
            self.assertEqual(np.load(self.folder / "left.labels.npy").tolist(), [0])
        with self.open("g.tar") as out:
            add(out, "a.png", png)
            add(out, "a.cls", b"2")
        self.assertIn("not below 2", self.data("g.tar", "-o", "x.npy", "--labels", "a,b", status=1))
        self.data("g.tar", "-o", "x.npy", "--labels", "a,b,c")
        self.assertEqual(json.loads((self.folder / "x.json").read_text())["label2id"], {"a": 0, "b": 1, "c": 2})
        self.assertIn("an array is made of images", self.data("g.tar", "-o", "x.npy", "--tokenizer", "t", status=2))
        self.assertIn("g.json: neither a folder of images nor a tar", self.data(self.write("g.json"), "-o", "x.npy", status=1))

    def write(self, name):
        (self.folder / name).write_bytes(b"{}")
        return name

    def test_bad_texts(self):
        with self.open("s.tar") as out:
            add(out, "a.txt", b"first")
            add(out, "b.json", b'{"n": 1}')
            add(out, "c.txt", b"\xff")
            add(out, "c.json", b'{"n":\n 1,}')
            add(out, "d.txt", b"last")
            add(out, "d.json", b'{"n": "x"}')
        for flags, told in (((), "s.tar: b.txt: the sample has no such file"), (("--text-field", "n"), "s.tar: a.json: the sample has no such file"), (("--text-column", "n"), "no rows of a table")):
            self.assertIn(told, self.data("s.tar", "-o", "out.tok", *flags, status=1))
            self.assertEqual(list(self.folder.glob("out*")), [])
        self.assertIn("2 records were skipped", self.data("s.tar", "-o", "out.tok", "--on-bad-record", "skip"))
        self.assertEqual(self.texts(), [b"first", b"last"])
        self.assertIn("3 records were skipped", self.data("s.tar", "-o", "out.tok", "--text-field", "n", "--on-bad-record", "skip"))
        self.assertEqual(self.texts(), [b"x"])
        with self.open("j.tar") as out:
            add(out, "c.json", b'{"n":\n 1,}')
        self.assertIn("j.tar: c.json:2:", self.data("j.tar", "-o", "out.tok", "--text-field", "n", status=1))

    def test_damage(self):
        """Every cut and every damage to a header is refused; names that lead elsewhere are names."""
        with self.open("s.tar") as out:
            for name in ("../../up.txt", "/tmp/accel-absolute.txt", "..", "a/../b.txt"):
                add(out, name, b"x" * 700)
        outside = {path: path.exists() for path in (self.folder.parent.parent / "up.txt", self.folder.parent / "b.txt")}
        self.data("s.tar", "-o", "out.tok")
        self.assertEqual(self.texts(), [b"x" * 700] * 3)
        self.assertEqual({path: path.exists() for path in outside}, outside)
        self.assertFalse(os.path.exists("/tmp/accel-absolute.txt"))
        whole = (self.folder / "s.tar").read_bytes()
        end = len(whole.rstrip(b"\0")) + 511 & ~511
        (self.folder / "out.tok").unlink()
        for cut in (*range(512, end, 512), end - 100, 700, 1300):
            (self.folder / "c.tar").write_bytes(whole[:cut])
            self.assertRegex(self.data("c.tar", "-o", "out.tok", status=1), "c.tar: byte -?[0-9]+ of the archive: ")
            packed = gzip.compress(whole, mtime=0)
            (self.folder / "c.tar.gz").write_bytes(packed[: len(packed) * cut // end // 2 + 20])
            self.assertRegex(self.data("c.tar.gz", "-o", "out.tok", status=1), "c.tar.gz: byte [0-9]+: ")
        changed = bytearray(whole)
        changed[1024 + 600] ^= 1
        for name, content, told in (("twice.tar", None, "a file twice"), ("sum.tar", bytes(changed), "byte"), ("name.tar", None, "control character")):
            if content is None:
                with self.open(name) as out:
                    for _ in range(2):
                        add(out, "a.txt" if name == "twice.tar" else "a\033[2Jb.txt", b"x")
            else:
                (self.folder / name).write_bytes(content)
            self.assertIn(told, self.data(name, "-o", "out.tok", "--on-bad-record", "skip", status=1))
        self.assertEqual(list(self.folder.glob("out*")), [])
        (self.folder / "text.txt").write_bytes(b"x" * 257 + b"ustar" + b"y" * 300)  # what only looks like one
        self.data("text.txt", "-o", "text.tok")
        self.assertEqual(read(self.folder / "text.tok")[0].tobytes(), (self.folder / "text.txt").read_bytes())
        (self.folder / "no.tar").write_bytes(b"text")
        self.assertIn("not what tar writes", self.data("no.tar", "-o", "out.tok", status=1))
        self.assertIn("s-1.tar: cannot be opened", self.data("s-{1..3}.tar", "-o", "out.tok", status=1))
        self.assertIn("below its first", self.data("s-{3..1}.tar", "-o", "out.tok", status=1))

    def test_bombs(self):
        """Headers that say more than is there, sparse files and what unpacks to much more take no memory."""
        with open(self.folder / "sparse", "wb") as file:
            file.write(b"x")
            file.truncate(1 << 40)
        subprocess.run(["tar", "--sparse", "-cf", "sparse.tar", "--transform", "s/sparse/a.txt/", "sparse"], cwd=self.folder, check=True)
        huge = tarfile.TarInfo("a.txt")
        huge.size = 1 << 40
        (self.folder / "huge.tar").write_bytes(huge.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
        name = tarfile.TarInfo("././@LongLink")
        name.type, name.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
        (self.folder / "name.tar").write_bytes(name.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
        with gzip.open(self.folder / "zeros.tar.gz", "wb", compresslevel=1) as out:
            big = tarfile.TarInfo("b.mp4")
            big.size = 300 << 20
            out.write(big.tobuf())
            for _ in range(300):
                out.write(bytes(1 << 20))
            add_to = io.BytesIO()
            with tarfile.open(fileobj=add_to, mode="w") as archive:
                add(archive, "b.txt", b"after it")
            out.write(add_to.getvalue())
        for key in ("GNU.sparse.realsize", "GNU.sparse.size", "SCHILY.realsize"):
            with tarfile.open(self.folder / "negative.tar", "w", format=tarfile.PAX_FORMAT) as out:
                add(out, "b.png", bytes(10))
                add(out, "b.cls", bytes(300_000), pax_headers={key: "-1"})
            self.assertIn("a member with a negative size", self.data("negative.tar", "-o", "out.npy", "--size", "4", status=1))
        for name, told in (("sparse.tar", "a sparse file"), ("huge.tar", "more than 64 MiB"), ("name.tar", "byte"), ("zeros.tar.gz", "1 documents")):
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # noqa: E731
            done = subprocess.run([GENERATOR, "data", name, "-o", "out.tok"], cwd=self.folder, capture_output=True, text=True, preexec_fn=limit)
            self.assertIn(told, done.stdout + done.stderr)
            self.assertEqual(done.returncode, 0 if name == "zeros.tar.gz" else 1)
        self.assertEqual(self.texts(), [b"after it"])

    def test_memory(self):
        """It does not grow with the archive: 250 MB in 110 MB, of which half are libraries."""
        with self.open("s.tar") as out:
            for i in range(500):
                add(out, f"{i:04}.txt", b"some words " * 45_000)
        run = subprocess.Popen([GENERATOR, "data", "s.tar", "-o", "out.tok"], cwd=self.folder, stdout=subprocess.DEVNULL)
        most = 0
        while run.poll() is None:
            most = max(most, peak_of(run.pid))
        self.assertEqual(run.returncode, 0)
        self.assertGreater(most, 1 << 20)
        self.assertLess(most, 110 << 20)


if __name__ == "__main__":
    unittest.main()
