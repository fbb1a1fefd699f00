"""accel-gen data of a folder of images: the samples, labels and order of torchvision's ImageFolder, whose rules are written
here again, and the numbers of Pillow. What is no image is refused by its name."""

import io
import json
import os
import random
import struct
import unittest
import zlib

import numpy as np
from data_folder import TREE, Folder
from PIL import Image, ImageOps

SEED = int(os.environ.get("SEED", "1"))
MISSING = (TREE / "build" / "config" / "missing").read_text().split()
ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def samples(root):
    """Paths and labels as ImageFolder orders them."""
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    found = []
    for label, name in enumerate(classes):
        for folder, _, names in sorted(os.walk(os.path.join(root, name), followlinks=True)):
            found += [(os.path.join(folder, file), label) for file in sorted(names) if file.lower().endswith(ENDINGS)]
    return classes, found


def box_of(image, wanted):
    """The part that ImageOps.fit takes."""
    taken = []

    class Asked(Image.Image):
        size, mode = image.size, image.mode

        def resize(self, size, method, box):
            taken.append(box)

    ImageOps.fit(Asked(), wanted)
    return taken[0]


def pixels(path, size, mode, fit):
    """[channels][height][width] of Pillow's: resized along rows and then along columns, and at once, which newer versions do
    along columns first for some sizes."""
    image = ImageOps.exif_transpose(Image.open(path)).convert(mode)
    once = image
    if size:
        wanted = (size[1], size[0])
        once = image.resize(wanted, Image.BILINEAR) if fit == "stretch" else ImageOps.fit(image, wanted, Image.BILINEAR)
        left, top, right, bottom = (0, 0, *image.size) if fit == "stretch" else box_of(image, wanted)
        image = image.resize((wanted[0], image.height), Image.BILINEAR, (left, 0, right, image.height))
        image = image.resize(wanted, Image.BILINEAR, (0, top, image.width, bottom))
    return [np.asarray(one).reshape(one.height, one.width, -1).transpose(2, 0, 1) for one in (image, once)]


