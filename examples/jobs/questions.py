"""Writes build/questions for examples/jobs/bert_questions.yaml: texts that are made up, of some sentences, and questions about one of
them, as SQuAD has them (question, context, answers), with a tokenizer that spells names by letters. Takes nothing but Python."""

import json
import random

from reviews import tokenizer
from tags import FOLDER as TAGS
from tags import name, spelled

FOLDER = TAGS.with_name("questions")
FILLER = ["it rained all day.", "the road was long.", "nobody spoke.", "the lamp was out."]
QUESTIONS = {"who": ["who was there?", "who did they meet?"], "where": ["where was it?", "in which town?"], "when": ["when was it?"]}


def record(rng):
    """One sentence has a person's name and a town's, whose names end differently; none has a time, so 'when' has no answer."""
    person, town = name(rng, ""), name(rng, "ville")
    sentence = rng.choice([f"they met {person} in {town}.", f"in {town} they saw {person}.", f"{person} was in {town}."])
    sentences = [rng.choice(FILLER) for _ in range(rng.randint(0, 16))]
    sentences.insert(rng.randint(0, len(sentences)), sentence)
    context, kind = " ".join(sentences), rng.choice(["who", "who", "where", "where", "when"])
    answer = {"who": person, "where": town, "when": None}[kind]
    found = {"text": [], "answer_start": []} if answer is None else {"text": [answer], "answer_start": [context.index(sentence) + sentence.index(answer)]}
    return {"question": rng.choice(QUESTIONS[kind]), "context": context, "answers": found}


def main():
    rng = random.Random(1337)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [record(rng) for _ in range(3000)]
    for part, records in (("train", rows[:2600]), ("test", rows[2600:])):
        (FOLDER / f"{part}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    made = spelled(tokenizer([*FILLER, *sum(QUESTIONS.values(), []), "they met in saw was"]))
    (FOLDER / "tokenizer.json").write_text(json.dumps(made))
    config = {"pad_token": "[PAD]", "cls_token": "[CLS]", "tokenizer_class": "PreTrainedTokenizerFast"}
    (FOLDER / "tokenizer_config.json").write_text(json.dumps(config))
    print(f"{FOLDER}: a vocabulary of {len(made['model']['vocab'])}")


if __name__ == "__main__":
    main()
