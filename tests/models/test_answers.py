"""Answers to questions from SQuAD's records to transformers and back: the rows of accel-gen data fine-tune a folder of Hugging Face, whose
AutoModelForQuestionAnswering then gives the loss and the spans that the metrics count."""

import json
import random
import shutil
import subprocess
import sys
import unittest

import numpy as np
import torch
from peer import GENERATOR, MODELS, Trainer
from transformers import AutoModelForQuestionAnswering, AutoTokenizer, BertConfig, BertForQuestionAnswering

sys.path.insert(0, str(MODELS.parents[1] / "examples" / "jobs"))

import questions  # noqa: E402

LENGTH, STRIDE = 40, 8


def f1(predicted, label):
    """The F1 score of SQuAD's evaluate-v1.1.py, of positions in place of words."""
    predicted, label = (set(range(a, b + 1)) for a, b in (predicted, label))
    common = len(predicted & label)
    return 2 * common / (len(predicted) + len(label)) if common else 0


class Answers(unittest.TestCase):
    def test_there_and_back(self):
        rng, rows, shape = random.Random(1), {"dtype": "int32"}, {"shape": [LENGTH]}
        made = questions.spelled(questions.tokenizer([*questions.FILLER, *sum(questions.QUESTIONS.values(), []), "they met in saw was"]))
        same = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64,
                "vocab_size": len(made["model"]["vocab"]), "max_position_embeddings": LENGTH}
        trainer = Trainer({
            "model": {"source": str(MODELS / "bert_questions.c"), "weights": "start", "config": same},
            "data": {"train": {"path": "rows.npz", "format": "npz"}, "eval": {"path": "rows.npz", "format": "npz"}, "batch_size": 8,
                     "inputs": {"input_ids": {**shape, **rows}, "attention_mask": shape, "token_type_ids": {**shape, **rows},
                                "labels": {"shape": [2], **rows}}},
            "optimizer": {"name": "adamw", "lr": 3e-3}, "checkpoint": {"folder_of": "start"},
            "training": {"steps": 60, "eval_interval": 60, "eval_iters": "all", "metrics": ["exact_match", "token_f1"]}})
        folder, start = trainer.folder, trainer.folder / "start"
        self.addCleanup(shutil.rmtree, folder)
        torch.manual_seed(1)
        BertForQuestionAnswering(BertConfig(**same, initializer_range=0.05)).save_pretrained(start)
        (start / "tokenizer.json").write_text(json.dumps(made))
        (start / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "cls_token": "[CLS]", "tokenizer_class": "PreTrainedTokenizerFast"}))
        records = [questions.record(rng) for _ in range(60)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        trainer.command("data", "rows.jsonl", "-o", "rows.npz", "--tokenizer", "start/tokenizer.json", "--task", "question-answering", "--text-field",
                        "question", "--text-pair", "context", "--label", "answers", "--max-length", str(LENGTH), "--doc-stride", str(STRIDE))
        trainer.build()
        last = trainer.run()[-1]
        model, info = AutoModelForQuestionAnswering.from_pretrained(folder / "run", output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["unexpected_keys"])
        batch = AutoTokenizer.from_pretrained(folder / "run")(
            [record["question"] for record in records], [record["context"] for record in records], truncation="only_second", max_length=LENGTH,
            stride=STRIDE, return_overflowing_tokens=True, padding="max_length", return_token_type_ids=True, return_tensors="pt")
        self.assertGreater(len(batch.pop("overflow_to_sample_mapping")), len(records))
        labels = torch.tensor(np.load(folder / "rows.npz")["labels"].astype("int64"))
        with torch.no_grad():
            out = model.eval()(**batch, start_positions=labels[:, 0], end_positions=labels[:, 1])
        guess = torch.stack([out.start_logits.argmax(1), out.end_logits.argmax(1)], 1)
        self.assertLess(abs(last["eval_loss"] / out.loss.item() - 1), 1e-5)
        self.assertLess(abs(last["eval_exact_match"] - (guess == labels).all(1).float().mean().item()), 1e-6)
        self.assertLess(abs(last["eval_token_f1"] - np.mean([f1(*pair) for pair in zip(guess.tolist(), labels.tolist())])), 1e-6)
        subprocess.run([GENERATOR, "build", trainer.path, "-o", folder / "evaluate", "--program", "evaluate"], check=True)
        said = json.loads(subprocess.check_output([folder / "evaluate", "--format", "json"], cwd=folder))
        for metric in ("loss", "exact_match", "token_f1"):
            self.assertLess(abs(said[metric] - last[f"eval_{metric}"]), 1e-6)


if __name__ == "__main__":
    unittest.main()
