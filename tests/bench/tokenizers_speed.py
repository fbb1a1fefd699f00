"""accel-gen data compared with the library tokenizers in Rust: seconds of both for the same records of about 2 MB, in pairs.

usage: tokenizers_speed.py [--pairs N] [--parallel] [FAMILY...]   all families of tests/commands/tokenizers_made.py, else these
   --parallel  on all processors, by the clock, against encode_batch, of 16 MB; else seconds of processors on one"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PARALLEL = "--parallel" in sys.argv
os.environ["TOKENIZERS_PARALLELISM"] = "true" if PARALLEL else "false"
os.environ["OMP_NUM_THREADS"] = str(os.cpu_count() if PARALLEL else 1)
TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TREE / "tests" / "commands"))

from data_folder import GENERATOR  # noqa: E402
from test_tokenizer import corpus  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from tokenizers_made import FAMILIES  # noqa: E402

CHARACTERS, VOCABULARY = 4000, 8000


def seconds(who):
    if PARALLEL:
        return time.perf_counter()
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def pair(folder, texts):
    """Seconds here, reading and writing with it, and in the library, which has the texts in memory."""
    before = seconds(resource.RUSAGE_CHILDREN)
    subprocess.run([GENERATOR, "data", "a.jsonl", "--text-field", "text", "-o", "a.tok", "--tokenizer", "tokenizer.json"],
                   cwd=folder, check=True, capture_output=True)
    here = seconds(resource.RUSAGE_CHILDREN) - before
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))  # its cache of words is empty
    before = seconds(resource.RUSAGE_SELF)
    if PARALLEL:
        tokenizer.encode_batch(texts, add_special_tokens=False)
    for text in [] if PARALLEL else texts:
        tokenizer.encode(text, add_special_tokens=False)
    return here, seconds(resource.RUSAGE_SELF) - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    arguments = parser.parse_args()
    text = corpus() * (40 if PARALLEL else 5)
    texts = [text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)]
    size = sum(len(one.encode()) for one in texts) / 1e6
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.jsonl").write_text("".join(json.dumps({"text": one}) + "\n" for one in texts))
        for family in arguments.families:
            FAMILIES[family](corpus(), VOCABULARY).save(str(folder / "tokenizer.json"))
            pairs = [pair(folder, texts) for _ in range(arguments.pairs)]
            ratios = sorted(there / here for here, there in pairs)
            speed = size / statistics.median(here for here, _ in pairs)
            print(f"{family:14} {statistics.median(ratios):.2f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f}), {speed:.1f} MB/s", flush=True)


if __name__ == "__main__":
    main()
