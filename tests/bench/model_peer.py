"""A model of examples/jobs trained in PyTorch on random data of its job's shape: a line of JSON a step.

usage: model_peer.py NAME eager|compile STEPS SECONDS THREADS [no|bf16]

So many steps, or more that take so many seconds."""

import json
import pathlib
import re
import sys
import time

import torch
import transformers
from torch import nn
from torch.nn import functional as F

import sizes
from sizes import ROOT

sys.path.insert(0, str(ROOT / "tests/models"))
MOST = 2000  # steps
ROPE = {"rope_theta": 10000.0, "rope_type": "default"}
CAUSAL = {"gpt_neox": "GPTNeoX", "llama": "Llama", "qwen3": "Qwen3", "mistral": "Mistral", "gemma": "Gemma", "mixtral": "Mixtral"}


class Memory(nn.Module):
    kind = nn.LSTM

    def __init__(self, c):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab_size"], c["n_embd"])
        self.layers = self.kind(c["n_embd"], c["hidden_size"], c["num_layers"], batch_first=True)
        self.output = nn.Linear(c["hidden_size"], c["vocab_size"])

    def forward(self, tokens):
        return self.output(self.layers(self.embedding(tokens))[0])


class Gated(Memory):
    kind = nn.GRU


class Graph(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(features, hidden), nn.Linear(hidden, classes)])

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, self.layers[1](torch.relu(torch.sparse.mm(adjacency, self.layers[0](x)))))


def listed(c, *names):
    """c with name.0, name.1, ... as lists."""
    for name in names:
        c[name] = [c.pop(f"{name}.{i}") for i in range(len([key for key in c if key.startswith(name + ".")]))]
    return c


def of_tokens(model, job, logits):
    vocabulary, shape = job["model"]["config"]["vocab_size"], (job["data"]["batch_size"], job["data"]["sequence_length"])
    return model, lambda: [torch.randint(vocabulary - 1, shape), torch.randint(vocabulary - 1, shape)], lambda tokens, targets: F.cross_entropy(
        logits(tokens).flatten(0, 1), targets.flatten())


def causal(name, job):
    kind = CAUSAL[name]
    config = getattr(transformers, kind + "Config")(**job["model"]["config"], rope_parameters=dict(ROPE), pad_token_id=None, use_cache=False)
    model = getattr(transformers, kind + "ForCausalLM")(config)
    model.config._experts_implementation = "eager"
    return of_tokens(model, job, lambda tokens: model(tokens).logits)


def bert(job):
    model = transformers.BertForMaskedLM(transformers.BertConfig(**job["model"]["config"], pad_token_id=None, hidden_dropout_prob=0,
                                                                 attention_probs_dropout_prob=0))
    _, batch, _ = of_tokens(model, job, None)

    def hidden():
        tokens, targets = batch()
        return tokens, torch.where(torch.rand(targets.shape) < 0.15, targets, -100)

    return model, hidden, lambda tokens, targets: model(input_ids=tokens, labels=targets).loss


def t5(job):
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**job["model"]["config"], decoder_start_token_id=0, dropout_rate=0))
    model, batch, _ = of_tokens(model, job, None)
    return model, batch, lambda tokens, targets: model(input_ids=tokens, labels=targets).loss


def mamba(job):
    model = transformers.MambaForCausalLM(transformers.MambaConfig(**job["model"]["config"], use_cache=False))
    return of_tokens(model, job, lambda tokens: model(tokens).logits)


def qwen_moe(job):
    model = transformers.Qwen2MoeForCausalLM(transformers.Qwen2MoeConfig(**job["model"]["config"], rope_parameters=dict(ROPE), pad_token_id=None,
                                                                         qkv_bias=False, output_router_logits=True, use_cache=False))
    _, batch, _ = of_tokens(model, job, None)

    def loss(tokens, targets):
        out = model(tokens)
        return F.cross_entropy(out.logits.flatten(0, 1), targets.flatten()) + job["model"]["config"]["router_aux_loss_coef"] * out.aux_loss

    return model, batch, loss


