"""A folder of a class that continues no text becomes a job, trains three steps, and what the run leaves opens with transformers' auto
classes: the program that evaluates and transformers have the same loss before and after, over tokens, spectrograms and labelled
texts. The same job without the folder leaves a folder, too. A run tries some of the configurations (rotation.py)."""

import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("program", "commands")]

from chats_made import CHATML_MARKED, tokenizer_of  # noqa: E402
from harness import GENERATOR  # noqa: E402
from job_text import load  # noqa: E402
from rotation import in_turn  # noqa: E402
from round_trips import save  # noqa: E402
from test_round_trip import OLDER, TEXT, run_in  # noqa: E402
from test_speech import samples  # noqa: E402

# Keys of which the class has no default, and which its code reads.
NOT_NAMED = {"decoder_start_token_id", "bos_token_id", "scale_decoder_outputs", "norm_rel_ebd", "position_buckets", "share_att_key",
             "attention_head_size", "conv_act", "conv_groups", "conv_kernel_size", "embedding_size"}
ROWS, LENGTH, SOURCE = 40, 7, 11
SENTENCE = "A folder is a job, and a page of keys is a model."
T5 = {"num_layers": 2, "num_heads": 2, "d_model": 16, "d_kv": 6, "d_ff": 20, "vocab_size": 600, "decoder_start_token_id": 0}
WHISPER = {"encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 3, "encoder_ffn_dim": 20,
           "decoder_ffn_dim": 12, "d_model": 24, "vocab_size": 600, "num_mel_bins": 4, "max_source_positions": 6, "max_target_positions": LENGTH,
           "pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 3, "decoder_start_token_id": 5, "init_std": 0.2}
BERT = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 600,
        "max_position_embeddings": SOURCE, "initializer_range": 0.3, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
DEBERTA = {**BERT, "relative_attention": True, "pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm", "position_buckets": 8,
           "share_att_key": True, "position_biased_input": False, "type_vocab_size": 0, "layer_norm_eps": 1e-7}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 16, "intermediate_size": 24,
         "vocab_size": 600, "initializer_range": 0.3, "num_labels": 1, "pad_token_id": 599}


def texts(rng, length, *before):
    """Tokens, of which most end in padding, and what marks them."""
    ends = rng.integers(1, length + 1, (ROWS, *before, 1))
    attends = np.arange(length) < ends
    return {"input_ids": np.where(attends, rng.integers(5, 590, attends.shape), 599).astype(np.int32), "attention_mask": attends.astype(np.float32)}


def of_texts(rng, config):
    return {**texts(rng, SOURCE), "token_type_ids": rng.integers(0, 2, (ROWS, SOURCE)).astype(np.int32)}


def window(_rng, _config):
    """One of tokens, and of those that follow them."""
    ids = np.array([tokenizer_of("llama3", TEXT, CHATML_MARKED)(SENTENCE).input_ids], np.int32)
    return {"tokens": ids[:, :-1], "targets": ids[:, 1:]}


def classified(rng, config):
    return {**of_texts(rng, config), "labels": rng.integers(0, config.num_labels, ROWS).astype(np.int32)}


def tagged(rng, config):
    return {**of_texts(rng, config), "labels": rng.integers(0, config.num_labels, (ROWS, SOURCE)).astype(np.int32)}


def marked(rng, config):
    return {**of_texts(rng, config), "labels": rng.integers(0, SOURCE, (ROWS, 2)).astype(np.int32)}


def plain(rng, config):
    return {key: value for key, value in classified(rng, config).items() if key != "token_type_ids"}


def compared(rng, _):
    return {**texts(rng, 16, 2), "labels": rng.integers(0, 2, ROWS).astype(np.int32)}


def their_loss(model, rows):
    rows = {key: torch.tensor(value) for key, value in rows.items()}
    names = {"tokens": "input_ids", "targets": "labels"}
    inputs = {names.get(key, key): value.long() if value.dtype == torch.int32 else value for key, value in rows.items()}
    if isinstance(model, transformers.LlamaForSequenceClassification):
        rewards = model(inputs["input_ids"].flatten(0, 1), attention_mask=inputs["attention_mask"].flatten(0, 1)).logits.reshape(-1, 2)
        return torch.nn.functional.cross_entropy(rewards, inputs["labels"])
    if isinstance(model, transformers.BertForQuestionAnswering):
        first, last = inputs.pop("labels").unbind(1)
        return model(**inputs, start_positions=first, end_positions=last).loss
    return model(**inputs).loss


# The auto class, rows, and three configurations; of T5 and Whisper tied and not.
CASES = {
    "T5ForConditionalGeneration": (transformers.AutoModelForSeq2SeqLM, window, [
        T5, {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 3},
        {**T5, "num_heads": 3, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 9, "num_layers": 1}]),
    "WhisperForConditionalGeneration": (transformers.AutoModelForSpeechSeq2Seq, lambda rng, config: samples(rng, config, LENGTH), [
        WHISPER, {**WHISPER, "tie_word_embeddings": False}, {**WHISPER, "d_model": 18, "num_mel_bins": 3, "encoder_layers": 2, "decoder_layers": 1}]),
    "BertForSequenceClassification": (transformers.AutoModelForSequenceClassification, classified, [
        {**BERT, "num_labels": 3}, {**BERT, "num_labels": 2, "type_vocab_size": 3}, {**BERT, "num_labels": 5, "num_hidden_layers": 1}]),
    "BertForTokenClassification": (transformers.AutoModelForTokenClassification, tagged, [
        {**BERT, "num_labels": 3}, {**BERT, "num_labels": 2, "layer_norm_eps": 1e-5}, {**BERT, "num_labels": 9, "intermediate_size": 10}]),
    "BertForQuestionAnswering": (transformers.AutoModelForQuestionAnswering, marked, [
        BERT, {**BERT, "num_attention_heads": 4}, {**BERT, "num_hidden_layers": 1, "type_vocab_size": 3}]),
    "DebertaV2ForSequenceClassification": (transformers.AutoModelForSequenceClassification, plain, [
        {**DEBERTA, "num_labels": 3}, {**DEBERTA, "num_labels": 2, "position_buckets": 4}, {**DEBERTA, "num_labels": 4, "share_att_key": False}]),
    "LlamaForSequenceClassification": (transformers.AutoModelForSequenceClassification, compared, [
        LLAMA, {**LLAMA, "head_dim": 6}, {**LLAMA, "num_key_value_heads": 1, "num_hidden_layers": 1}]),
}


