"""Writes build/images for examples/jobs/images.yaml: train/CLASS/NAME.png and val/CLASS/NAME.png as torchvision's ImageFolder
has them, of discs, squares and crosses in any colour at any position, 24 x 24, made up."""

import pathlib
import random
import struct
import zlib

SIDE = 24
FOLDER = pathlib.Path("build/images")


def is_inside(shape, x, y, radius):
    if shape == "disc":
        return x * x + y * y <= radius * radius
    if shape == "square":
        return max(abs(x), abs(y)) <= radius
    return min(abs(x), abs(y)) <= radius / 4 and max(abs(x), abs(y)) <= radius


def rows_of(shape, draw):
    """Rows of red, green and blue, with noise."""
    radius = draw.uniform(4, 7)
    middle = [draw.uniform(radius, SIDE - radius) for _ in range(2)]
    dark, light = [[draw.randrange(low, low + 110) for _ in range(3)] for low in (0, 130)]
    for y in range(SIDE):
        row = bytearray()
        for x in range(SIDE):
            colour = light if is_inside(shape, x - middle[0], y - middle[1], radius) else dark
            row += bytes(value + draw.randrange(15) for value in colour)
        yield bytes(row)


def png(rows):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b"")


def main():
    draw = random.Random(1)
    for split, count in (("train", 200), ("val", 40)):
        for shape in ("cross", "disc", "square"):
            folder = FOLDER / split / shape
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(count):
                (folder / f"{i:04}.png").write_bytes(png(rows_of(shape, draw)))


main()
