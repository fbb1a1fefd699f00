"""Each model of examples/models as a small job for GPUs, with its weights, its data, and the losses that PyTorch computes from the same
weights and batches: what the tests of tests/models and tests/program compare with PyTorch on processors, with sizes that are drawn to be
small, and multiples of 8 where they can be, so that kernels take the widest packs."""

import copy
import dataclasses
import importlib.util
import io
import pathlib
import random
import shutil
import sys
import tempfile
import typing

import numpy as np
import torch
import torch.nn.functional as F

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / folder) for folder in ("models", "program", "parallel")]

import peer  # noqa: E402
from harness import MODELS, TRAIN, Order, save_file, splits, windows  # noqa: E402

peer.SEED = 1  # of all data that is drawn
LR, DECAY, EPS = 1e-3, 0.1, 1e-4  # with a large eps, a gradient that is all rounding error moves nothing
RATES = {"clip": 1e-5}  # at the others' rate its gradients, which are a hundred times theirs, make a rounding a difference within few steps
SEED = 1  # of the job
BF16 = {"precision": {"mixed_precision": "bf16"}}
PRECISIONS = {"float32": {}, "bf16": BF16}
STEPS = 20
DEVICES = {"attention": "own", "convolution": "own"}  # so that both are kernels, not a library's


@dataclasses.dataclass
class Example:
    source: pathlib.Path
    groups: dict  # of the job: model.config, data and what else it has
    write: typing.Callable  # into a folder, the data and the weights that the job names
    theirs: object  # what has parameters()
    batches: typing.Callable  # the tensors of a micro-batch, by its number
    loss_of: typing.Callable  # (theirs, *tensors)
    rate: float = LR

    def job(self, steps, precision):
        made = copy.deepcopy(self.groups)
        made["model"]["source"] = str(self.source)
        optimizer = {"name": "adamw", "lr": self.rate, "weight_decay": DECAY, "eps": EPS}
        return {"optimizer": optimizer, "training": {"steps": steps, "seed": SEED}, **made, **copy.deepcopy(PRECISIONS[precision])}

    def on_device(self, steps, precision):
        return {**self.job(steps, precision), "devices": dict(DEVICES)}

    def losses(self, steps, precision):
        """PyTorch's, in float32 or, of bfloat16, by its autocast."""
        model, found = copy.deepcopy(self.theirs), []
        adamw = torch.optim.AdamW(model.parameters(), lr=self.rate, weight_decay=DECAY, eps=EPS)
        for step in range(steps):
            adamw.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                loss = self.loss_of(model, *self.batches(step))
            loss.backward()
            adamw.step()
            found.append(loss.item())
        return found


