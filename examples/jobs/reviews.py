"""Writes build/reviews for examples/jobs/bert_classifier.yaml: reviews that are made up, with a title, a text and stars, and a
tokenizer of BERT's kind whose words are those that occur. Takes nothing but Python."""

import csv
import json
import pathlib
import random
import re

FOLDER = pathlib.Path("build/reviews")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
THINGS = ["kettle", "lamp", "chair", "radio", "knife", "tent", "pan", "clock"]
OPINIONS = {"bad": ["broke at once", "never worked", "smells", "came too late", "is far too loud"],
            "fair": ["does its job", "is what it says", "works, more or less", "is not worth more"],
            "good": ["is a joy", "works like new", "is worth every cent", "made my day", "never fails"]}


def review(rng):
    """Of ten, one has stars by chance."""
    opinion = rng.choice(sorted(OPINIONS))
    stars = opinion if rng.random() < 0.9 else rng.choice(sorted(OPINIONS))
    thing = rng.choice(THINGS)
    said = [rng.choice(OPINIONS[opinion]) for _ in range(rng.randint(1, 3))]
    title = rng.choice([f"The {thing}", f"A {thing}, after a month", f'My new "{thing}"'])
    return [title, ". ".join(f"It {one}" for one in said) + ".", stars]


def tokenizer(texts):
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    numbers = {word: i for i, word in enumerate([*SPECIAL, *words])}
    added = [{"id": i, "content": text, "special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
             for i, text in enumerate(SPECIAL)]
    piece = lambda name, segment: {"Sequence" if len(name) == 1 else "SpecialToken": {"id": name, "type_id": segment}}
    single = [piece("[CLS]", 0), piece("A", 0), piece("[SEP]", 0)]
    known = {name: {"id": name, "ids": [numbers[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [*single, piece("B", 1), piece("[SEP]", 1)],
                               "special_tokens": known},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": numbers}}


def main():
    rng = random.Random(1337)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [review(rng) for _ in range(2000)]
    for name, part in (("train", rows[:1600]), ("test", rows[1600:])):
        with open(FOLDER / f"{name}.csv", "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([["title", "review", "stars"], *part])
    made = tokenizer(text for row in rows for text in row[:2])
    (FOLDER / "tokenizer.json").write_text(json.dumps(made))
    (FOLDER / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "tokenizer_class": "PreTrainedTokenizerFast"}))
    print(f"{FOLDER}: a vocabulary of {len(made['model']['vocab'])}")


if __name__ == "__main__":
    main()
