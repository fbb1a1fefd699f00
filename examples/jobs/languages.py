"""Writes the table that examples/jobs/bert_classifier.yaml trains on: 64 bytes of a row of this project's own files, each a
token from 1 on with 0 for padding, and what they are: 0 text, 1 C, 2 Python, 3 templates."""

import pathlib
import random

TREE = pathlib.Path(__file__).resolve().parents[2]
KINDS = ["docs/*.md", "gen/*/*.c", "tests/*/*.py", "templates/*/*.j2"]
WIDTH, EACH = 64, 1500

pick = random.Random(1)
rows = []
for label, pattern in enumerate(KINDS):
    text = b"".join(path.read_bytes() for path in sorted(TREE.glob(pattern)))
    for _ in range(EACH):
        at = pick.randrange(len(text) - WIDTH)
        part = text[at : at + pick.randint(WIDTH // 2, WIDTH)]
        rows.append([byte + 1 for byte in part] + [0] * (WIDTH - len(part)) + [label])
pick.shuffle(rows)
for row in rows:
    print(*row, sep=",")