class Small(random.Random):
    """Draws no number at random that has a choice: sizes are the least multiple of 8, or in the middle."""

    def randint(self, low, high):
        aligned = max(8, -(-low // 8) * 8)
        return aligned if aligned <= high else (low + high) // 2

    def choice(self, options):
        return options[len(options) // 2]


# ---- What tests of models describe ----


def module(path):
    """A file of tests, whose name other folders have, too."""
    name = path.replace("/", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TESTS / f"{path}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def described(path, case, method):
    """What a test hands to Peer.check()."""
    test, found = getattr(module(path), case)(method), []

    def draw(seed):
        test.random = Small(seed)
        torch.manual_seed(seed)

    def check(source, theirs, config, data, batches, loss_of, gradient_tolerance=None, training=False):
        found.append((source, theirs.train(training), config, data, batches, loss_of))

    test.draw, test.check = lambda seed: draw(SEED), check
    test.setUp()
    getattr(test, method)()
    source, theirs, config, data, batches, loss_of = found[0]

    def write(folder):
        for name, content in data["files"].items():
            (folder / name).write_bytes(content)
        with tempfile.TemporaryDirectory() as held:
            theirs.save_pretrained(held)
            shutil.copy(next(pathlib.Path(held).glob("*model.safetensors")), folder / "start.safetensors")

    groups = {"model": {"weights": "start.safetensors", "config": config}, "data": {key: value for key, value in data.items() if key != "files"}}
    return Example(MODELS / source, groups, write, theirs, batches, loss_of)


# ---- Models that are written out ----


class Named:
    """Weights by their names, and what computes with them."""

    def __init__(self, w):
        self.w = w

    def parameters(self):
        return list(self.w.values())


def written(model, config, data, weights, theirs, batches, loss_of, write_data):
    def write(folder):
        write_data(folder)
        save_file(weights, folder / "start.safetensors")

    return Example(MODELS / f"{model}.c", {"model": {"weights": "start.safetensors", "config": config}, "data": data}, write, theirs, batches, loss_of)


def text(length, batch):
    corpus = np.random.default_rng(SEED).integers(97, 123, 3000).astype(np.uint8).tobytes()
    cut = windows(corpus, length, batch, SEED, True, 0.1)
    data = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": batch}
    return data, lambda n: [torch.tensor(x) for x in cut(n)], lambda folder: (folder / "corpus.txt").write_bytes(corpus)


def gpt(layout):
    from torch_gpt import Gpt, random_weights

    config = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 16}
    data, batches, write = text(16, 3)
    weights = random_weights(config, layout, seed=3)
    theirs = Named(Gpt(weights, config, layout).w)

    def loss_of(named, tokens, targets):
        model = Gpt({}, config, layout)
        model.w = named.w
        return model.loss(tokens, targets)

    return written(layout, config, data, weights, theirs, batches, loss_of, write)


def gru():
    test, width, embedded = module("program/test_models"), 8, 8
    peer_of, (data, batches, write) = test.Recurrent("test_gru"), text(test.Recurrent.LENGTH, 4)
    weights = test.random_weights([
        ("embedding.weight", (256, embedded), 0.5), ("start", (width,), 0.3), ("cell.weight_ih", (3 * width, embedded), 0.3),
        ("cell.weight_hh", (3 * width, width), 0.3), ("cell.bias_ih", (3 * width,), 0.3), ("cell.bias_hh", (3 * width,), 0.3),
        ("output.weight", (256, width), 0.3), ("output.bias", (256,), 0.3)])
    return written("gru_bytes", {"n_embd": embedded, "width": width, "block_size": peer_of.LENGTH}, data, weights, Named(test.parameters(weights)), batches,
                   lambda named, tokens, targets: peer_of.loss(named.w, tokens, targets), write)


def table():
    test, batch, fraction = module("program/test_models"), 8, 0.25
    features, labels = test.table()
    weights = test.random_weights(test.Table.SHAPES)
    (first, count), _ = splits(len(labels), fraction)
    order = Order(SEED, TRAIN, True, first, count, batch=batch)

    def batches(n):
        rows = [order.start(n * batch + i) for i in range(batch)]
        return torch.tensor(features[rows]), torch.tensor(labels[rows])

    data = {"train": {"path": "table.csv", "format": "csv"}, "features": 30, "batch_size": batch, "eval_fraction": fraction}
    return written("mlp_table", {"n_layer": 2, "width": 24, "n_classes": 2}, data, weights, Named(test.parameters(weights)), batches,
                   lambda named, x, y: F.cross_entropy(test.Table.logits(named.w, x), y), lambda folder: test.write_table(folder / "table.csv", features, labels))


def autoencoder():
    rows, batch, width, code = np.random.default_rng(SEED).standard_normal((60, 5, 8)).astype(np.float32), 5, 16, 8
    order, file = Order(SEED, TRAIN, True, 0, len(rows)), io.BytesIO()
    np.save(file, rows)
    torch.manual_seed(SEED)
    theirs = torch.nn.ModuleDict({name: torch.nn.Sequential(torch.nn.Linear(come, width), torch.nn.GELU(), torch.nn.Linear(width, go))
                                  for name, come, go in (("encoder", 40, code), ("decoder", code, 40))})
    weights = {name: value.detach().numpy().copy() for name, value in theirs.named_parameters()}
    data = {"train": {"path": "rows.npy", "format": "npy"}, "batch_size": batch, "eval_fraction": 0, "inputs": {"picture": {"shape": [5, 8]}}}
    return written("autoencoder", {"width": width, "code": code}, data, weights, theirs,
                   lambda n: [torch.tensor(rows[[order.start(n * batch + i) for i in range(batch)]])],
                   lambda model, x: F.mse_loss(model["decoder"](model["encoder"](x.flatten(1))), x.flatten(1)),
                   lambda folder: (folder / "rows.npy").write_bytes(file.getvalue()))


def preference(rewards):
    """Pairs of texts: of a policy and what it began with, or of a model of rewards."""
    tests = module("models/test_preference")
    test = tests.Preference("test_losses")
    test.setUp()
    model, data = None, ["--end", "<|end|>"]
    if rewards:
        same = {**tests.SAME, "num_labels": 1, "pad_token_id": 259}
        test.start = tests.LlamaForSequenceClassification(tests.LlamaConfig(**same, initializer_range=0.3)).eval()
        model, data = {"source": str(MODELS / "llama_reward.c")}, [*data, "--pad", "<|system|>"]
    trainer = test.trainer({}, model=model)
    job = trainer.job
    if rewards:
        del job["model"]["weights_map"], job["data"]["inputs"]["completion_mask"]
        job["data"]["inputs"]["attention_mask"] = {"shape": [2, tests.LENGTH]}
    rows, order = test.data(trainer, test.records, *data), Order(SEED, TRAIN, True, 0, tests.PAIRS)

    def margins(model, chosen):
        ids, attends = (torch.tensor(rows[name][chosen].astype("int64")).flatten(0, 1) for name in ("input_ids", "attention_mask"))
        scores = model(input_ids=ids, attention_mask=attends).logits.reshape(-1, 2)
        return -F.logsigmoid(scores[:, 1] - scores[:, 0]).mean()

    def copied(folder):
        shutil.copytree(trainer.folder / "base", folder / "base", dirs_exist_ok=True)
        shutil.copy(trainer.folder / "pairs.npz", folder)

    model = {key: value for key, value in job["model"].items() if key != "source"}
    return Example(pathlib.Path(job["model"]["source"]), {"model": model, "data": job["data"]}, copied, test.start if rewards else test.policy(),
                   lambda n: [[order.start(n * tests.BATCH + i) for i in range(tests.BATCH)]],
                   margins if rewards else lambda policy, chosen: test.loss(test.rewards(policy, rows, chosen, {}), {}))


# By the model's file: the test that describes it.
PEERS = {
    "albert": ("encoders", "BertLike", "test_albert"), "bert": ("encoders", "Bert", "test_bert_masked"),
    "bert_classifier": ("encoders", "BertClassifier", "test_bert_classifier"), "bert_questions": ("encoders", "BertClassifier", "test_bert_questions"),
    "bert_tagger": ("encoders", "BertClassifier", "test_bert_tagger"), "clip": ("images", "Clip", "test_clip"),
    "convnext": ("images", "ConvNext", "test_convnext"), "deberta_v2": ("encoders", "BertClassifier", "test_deberta_v2"),
    "deepseek_v3": ("experts", "Experts", "test_deepseek_v3"), "distilbert": ("encoders", "BertLike", "test_distilbert"),
    "dit": ("diffusion", "Diffusion", "test_dit"), "dlrm": ("clicks", "Dlrm", "test_dlrm"), "gcn": ("recurrent", "Convolved", "test_gcn"),
    "lstm": ("recurrent", "Recurrent", "test_lstm"), "mamba": ("recurrent", "Recurrent", "test_mamba"),
    "qwen_moe": ("experts", "Experts", "test_qwen3"), "resnet": ("images", "ResNet", "test_basic"), "roberta": ("encoders", "BertLike", "test_roberta"),
    "swin": ("images", "Swin", "test_swin"), "t5": ("encoders", "T5", "test_t5"), "unet": ("diffusion", "Diffusion", "test_unet"),
    "vae": ("diffusion", "Diffusion", "test_vae"), "vit": ("encoders", "Vit", "test_vit"), "whisper": ("speech", "Whisper", "test_whisper"),
    **{name: ("decoders", "Decoders", f"test_{name}") for name in (
        "gemma", "gemma2", "gemma3", "gpt_neox", "llama", "mistral", "mixtral", "phi", "phi3", "qwen2", "qwen3")}}
WRITTEN = {"gpt2": lambda: gpt("gpt2"), "nanogpt": lambda: gpt("nanogpt"), "gru_bytes": gru, "mlp_table": table, "autoencoder": autoencoder,
           "llama_dpo": lambda: preference(False), "llama_reward": lambda: preference(True)}
NAMES = sorted(path.stem for path in MODELS.glob("*.c"))


def program(name, precision):
    """What a model's program in a precision is called."""
    return f"{name}_{precision}"


def example(name):
    if name in WRITTEN:
        return WRITTEN[name]()
    file, case, method = PEERS[name]
    made = described(f"models/test_{file}", case, method)
    made.rate = RATES.get(name, LR)
    return made