def lstm(job):
    model = Memory(job["model"]["config"])
    return of_tokens(model, job, model)


def gru(job):
    c = job["model"]["config"]
    model = Gated(c | {"hidden_size": c["width"], "num_layers": 1})
    job["data"]["sequence_length"] = c["block_size"]
    return of_tokens(model, job, model)


def of_rows(model, job, classes, loss):
    shape = job["data"]["batch_size"], job["data"]["features"]
    return model, lambda: [torch.randn(shape), torch.randint(classes, shape[:1])], loss


def table(job):
    c = job["model"]["config"]
    widths = [job["data"]["features"]] + c["n_layer"] * [c["width"]]
    layers = [part for i in range(c["n_layer"]) for part in (nn.Linear(*widths[i:i + 2]), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(c["width"], c["n_classes"]))
    return of_rows(model, job, c["n_classes"], lambda x, labels: F.cross_entropy(model(x), labels))


def gcn(job):
    c, nodes = job["model"]["config"], job["data"]["features"]
    text = (ROOT / "examples/models/graph.h").read_text()
    edges = torch.tensor([[int(a), int(b)] for a, b in re.findall(r"{(\d+), (\d+)}", text)])
    adjacency = torch.eye(nodes)
    adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = 1
    scale = adjacency.sum(1).rsqrt()
    adjacency = (scale[:, None] * adjacency * scale).to_sparse_csr()
    model, known = Graph(nodes, c["hidden_channels"], c["out_channels"]), c["n_train"]
    return of_rows(model, job, c["out_channels"], lambda x, labels: F.cross_entropy(model(x, adjacency)[:known], labels[:known]))


def of_images(model, job, channels, loss):
    size = round((job["data"]["features"] / channels) ** 0.5)
    return model, lambda: [torch.randn(job["data"]["batch_size"], channels, size, size), torch.randint(10, (job["data"]["batch_size"],))], loss


def vit(job):
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**job["model"]["config"], hidden_dropout_prob=0))
    return of_images(model, job, 1, lambda x, labels: F.cross_entropy(model(x).logits, labels))


def resnet(job):
    c = listed(job["model"]["config"], "hidden_sizes", "depths")
    c["layer_type"] = c["layer_type"].lower()
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(**c))
    return of_images(model, job, c["num_channels"], lambda x, labels: F.cross_entropy(model(x).logits, labels))


def unet(job):
    from unet import UNet, noised

    model = UNet(attention_head_dim=8, **listed(job["model"]["config"], "block_out_channels", "attend"))

    def loss(x, labels):
        steps, noise = torch.randint(1000, labels.shape), torch.randn_like(x)
        return F.mse_loss(model(noised(x, noise, steps), steps, labels), noise)

    return of_images(model, job, job["model"]["config"]["in_channels"], loss)


OTHERS = {"qwen_moe": qwen_moe, "bert": bert, "t5": t5, "mamba": mamba, "lstm": lstm, "gru": gru, "vit": vit, "resnet": resnet, "unet": unet,
          "table": table, "gcn": gcn}


def made(name):
    job, base = sizes.job_of(name), sizes.base_of(name)
    job["model"]["config"].pop("blocks", None), job["model"]["config"].pop("stages", None)
    return OTHERS[base](job) if base in OTHERS else causal(base, job)


def main():
    name, mode, steps, seconds, threads, *precision = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    model, batch, loss_of = made(name)
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    half = precision == ["bf16"]

    def run(*tensors):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            return loss_of(*tensors)

    if mode == "compile":
        run = torch.compile(run)
    done, spent = 0, 0.0
    while done < int(steps) or (spent < float(seconds) and done < MOST):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = run(*batch())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        took = time.perf_counter() - start
        done, spent = done + 1, spent + (took if done >= int(steps) // 2 else 0)
        print(json.dumps({"loss": value, "step_ms": 1e3 * took}), flush=True)


if __name__ == "__main__":
    main()
