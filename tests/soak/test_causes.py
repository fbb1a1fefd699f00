"""What draws of tests/soak have found, a small case for each cause: it works now, as test_soak.py holds it, or is refused."""

import pathlib
import re
import tempfile
import unittest

from jobs import models
from trial import Refused, Trial, write_data
from rotation import rotating  # tests/program; isort: skip

BASE = {"model.source": "model.c", "checkpoint.project_dir": "run", "checkpoint.every": 1, "tracking.every": 1, "data.batch_size": 3,
        "training.steps": 3}
TOKENS = {**BASE, "data.train.path": "corpus.txt", "data.train.format": "bytes", "data.sequence_length": 4}
ROWS = {**BASE, "data.train.path": "rows.csv", "data.train.format": "csv", "data.features": models.FEATURES}


class Text:
    """A model as models.Model gives it."""

    def __init__(self, text, domain):
        self.source, self.domain = "#include <accel/model.h>\n" + text, domain
        self.config, self.steps, self.predicts = {}, 4, "tensor predict(" in text

    def text(self):
        return self.source


class Causes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="accel-causes-")
        cls.folder = pathlib.Path(cls.holder.name)
        write_data(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def works(self, model, job, *counted, **words):
        """A trial holds, and has come as far as these."""
        domain = "tokens" if job["data.train.format"] in ("bytes", "tokens") else "rows"
        trial = Trial(Text(model, domain), {**job, **{key.replace("__", "."): there for key, there in words.items()}}, self.folder)
        trial.run()
        for name in counted or ("run", "resumed"):
            self.assertGreater(trial.counts[name], 0, name)

    def refused(self, message, model, job, **words):
        with self.assertRaises(Refused) as caught:
            self.works(model, job, **words)
        self.assertTrue(caught.exception.placed)
        self.assertRegex(caught.exception.said, re.compile(message, re.M))

    def test_packed_evaluation(self):
        """The evaluator leaves out the last token of each document, as the trainer does."""
        self.works("""tensor model(scope s, tensor tokens, tensor targets) {
  return cross_entropy(linear(at(s, "out"), embedding(at(s, "in"), tokens, 256, 5), 256), targets);
}
""", TOKENS, "evaluated", data__train__path="all.tok", data__train__format="tokens", data__packing="documents",
                   training__eval_interval=1)

    def test_profile_of_updates_in_the_backward(self):
        """A rule that updates within the backward is one of a profile's parts."""
        for name in ("lomo", "adalomo"):
            self.works("""tensor model(scope s, tensor features, tensor labels) {
  return mse_loss(linear(at(s, "out"), features, 1), reshape(cast_float(labels), dim(labels, 0), 1));
}
""", ROWS, optimizer__name=name, profile__schedule__active=1)

    def test_scope_given_twice(self):
        """One kernel makes gradients of operands that are one weight in one call, and three in another."""
        self.works("""static tensor mixed(scope s, scope t, scope u, tensor x) {
  tensor q = parameter(s, "w", 1, 1, 4, 2), k = parameter(t, "w", 1, 1, 4, 2), v = parameter(u, "w", 1, 1, 4, 2);
  return mul(x, reshape(attention(q, k, v, CAUSAL), 4, 2));
}
tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "in"), tokens, 256, 2);
  x = mixed(at(s, "a"), at(s, "a"), at(s, "a"), x);
  x = mixed(at(s, "b"), at(s, "c"), at(s, "d"), x);
  return cross_entropy(linear(at(s, "out"), x, 256), targets);
}
""", TOKENS, "audited", "run")

    def test_layer_without_effect(self):
        """A layer whose result goes nowhere has no backward."""
        self.works("""static tensor layer(scope s, tensor x) { return add(x, linear(at(s, "a"), x, dim(x, 1))); }
tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 3);
  tensor y = layer(at(s, "layer"), x);
  (void)y;
  return cross_entropy(x, labels);
}
""", ROWS)

    def test_last_places_unread(self):
        """Windows and interpolation that leave out the last positions of an axis: the kernel gets no more than it reads."""
        self.works("""tensor model(scope s, tensor features, tensor labels) {
  tensor x = reshape(features, dim(features, 0), 1, 4, 3);
  tensor a = avg_pool2d(x, 2, 2, 0), b = interpolate_nearest(x, 2, 2), d = interpolate_bilinear_corners(x, 1, 2);
  tensor y = concat(1, reshape(a, dim(x, 0), -1), reshape(b, dim(x, 0), -1), reshape(d, dim(x, 0), -1));
  return cross_entropy(linear(at(s, "out"), y, 3), labels);
}
""", ROWS)

    def test_parameter_without_effect(self):
        """Each step writes the gradient of a parameter that the loss does not depend on, in the backward's own updates, too."""
        for optimizer in ("adamw", "lomo", "schedule_free_adamw"):
            self.works("""tensor model(scope s, tensor features, tensor labels) {
  tensor unused = parameter(at(s, "unused"), "w", 6, 6);
  (void)unused;
  return cross_entropy(linear(at(s, "in"), features, 3), labels);
}
""", ROWS, optimizer__name=optimizer)

    def test_muon_of_one_column(self):
        """A matrix of one column is a matmul's factor with a step of one, which cuBLASLt takes for one row alone."""
        self.works("""tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 3);
  return cross_entropy(add(x, mean(parameter(init_normal(at(s, "p"), 0.1), "w", 3, 1), 0)), labels);
}
""", ROWS, devices__kind="cuda", optimizer__name="muon")

    def test_muon_without_vectors(self):
        """All that trains are matrices, and AdamW steps nothing."""
        self.works("""tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(linear(at(s, "out"), features, 3), labels);
}
""", ROWS, model__lora__targets=["out"], optimizer__name="muon")

    def test_operands_of_odd_sizes_on_cuda(self):
        """Each copy of what a loop carries, 45 numbers, and each part of a concatenation begin where cuBLASLt takes operands."""
        self.works("""static tensor layer(scope s, tensor x) {
  return tanh_of(linear(at(s, "a"), x, 9));
}
tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 9);
  for (int i = 0; i < 3; i++) x = layer(nth(s, "layers", i), x);
  tensor parts = concat(0, matmul(transpose(x, 0, 1), x), linear(at(s, "other"), transpose(x, 0, 1), 9));
  return add(cross_entropy(linear(at(s, "out"), x, 3), labels), mean_all(parts));
}
""", ROWS, devices__kind="cuda", data__batch_size=5, training__eval_interval=1, training__eval_iters=2)

    def test_matrices_of_odd_sizes_on_gpus(self):
        """Of matrices of 5 x 5 one after another few begin where cuBLASLt takes operands unless it is configured otherwise."""
        model = """tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 80);
  tensor heads = transpose(reshape(x, dim(x, 0), 5, 2, 8), 1, 2);
  tensor p = softmax(matmul(heads, transpose(heads, 2, 3)));
  tensor y = reshape(transpose(matmul(p, heads), 1, 2), dim(x, 0), 80);
  return cross_entropy(linear(at(s, "out"), y, 3), labels);
}
"""
        for kind in ("cuda", "hip"):
            self.works(model, ROWS, devices__kind=kind, data__batch_size=4)

    def test_labels_apart_from_rows(self):
        """What is evaluated may be files of another format than what is trained on."""
        self.works("""tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(linear(at(s, "out"), features, 3), labels);
}
""", {**ROWS, "data.train.path": "rows*.csv", "data.eval.path": "rows.npy", "data.eval.labels": "labels.npy", "data.eval.format": "npy"})

    def test_deterministic_groups(self):
        """Rows of a group are a number from the data, which no loop of a kernel runs to."""
        self.works("""tensor predict(scope s, tensor features) {
  tensor x = linear(at(s, "in"), features, 4);
  tensor choice = top_k_indices(softmax(linear(at(s, "gate"), x, 3)), 2), w[3];
  tensor rows = group_rows(choice, 3, 0);
  for (int e = 0; e < 3; e++) w[e] = parameter(init_normal(nth(s, "e", e), 0.3), "w", 4, 4);
  tensor y = grouped_matmul(take(x, rows), group_starts(choice, 3, 0), 3, w);
  return linear(at(s, "out"), add(x, index_add(y, rows, dim(x, 0))), 3);
}
tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(predict(s, features), labels);
}
""", ROWS, training__deterministic=True)

    def test_gradient_that_a_call_gives(self):
        """What the forward keeps in the memory of a gradient is read before the call that gives this gradient."""
        self.works("""static tensor layer(scope s, tensor x, tensor p) {
  (void)p;
  return linear(at(s, "a"), x, 32);
}
tensor model(scope s, tensor tokens) {
  tensor x = embedding(at(s, "in"), tokens, 256, 32), p = parameter(at(s, "p"), "w", 16, 32);
  return mean_all(layer(at(s, "layer"), tanh_of(add(x, p)), p));
}
""", TOKENS, data__sequence_length=16)

    def test_contributions_to_one_gradient(self):
        """One loop makes several contributions to a gradient, and matmuls make others, one by a view."""
        for penalty in ("l1_loss(p, p)", "binary_cross_entropy_with_logits(p, sigmoid(p))"):
            self.works(f"""tensor model(scope s, tensor features, tensor labels) {{
  tensor p = parameter(init_normal(at(s, "p"), 0.5), "w", 12, 12), q = reshape(p, 144);
  tensor x = matmul(matmul(features, p), reshape(q, 12, 12));
  return add(cross_entropy(linear(at(s, "out"), x, 3), labels), {penalty});
}}
""", ROWS)

    def test_adapters_without_effect(self):
        """Adapters alone train, and the loss depends on none of them."""
        model = """static tensor layer(scope s, tensor x) {
  tensor y = linear(at(s, "a"), x, dim(x, 1));
  return add(x, less_equal(y, y));
}
tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(linear(at(s, "out"), layer(at(s, "layer"), linear(at(s, "in"), features, 4)), 3), labels);
}
"""
        message = r"^job\.yaml:\d+:\d+: error: the loss depends on no parameter that is trained$"
        self.refused(message, model, ROWS, model__lora__targets=["a"])
        self.refused(message, model, ROWS, model__freeze=["in.*", "out.*"])
        self.refused(message, model.replace("add(x, less_equal(y, y))", "x"), ROWS, model__freeze=["in.*", "out.*"])
        self.works(model, ROWS, model__lora__targets=["a", "out"])

    def test_first_places_unread(self):
        """Interpolation that leaves out the first positions of an axis, and the first elements of sparse rows."""
        self.works("""tensor model(scope s, tensor features, tensor labels) {
  tensor a = interpolate_bilinear(reshape(features, dim(features, 0), 1, 4, 3), 2, 1);
  int starts[] = {0, 0, 1, 3, 4, 4}, columns[] = {1, 0, 1, 0};
  tensor w = parameter(init_normal(at(s, "p"), 0.5), "w", 3, 4);
  tensor b = sparse_matmul_csr(int_table_of(6, starts), int_table_of(4, columns), constant(0.5, 4), w);
  return cross_entropy(add(linear(at(s, "out"), reshape(a, dim(a, 0), 2), 3), mean_all(b)), labels);
}
""", ROWS)

    def test_counted_evaluation_of_ranks(self):
        """Ranks divide all samples of an evaluation whose losses are weighed by the targets that count."""
        self.works("""tensor model(scope s, tensor tokens, tensor targets) {
  return cross_entropy_ignore(linear(at(s, "out"), embedding(at(s, "in"), tokens, 256, 5), 256), targets, -100);
}
""", TOKENS, data__masking__mask_token=0, devices__per_node=2, training__eval_interval=2, training__eval_iters="all")

    def test_stopped_early(self):
        """A run that has ended early, resumed from its last step, takes no other one."""
        for words in ({}, {"devices__kind": "cuda"}, {"devices__per_node": 2}):
            self.works("""tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(linear(at(s, "out"), features, 3), labels);
}
""", ROWS, "resumed", "evaluated", training__steps=5, training__eval_interval=1, training__eval_iters="all", checkpoint__every=2,
                       training__early_stopping__patience=1, training__early_stopping__threshold=100.0, **words)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
