"""examples/models/bert.c, roberta.c, distilbert.c, albert.c, vit.c and t5.c against their classes of transformers. Half of
the tests a run (rotation.py)."""

import io
import subprocess
import unittest

import numpy as np
import torch
from peer import GENERATOR, MODELS, TRAIN, Images, Order, Text, Trainer, masked, drawn
from rotation import rotating
from transformers import (AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM, BertForQuestionAnswering, BertForSequenceClassification,
                          BertForTokenClassification, DebertaV2Config,
                          DebertaV2ForSequenceClassification, DistilBertConfig,
                          DistilBertForMaskedLM, RobertaConfig, RobertaForMaskedLM, T5Config, T5ForConditionalGeneration, ViTConfig,
                          ViTForImageClassification)


class Bert(Text):
    @drawn
    def test_bert(self):
        heads, length = self.random.randint(1, 3), self.random.randint(3, 30)
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * self.random.randint(8, 16),
                "intermediate_size": self.random.randint(20, 60), "vocab_size": 256, "max_position_embeddings": length + 2}
        self.causal("bert.c", BertForMaskedLM(BertConfig(**same, initializer_range=0.1, pad_token_id=None)), same, length)


    def test_bert_masked(self):
        """Masked language modelling as it is meant: targets and hidden tokens of data.masking."""
        how = {"mask_token": 7, "probability": 0.3, "random": 0.25, "keep": 0.125}
        same = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 24, "intermediate_size": 32, "vocab_size": 256,
                "max_position_embeddings": 21}
        data, batches = self.text(21)
        data["masking"] = how

        def hidden(n):
            rows = [masked(1, TRAIN, n * self.BATCH + i, row.tolist(), 256, **how) for i, row in enumerate(batches(n)[0])]
            return [torch.tensor(x) for x in zip(*rows)]

        self.check("bert.c", BertForMaskedLM(BertConfig(**same, initializer_range=0.1, pad_token_id=None)), same, data, hidden,
                   lambda model, tokens, targets: model(input_ids=tokens, labels=targets).loss)


    def test_bert_padded(self):
        """Nobody attends to padding: byte 3 here, as often as it comes; but where all is padding, to all alike."""
        same = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 24, "intermediate_size": 32, "vocab_size": 256,
                "max_position_embeddings": 21}
        data, rows = self.text(21, padding=3)
        theirs = BertForMaskedLM(BertConfig(**same, initializer_range=0.1, pad_token_id=None,  # no padding_idx: its row learns, too
                                            attn_implementation="eager"))
        self.check("bert.c", theirs, {**same, "pad_token_id": 3}, data, rows, lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens, attention_mask=(tokens != 3).long()).logits.flatten(0, 1), targets.flatten()))

    def test_mask_token_is_in_the_vocabulary(self):
        data, _ = self.text(5)
        trainer = Trainer({"model": {"source": str(MODELS / "bert.c"), "config": {
            "num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 4, "intermediate_size": 4, "vocab_size": 256}},
            "data": {**{k: v for k, v in data.items() if k != "files"}, "masking": {"mask_token": 256}}, "training": {"steps": 1}})
        said = subprocess.run([GENERATOR, "plan", trainer.path], capture_output=True, text=True).stderr
        self.assertIn("error: 'mask_token' is 256, which is not below the model's vocabulary of 256", said)


class BertLike(Text):
    """Encoders that differ from BERT. Some bytes are padding, which transformers would give no gradient."""

    PAD = 3

    def padded(self, source, theirs, config, length):
        for module in theirs.modules():
            if isinstance(module, torch.nn.Embedding):
                module.padding_idx = None
        theirs.set_attn_implementation("eager")
        data, rows = self.text(length, padding=self.PAD)
        self.check(source, theirs, config, data, rows, lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens, attention_mask=(tokens != self.PAD).long()).logits.flatten(0, 1), targets.flatten()))

    def shape(self):
        heads = self.random.randint(1, 3)
        return {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * self.random.randint(8, 16),
                "intermediate_size": self.random.randint(20, 60), "vocab_size": 256}

    @drawn
    def test_roberta(self):
        length = self.random.randint(3, 30)
        same = {**self.shape(), "max_position_embeddings": length + 9, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
                "pad_token_id": self.PAD}
        theirs = RobertaForMaskedLM(RobertaConfig(**same, initializer_range=0.1))
        self.padded("roberta.c", theirs, same, length)

    @drawn
    def test_distilbert(self):
        same, length = self.shape(), self.random.randint(3, 30)
        same = {"n_layers": same["num_hidden_layers"], "n_heads": same["num_attention_heads"], "dim": same["hidden_size"],
                "hidden_dim": same["intermediate_size"], "vocab_size": 256, "max_position_embeddings": length + 2}
        padded = self.random.choice([True, False])
        theirs = DistilBertForMaskedLM(DistilBertConfig(**same, initializer_range=0.1, pad_token_id=self.PAD if padded else None))
        if padded:
            self.padded("distilbert.c", theirs, {**same, "pad_token_id": self.PAD}, length)
        else:
            self.causal("distilbert.c", theirs, same, length)

    @drawn
    def test_albert(self):
        """Layers use the weights of their group; a group has more than one."""
        length, padded = self.random.randint(3, 30), self.random.choice([True, False])
        same = {**self.shape(), "num_hidden_layers": 4, "num_hidden_groups": self.random.choice([1, 2]),
                "inner_group_num": self.random.choice([1, 2]), "embedding_size": self.random.randint(5, 20),
                "max_position_embeddings": length + 2}
        theirs = AlbertForMaskedLM(AlbertConfig(**same, initializer_range=0.1, pad_token_id=self.PAD if padded else None))
        if padded:
            self.padded("albert.c", theirs, {**same, "pad_token_id": self.PAD}, length)
        else:
            self.causal("albert.c", theirs, same, length)


