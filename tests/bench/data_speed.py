"""accel-gen data compared with readers in Python: MB of content in a second of one processor, and the most memory of each run
here.

usage: data_speed.py [--megabytes N]   of records (256); images are 1,500 of 320 x 240"""

import argparse
import csv
import gzip
import io
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TREE / "tests" / "commands"))

import numpy as np  # noqa: E402
from data_folder import GENERATOR  # noqa: E402
from PIL import Image, ImageOps  # noqa: E402
from test_megatron import index_of  # noqa: E402


def seconds():
    """Of processors, of this process and of those that it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def here(folder, *words):
    """Seconds, and bytes of memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.Popen([GENERATOR, "data", *words], cwd=folder, stdout=subprocess.DEVNULL)
    most = 0
    while run.poll() is None:
        try:
            found = re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{run.pid}/status").read_text())
        except OSError:
            found = None
        most = max(most, int(found[1]) << 10) if found else most
        time.sleep(0.005)
    if run.returncode != 0:
        raise SystemExit(f"accel-gen data {words} ended with {run.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, most


def texts_of_lines(lines):
    for line in lines:
        json.loads(line)["text"].encode()


def read_jsonl(path):
    with open(path, "rb") as file:
        texts_of_lines(file)


def read_gzip(path):
    with gzip.open(path, "rb") as file:
        texts_of_lines(file)


def read_zstd(path):
    with subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE) as run:
        texts_of_lines(run.stdout)


def read_tar(path):
    with tarfile.open(path) as archive:
        for member in archive:
            archive.extractfile(member).read()


def read_csv(path):
    csv.field_size_limit(1 << 30)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            row["text"].encode()


def read_megatron(path):
    np.fromfile(path.with_suffix(".bin"), "<i4").astype("<u4").tofile(path.with_suffix(".out"))


def read_images(path):
    names = sorted(path.rglob("*.jpg"))
    for name in names:
        np.asarray(ImageOps.fit(Image.open(name).convert("RGB"), (64, 64), Image.BILINEAR)).transpose(2, 0, 1).tobytes()


def make_records(folder, size):
    words = ("the quick brown fox jumps over a lazy dog and " * 30)[:1200]
    with open(folder / "a.jsonl", "w") as lines, open(folder / "a.csv", "w", newline="") as table:
        rows = csv.writer(table)
        rows.writerow(["id", "text"])
        for i in range(size // 1300):
            text = f'{i * 2654435761 % 1000003} {words[i % 500:]} "{i}"'
            lines.write(json.dumps({"id": i, "text": text}) + "\n")
            rows.writerow([i, text])
    with tarfile.open(folder / "a.tar", "w") as archive:
        for i in range(size // 13000):
            member = tarfile.TarInfo(f"{i:06}.txt")
            content = (words[i % 500:] * 12).encode()[:12000]
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    for command in ("gzip -1k a.jsonl", "zstd -q1 a.jsonl"):
        subprocess.run(command, shell=True, cwd=folder, check=True)


def make_others(folder, size):
    count = size // 4
    np.random.default_rng(1).integers(0, 50000, count).astype("<i4").tofile(folder / "m.bin")
    (folder / "m.idx").write_bytes(index_of([[1000]] * (count // 1000) + [[count % 1000]], "i4", 4))
    small = np.random.default_rng(2).integers(0, 256, (1500, 24, 32, 3), dtype=np.uint8)
    for i, pixels in enumerate(small):
        path = folder / "images" / f"c{i % 3}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).resize((320, 240), Image.BICUBIC).save(path, quality=90)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=256)
    size = parser.parse_args().megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_records(folder, size)
        make_others(folder, size)
        field, column = ("-o", "o.tok", "--text-field", "text"), ("-o", "o.tok", "--text-column", "text")
        print(f"{'':12} {'MB':>6} {'MB/s':>8} {'peer':>8} {'ratio':>6} {'memory':>8}")
        for label, path, flags, peer, content in (("jsonl", "a.jsonl", field, read_jsonl, "a.jsonl"), ("jsonl.gz", "a.jsonl.gz", field, read_gzip, "a.jsonl"),
                                                  ("jsonl.zst", "a.jsonl.zst", field, read_zstd, "a.jsonl"), ("csv", "a.csv", column, read_csv, "a.csv"), ("tar", "a.tar", ("-o", "o.tok"), read_tar, "a.tar"),
                                                  ("megatron", "m.idx", ("-o", "o.tok", "--format", "megatron"), read_megatron, "m.bin"),
                                                  ("jpeg", "images", ("-o", "o.npy", "--size", "64"), read_images, None)):
            megabytes = (folder / content).stat().st_size / 1e6 if content else 1500 * 320 * 240 * 3 / 1e6
            ours, memory = here(folder, path, *flags)
            before = seconds()
            peer(folder / path)
            theirs = seconds() - before
            print(f"{label:12} {megabytes:6.0f} {megabytes / ours:8.0f} {megabytes / theirs:8.0f} {theirs / ours:6.2f} {memory / 1e6:6.0f} MB", flush=True)


main()
