"""The optimizers that are compared: a name, the job's keys, and PyTorch's optimizer over groups of parameters."""

import re

import torch

LR = 0.013


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of arXiv:2302.06675; PyTorch has none."""

    def __init__(self, params, lr, betas, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_((m * first + p.grad * (1 - first)).sign(), alpha=group["lr"])
                m.mul_(second).add_(p.grad, alpha=1 - second)


BETAS = {"betas": [0.8, 0.97]}
# name: (keys of the job and of PyTorch alike, PyTorch's optimizer)
RULES = {
    "sgd": ({}, torch.optim.SGD),
    "sgd_decay": ({"weight_decay": 0.1}, torch.optim.SGD),
    "sgd_momentum": ({"momentum": 0.9, "weight_decay": 0.1}, torch.optim.SGD),
    "sgd_dampening": ({"momentum": 0.9, "dampening": 0.25}, torch.optim.SGD),
    "sgd_nesterov": ({"momentum": 0.8, "nesterov": True, "weight_decay": 0.1}, torch.optim.SGD),
    "adam": ({}, torch.optim.Adam),
    "adam_decay": ({**BETAS, "eps": 1e-6, "weight_decay": 0.1}, torch.optim.Adam),
    "adamw": ({}, torch.optim.AdamW),
    "adamw_decay": ({**BETAS, "weight_decay": 0.1}, torch.optim.AdamW),
    "adamax": ({}, torch.optim.Adamax),
    "adamax_decay": ({**BETAS, "eps": 1e-6, "weight_decay": 0.1}, torch.optim.Adamax),
    "nadam": ({}, torch.optim.NAdam),
    "nadam_decay": ({**BETAS, "momentum_decay": 0.01, "weight_decay": 0.1}, torch.optim.NAdam),
    "radam": ({}, torch.optim.RAdam),
    "radam_decay": ({**BETAS, "weight_decay": 0.1}, torch.optim.RAdam),
    "radam_never_rectified": ({"betas": [0.9, 0.5]}, torch.optim.RAdam),
    "adagrad": ({}, torch.optim.Adagrad),
    "adagrad_decay": ({"eps": 1e-4, "weight_decay": 0.1}, torch.optim.Adagrad),
    "rmsprop": ({}, torch.optim.RMSprop),
    "rmsprop_decay": ({"alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1}, torch.optim.RMSprop),
    "rmsprop_momentum": ({"momentum": 0.7}, torch.optim.RMSprop),
    "rmsprop_centered": ({"centered": True, "alpha": 0.9, "eps": 1e-6}, torch.optim.RMSprop),
    "rmsprop_centered_momentum": ({"centered": True, "momentum": 0.7, "eps": 1e-6}, torch.optim.RMSprop),
    "lion": ({"betas": [0.9, 0.99]}, Lion),
    "lion_decay": ({"betas": [0.9, 0.99], "weight_decay": 0.1}, Lion),
}


def keys_of(name, **more):
    """The group `optimizer` of the job."""
    keys = {"name": name.split("_")[0], "lr": LR, "weight_decay": 0.0, **RULES[name][0], **more}
    return keys


def peer_of(name, params):
    """PyTorch's optimizer with the same numbers."""
    keys, make = RULES[name]
    keys = {"weight_decay": 0.0, **keys}
    if make not in (torch.optim.SGD, torch.optim.Adagrad, torch.optim.RMSprop):
        keys.setdefault("betas", [0.9, 0.999])
    if make not in (torch.optim.SGD, Lion):
        keys.setdefault("eps", 1e-8)
    return make(params, lr=LR, **keys)


def first_match(groups, name):
    """The group of param_groups that a parameter belongs to, as docs/job.md says; {} for none."""
    for group in groups:
        pattern = re.escape(group["match"]).replace(r"\*", ".*").replace(r"\?", ".")
        if re.fullmatch(pattern, name):
            return group
    return {}
