"""Writes build/tags for examples/jobs/bert_tagger.yaml: sentences that are made up, with a tag for each word that says whether it is of a
person's name or of a town's, and a tokenizer that spells names by letters. Takes nothing but Python."""

import json
import pathlib
import random
import string

from reviews import tokenizer

FOLDER = pathlib.Path("build/tags")
FRAMES = ["P lives in T", "in T we met P", "P wrote to P from T", "T is far from T", "nobody in T knows P"]
WORDS = [word for frame in FRAMES for word in frame.split() if word not in "PT"]


def name(rng, ending):
    return "".join(rng.choice("bdfklmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 3))) + ending


def sentence(rng):
    """A person has one name or two; names of towns end differently."""
    tokens, tags = [], []
    for word in rng.choice(FRAMES).split():
        kind = {"P": "PER", "T": "LOC"}.get(word)
        names = [word] if kind is None else [name(rng, "" if kind == "PER" else "ville") for _ in range(rng.randint(1, 2) if kind == "PER" else 1)]
        tokens += names
        tags += ["O"] if kind is None else [f"{'B' if i == 0 else 'I'}-{kind}" for i in range(len(names))]
    return {"tokens": tokens, "tags": tags}


def spelled(made):
    """A tokenizer with the letters of names."""
    vocabulary = made["model"]["vocab"]
    for piece in [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase), "##ville"]:
        vocabulary.setdefault(piece, len(vocabulary))
    return made


def main():
    rng = random.Random(1337)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [sentence(rng) for _ in range(2000)]
    for part, records in (("train", rows[:1600]), ("test", rows[1600:])):
        (FOLDER / f"{part}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    made = spelled(tokenizer([" ".join(WORDS)]))
    (FOLDER / "tokenizer.json").write_text(json.dumps(made))
    (FOLDER / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "tokenizer_class": "PreTrainedTokenizerFast"}))
    print(f"{FOLDER}: a vocabulary of {len(made['model']['vocab'])}")


if __name__ == "__main__":
    main()
