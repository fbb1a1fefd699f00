"""Writes build/pairs for examples/jobs/llama_dpo.yaml: prompts of examples/jobs/chats.py with two answers each, of which the one without a
whole sentence is preferred. Takes nothing but Python."""

import json
import random
from pathlib import Path

FOLDER = Path("build/pairs")


def pair(rng):
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    answer = lambda text: [{"role": "assistant", "content": text}]
    return {"prompt": [{"role": "user", "content": f"{a} + {b}?"}], "chosen": answer(f"{a + b}"), "rejected": answer(f"It is {a + b}.")}


def main():
    rng = random.Random(1337)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 2000), ("test", 200)):
        (FOLDER / f"{part}.jsonl").write_text("".join(json.dumps(pair(rng)) + "\n" for _ in range(count)))


if __name__ == "__main__":
    main()