class BertClassifier(Images):
    def classify(self, labels, outputs, problem_type):
        """Pairs of segments of which most end in padding; the loss that their class takes by its problem_type."""
        heads, length = self.random.randint(1, 3), self.random.randint(3, 20)
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * self.random.randint(4, 12),
                "intermediate_size": self.random.randint(5, 40), "vocab_size": self.random.randint(30, 90),
                "max_position_embeddings": length + 2}
        rng = np.random.default_rng(self.random.randrange(2**32))
        labels = labels(rng)
        at = np.arange(length)
        arrays = {"input_ids": rng.integers(0, same["vocab_size"], (60, length)).astype("int32"),
                  "attention_mask": (at < rng.integers(1, length + 1, 60)[:, None]).astype("uint8"),
                  "token_type_ids": (at >= rng.integers(1, length + 1, 60)[:, None]).astype("uint8"), "labels": labels}
        file = io.BytesIO()
        np.savez(file, **arrays)
        shape = {"shape": [length]}
        inputs = {"input_ids": {**shape, "dtype": "int32"}, "attention_mask": shape, "token_type_ids": {**shape, "dtype": "int32"},
                  "labels": {**({"shape": [outputs]} if labels.ndim > 1 else {}), **({"dtype": "int32"} if labels.dtype == np.int32 else {})}}
        order = Order(1, TRAIN, True, 0, 60)
        data = {"train": {"path": "rows.npz", "format": "npz"}, "inputs": inputs, "batch_size": self.BATCH, "eval_fraction": 0,
                "files": {"rows.npz": file.getvalue()}}
        theirs = BertForSequenceClassification(BertConfig(**same, num_labels=outputs, problem_type=problem_type, initializer_range=0.1,
                                                          pad_token_id=None))

        def batch(n):
            chosen = [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
            return [torch.tensor(arrays[name][chosen].astype("float32" if arrays[name].dtype == np.float32 else "int64")) for name in arrays]

        self.check("bert_classifier.c", theirs, {**same, "num_labels": outputs}, data, batch,
                   lambda model, ids, mask, types, labels: model(ids, attention_mask=mask, token_type_ids=types, labels=labels).loss)

    def deberta(self, length, **more):
        """Rows of which most end in padding, longer and shorter than buckets of distances."""
        heads = self.random.randint(1, 3)
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * self.random.randint(4, 12),
                "intermediate_size": self.random.randint(5, 40), "vocab_size": self.random.randint(30, 90),
                "position_biased_input": self.random.choice([True, False]), "share_att_key": self.random.choice([True, False]),
                "norm_rel_ebd": self.random.choice(["none", "layer_norm"]), "conv_kernel_size": self.random.choice([0, 3]),
                "max_position_embeddings": length + 2, **more}
        theirs = DebertaV2ForSequenceClassification(DebertaV2Config(
            **same, conv_act="gelu", relative_attention=True, pos_att_type=["c2p", "p2c"], type_vocab_size=0, num_labels=3,
            initializer_range=0.2, pad_token_id=None))
        rng = np.random.default_rng(self.random.randrange(2**32))
        arrays = {"input_ids": rng.integers(0, same["vocab_size"], (60, length)).astype("int32"),
                  "attention_mask": (np.arange(length) < rng.integers(1, length + 1, 60)[:, None]).astype("uint8"),
                  "labels": rng.integers(0, 3, 60).astype("int32")}
        file = io.BytesIO()
        np.savez(file, **arrays)
        inputs = {"input_ids": {"shape": [length], "dtype": "int32"}, "attention_mask": {"shape": [length]}, "labels": {"dtype": "int32"}}
        order = Order(1, TRAIN, True, 0, 60)
        data = {"train": {"path": "rows.npz", "format": "npz"}, "inputs": inputs, "batch_size": self.BATCH, "eval_fraction": 0,
                "files": {"rows.npz": file.getvalue()}}

        def batch(n):
            chosen = [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
            return [torch.tensor(arrays[name][chosen].astype("int64")) for name in arrays]

        ours = {**same, "num_labels": 3, "norm_rel_ebd": f"NORM_REL_{same['norm_rel_ebd'].upper()}"}
        self.check("deberta_v2.c", theirs, ours, data, batch,
                   lambda model, ids, mask, labels: torch.nn.functional.cross_entropy(model(ids, attention_mask=mask).logits, labels))

    @drawn
    def test_deberta_v2(self):
        self.deberta(self.random.randint(3, 20))

    def test_deberta_v2_buckets(self):
        self.deberta(40, position_buckets=8, max_relative_positions=24)

    def test_bert_tagger(self):
        self.first = False
        length = 9
        same = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 12, "intermediate_size": 20, "vocab_size": 40,
                "max_position_embeddings": length}
        rng = np.random.default_rng(self.random.randrange(2**32))
        ids, mask = rng.integers(0, 40, (60, length)), (np.arange(length) < rng.integers(2, length + 1, 60)[:, None]).astype("int64")
        labels = np.where((mask == 1) & (rng.random((60, length)) < 0.7), rng.integers(0, 4, (60, length)), -100)
        labels[:, 0] = 1
        file = io.BytesIO()
        np.savez(file, input_ids=ids.astype("int32"), attention_mask=mask.astype("uint8"), token_type_ids=np.zeros((60, length), "uint8"),
                 labels=labels.astype("int32"))
        shape = {"shape": [length]}
        data = {"train": {"path": "rows.npz", "format": "npz"}, "batch_size": self.BATCH, "eval_fraction": 0, "files": {"rows.npz": file.getvalue()},
                "inputs": {"input_ids": {**shape, "dtype": "int32"}, "attention_mask": shape, "token_type_ids": {**shape, "dtype": "int32"},
                           "labels": {**shape, "dtype": "int32"}}}
        theirs = BertForTokenClassification(BertConfig(**same, num_labels=4, initializer_range=0.1, pad_token_id=None))
        order = Order(1, TRAIN, True, 0, 60)

        def batch(n):
            chosen = [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
            return [torch.tensor(array[chosen]) for array in (ids, mask, labels)]

        self.check("bert_tagger.c", theirs, {**same, "num_labels": 4}, data, batch,
                   lambda model, ids, mask, labels: model(ids, attention_mask=mask, labels=labels).loss)

    def test_bert_questions(self):
        length = 9
        same = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 12, "intermediate_size": 20, "vocab_size": 40,
                "max_position_embeddings": length}
        rng = np.random.default_rng(self.random.randrange(2**32))
        ids, mask = rng.integers(0, 40, (60, length)), (np.arange(length) < rng.integers(4, length + 1, 60)[:, None]).astype("int64")
        types, labels = (np.arange(length) >= rng.integers(1, 5, 60)[:, None]).astype("int64"), np.sort(rng.integers(0, 4, (60, 2)), 1)
        file = io.BytesIO()
        np.savez(file, input_ids=ids.astype("int32"), attention_mask=mask.astype("uint8"), token_type_ids=types.astype("uint8"),
                 labels=labels.astype("int32"))
        shape = {"shape": [length]}
        data = {"train": {"path": "rows.npz", "format": "npz"}, "batch_size": self.BATCH, "eval_fraction": 0, "files": {"rows.npz": file.getvalue()},
                "inputs": {"input_ids": {**shape, "dtype": "int32"}, "attention_mask": shape, "token_type_ids": {**shape, "dtype": "int32"},
                           "labels": {"shape": [2], "dtype": "int32"}}}
        theirs = BertForQuestionAnswering(BertConfig(**same, initializer_range=0.1, pad_token_id=None))
        order = Order(1, TRAIN, True, 0, 60)

        def batch(n):
            chosen = [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
            return [torch.tensor(array[chosen]) for array in (ids, mask, types, labels[:, 0], labels[:, 1])]

        self.check("bert_questions.c", theirs, same, data, batch, lambda model, ids, mask, types, begins, ends: model(
            ids, attention_mask=mask, token_type_ids=types, start_positions=begins, end_positions=ends).loss)

    @drawn
    def test_bert_classifier(self):
        classes = self.random.randint(2, 5)
        self.classify(lambda rng: rng.integers(0, classes, 60).astype("int32"), classes, "single_label_classification")

    def test_bert_values(self):
        self.first = False
        self.classify(lambda rng: rng.standard_normal(60).astype("float32"), 1, "regression")

    def test_bert_several_labels(self):
        self.first = False
        self.classify(lambda rng: rng.integers(0, 2, (60, 4)).astype("float32"), 4, "multi_label_classification")


class Vit(Images):
    @drawn
    def test_vit(self):
        heads, patch, along = self.random.randint(1, 3), self.random.randint(2, 4), self.random.randint(2, 3)
        channels, classes = self.random.randint(1, 3), 4
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * self.random.randint(4, 12),
                "intermediate_size": self.random.randint(5, 40), "image_size": patch * along, "patch_size": patch,
                "num_channels": channels}
        theirs = ViTForImageClassification(ViTConfig(**same, num_labels=classes, initializer_range=0.1))
        self.classifier("vit.c", theirs, {**same, "num_labels": classes}, channels, patch * along, classes)


class T5(Text):
    def compare(self, length, gated):
        same = {"num_layers": 2, "num_decoder_layers": 2, "num_heads": self.random.randint(1, 3), "d_model": self.random.randint(5, 30),
                "d_kv": self.random.randint(3, 12), "d_ff": self.random.randint(5, 40), "vocab_size": 256}
        theirs = T5ForConditionalGeneration(T5Config(
            **same, feed_forward_proj="gated-gelu" if gated else "relu", decoder_start_token_id=0, initializer_factor=0.3))
        data, batches = self.text(length)
        self.check("t5.c", theirs, {**same, "gated": gated}, data, batches,
                   lambda model, tokens, targets: model(input_ids=tokens, labels=targets).loss)

    @drawn
    def test_t5(self):
        self.compare(self.random.randint(3, 30), False)

    def test_t5_gated_far(self):
        self.compare(140, True)


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