@unittest.skipIf("pictures" in MISSING, "built without libpng and libjpeg")
class Images(Folder):
    def setUp(self):
        super().setUp()
        self.draw = random.Random(SEED)
        self.numbers = np.random.default_rng(SEED)

    def image(self, mode, size=None):
        """Noise with smooth parts, as photographs have."""
        width, height = size or (self.draw.randint(1, 90), self.draw.randint(1, 90))
        small = self.numbers.integers(0, 256, (max(height // 5, 1), max(width // 5, 1), 4), dtype=np.uint8)
        image = Image.fromarray(small, "RGBA").resize((width, height), Image.BICUBIC)
        noise = Image.fromarray(self.numbers.integers(0, 256, (height, width, 4), dtype=np.uint8), "RGBA")
        image = Image.blend(image, noise, 0.2)
        return image.convert("RGB").quantize(self.draw.choice((3, 40, 256))) if mode == "P" else image.convert(mode)

    def save(self, name, image, **options):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, **options)

    def compare(self, root, *flags, size=None, mode="RGB", fit="crop", skipped=()):
        told = self.data(root, "-o", "out.npy", *flags, *(("--size", f"{size[0]}x{size[1]}") if size else ()))
        classes, wanted = samples(self.folder / root)
        wanted = [one for one in wanted if os.path.basename(one[0]) not in skipped]
        found, labels = np.load(self.folder / "out.npy"), np.load(self.folder / "out.labels.npy")
        named = json.loads((self.folder / "out.json").read_text())
        self.assertEqual(named["label2id"], {name: number for number, name in enumerate(classes)})
        self.assertEqual(named["id2label"], {str(number): name for number, name in enumerate(classes)})
        self.assertEqual((labels.tolist(), labels.dtype), ([label for _, label in wanted], np.dtype("<i4")))
        self.assertEqual((len(found), found.dtype), (len(wanted), np.dtype("uint8")))
        for row, (path, _) in zip(found, wanted, strict=True):
            twice, once = pixels(path, size, mode, fit)
            np.testing.assert_array_equal(row, twice, path)
            self.assertLessEqual(np.abs(row.astype(int) - once).max(), 1)
        return told

    def test_numbers(self):
        """Each kind of file, each orientation, any size: Pillow's numbers, all of them."""
        for i in range(3):
            for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
                self.save(f"in/a/{mode} {i}.png", self.image(mode), **({"transparency": 1} if mode == "P" and i else {}))
            for mode in ("L", "RGB"):
                self.save(f"in/b/{mode}{i}.JPG", self.image(mode), format="JPEG", quality=30 + 30 * i, progressive=i == 1, subsampling=i)
        for bits in (2, 4):
            self.save(f"in/b/P{bits}.png", self.image("RGB").quantize(1 << bits), bits=bits)
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            self.save(f"in/c/{orientation}.jpeg", self.image("RGB"), exif=exif)
            self.save(f"in/c/{orientation}.png", self.image("RGB"), exif=exif)
        (self.folder / "in/b/deep.png").write_bytes(png(5, 3, 16, 2, self.numbers.integers(0, 256, (3, 30), dtype=np.uint8)))
        for size in ((8, 8), (40, 17), (1, 64)):
            for fit in ("crop", "stretch"):
                for mode, flags in (("RGB", ()), ("L", ("--gray",))):
                    self.compare("in", "--fit", fit, *flags, size=size, mode=mode, fit=fit)

    def test_order(self):
        """By names of classes, then of folders, then of files; other files and empty names between them do not matter."""
        for name in ("in/b/z.png", "in/b/inner/a.png", "in/b/inner-2/b.PNG", "in/b/a.jpeg", "in/B/1.png", "in/ä/1.png", "in/b c/10.png", "in/b c/9.png"):
            self.save(name, self.image("RGB", (6, 4)))
        (self.folder / "in/b/notes.txt").write_text("no image")
        (self.folder / "in/readme.png").write_bytes(b"beside the classes")
        told = self.compare("in")
        self.assertIn("out.npy: 8 images [3][4][6]; 4 classes in out.json\n", told)
        (self.folder / "out.json").rename(self.folder / "known.json")
        self.save("other/b c/1.png", self.image("RGB", (6, 4)))
        self.data("other", "-o", "out.npy", "--labels", "known.json")
        self.assertEqual(np.load(self.folder / "out.labels.npy").tolist(), [2])
        self.save("other/new/1.png", self.image("RGB", (6, 4)))
        self.assertIn("other/new: no class of --labels", self.data("other", "-o", "out.npy", "--labels", "known.json", status=1))

    def test_refused(self):
        """By the name of the file, and nothing is written; with --on-bad-record skip the others are."""
        self.save("in/a/0.png", self.image("RGB", (8, 8)))
        good = io.BytesIO()
        self.image("RGB", (30, 30)).save(good, "JPEG")
        whole, other = good.getvalue(), io.BytesIO()
        self.image("RGB", (30, 30)).save(other, "PNG")
        files = (("1.png", Image.new("I;16", (4, 4)), "gray of 16 bits"), ("2.jpg", Image.new("CMYK", (4, 4)), "CMYK"), ("3.bmp", self.image("RGB"), "neither PNG nor JPEG"),
                 ("4.jpg", whole[: len(whole) // 2], "no JPEG"), ("9.jpg", whole[:-90] + b"\xff\0" * 9 + whole[-72:], "bad Huffman code"), ("5.png", other.getvalue()[:-30], "no PNG"), ("6.png", b"", "neither"),
                 ("7.png", other.getvalue().replace(b"IDAT", b"IDAU"), "no PNG"), ("8.png", png(60000, 60000, 8, 2, b""), "60000 x 60000"))
        for name, content, told in files:
            path = self.folder / "in/a" / name
            content.save(path) if isinstance(content, Image.Image) else path.write_bytes(content)
            shown = self.data("in", "-o", "out.npy", "--size", "8", status=1)
            self.assertIn(f"in/a/{name}: ", shown)
            self.assertIn(told, shown)
            self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith("out")], [])
            path.rename(self.folder / name)
        for name, *_ in files:
            (self.folder / name).rename(self.folder / "in/a" / name)
        told = self.compare("in", "--on-bad-record", "skip", size=(8, 8), skipped=[name for name, *_ in files])
        self.assertIn("9 records were skipped; the first: in/a/1.png: ", told)
        self.save("sizes/a/1.png", self.image("RGB", (8, 8)))
        self.save("sizes/a/2.png", self.image("RGB", (9, 8)))
        self.assertIn("sizes/a/2.png: 8 x 9 pixels, and the first image has 8 x 8", self.data("sizes", "-o", "x.npy", status=1))
        (self.folder / "empty/a").mkdir(parents=True)
        self.assertIn("empty/a: the folder of a class has no image", self.data("empty", "-o", "x.npy", status=1))
        self.assertIn("empty/a: it has no folder of a class", self.data("empty/a", "-o", "x.npy", status=1))
        for words, told in (((), "-o FILE.npy"), (("-o", "x.tok"), "-o FILE.npy"), (("-o", "x.npy", "--size", "0x3"), "--size is"), (("-o", "x.npy", "--fit", "crop"), "belongs to"),
                            (("-o", "x.npy", "--format", "text"), "a folder is of images"), (("in", "-o", "x.npy"), "of one folder")):
            self.assertIn(told, self.data("in", *words, status=2))
        self.assertIn("of a folder of images", self.data("in/a/0.png", "-o", "x.tok", "--size", "3", status=2))


def png(width, height, bits, colour, rows):
    """A file of what Pillow does not write."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    data = b"".join(b"\0" + bytes(row) for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


if __name__ == "__main__":
    unittest.main()