class RoundTrip(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words):
        return run_in(self, self.folder, *words)

    def compare(self, auto, folder, rows, data):
        """The losses of the evaluator and of transformers with the same folder."""
        theirs, info = auto.from_pretrained(self.folder / folder, dtype=torch.float32, output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["mismatched_keys"] or info["unexpected_keys"], info)
        if theirs.config.pad_token_id is None:  # no config of a model says it
            theirs.config.pad_token_id = 599
        with torch.no_grad():
            wanted = their_loss(theirs.eval(), rows).item()
        found = json.loads(self.command("./evaluate", "--weights", folder, "--data", data, "--format", "json"))
        self.assertEqual(found["samples"], ROWS)  # of a file that has one, 40 times that
        self.assertLess(abs(found["loss"] / wanted - 1), 1e-5, folder)
        return theirs

    def train(self):
        self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
        self.command("./trainer")

    def job(self, rows):
        """A job of init over the rows, or over a text; and what the evaluator reads."""
        sets = {"training.steps": 3, "data.batch_size": 2, "optimizer.lr": 0.001, "checkpoint.project_dir": "run", "training.eval_iters": 1,
                "data.eval_batch_size": ROWS}
        data = "corpus.tok" if "tokens" in rows else "rows.npz"
        if "tokens" in rows:
            sets["data.sequence_length"] = rows["tokens"].shape[1]
            for name, text in (("corpus", TEXT), ("sentence", SENTENCE)):
                (self.folder / name).write_text(text)
                self.command(GENERATOR, "data", name, "-o", f"{name}.tok", "--tokenizer", "base/tokenizer.json")
        else:
            np.savez(self.folder / "rows.npz", **rows)
        self.command(GENERATOR, "init", "base", "--data", data, *[word for key, value in sets.items() for word in ("--set", f"{key}={value}")])
        self.command(GENERATOR, "plan", "job.yaml")
        return load((self.folder / "job.yaml").read_text()), "sentence.tok" if "tokens" in rows else data

    def save_processor(self, name):
        """The tokenizer; of Whisper what takes sounds and words, and the file of spellings that is with published ones."""
        tokenizer = tokenizer_of("llama3", TEXT, CHATML_MARKED)
        if name.startswith("Whisper"):
            tokenizer = transformers.WhisperProcessor(transformers.WhisperFeatureExtractor(feature_size=4),
                                                      transformers.WhisperTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer))
            (self.folder / "base" / "normalizer.json").write_text("{}")
        tokenizer.save_pretrained(self.folder / "base")

    def check(self, name, number, numbers):
        kind, (auto, make, configs) = getattr(transformers, name), CASES[name]
        torch.manual_seed(7 + number)
        save(kind, configs[number], number, self.folder / "base")
        self.save_processor(name)
        rows = make(numbers, kind.config_class(**configs[number]))
        job, data = self.job(rows)
        self.command(GENERATOR, "build", "job.yaml", "--program", "evaluate", "-o", "evaluate")
        before = self.compare(auto, "base", rows, data)
        self.train()
        after = self.compare(auto, "run", rows, data)
        self.assertTrue(any(not torch.equal(a, b) for a, b in zip(before.parameters(), after.parameters())))
        ids = [transformers.AutoTokenizer.from_pretrained(self.folder / folder)("a page of keys").input_ids for folder in ("base", "run")]
        self.assertEqual(*ids)
        if name.startswith("Whisper"):
            processor = transformers.AutoProcessor.from_pretrained(self.folder / "run")
            self.assertEqual((type(processor).__name__, processor.feature_extractor.feature_size), ("WhisperProcessor", 4))
            self.assertEqual((self.folder / "run" / "normalizer.json").read_text(), "{}")
        self.check_no_folder(auto, kind, job, rows, data)

    def check_no_folder(self, auto, kind, job, rows, data):
        job["model"] = {key: job["model"][key] for key in ("source", "config")}
        del job["checkpoint"]["folder_of"]
        shutil.rmtree(self.folder / "run")
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.train()
        self.assertIs(type(self.compare(auto, "run", rows, data)), kind)
        written = json.loads((self.folder / "run" / "config.json").read_text())
        known = set(dir(kind.config_class())) | NOT_NAMED
        self.assertEqual(set(written) - OLDER - known, set())

    def test_families(self):
        cases = [(name, number) for number in range(3) for name in CASES]
        for name, number in in_turn(cases, len(cases) // 2):
            for made in self.folder.glob("*"):
                shutil.rmtree(made) if made.is_dir() else made.unlink()
            with self.subTest(family=name, number=number):
                self.check(name, number, np.random.default_rng(number))
                print(name, number, "round trip", flush=True)


if __name__ == "__main__":
    unittest.main()
