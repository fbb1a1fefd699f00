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


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of arXiv:1904.00962 with phi(z) = z; PyTorch has none."""

    def __init__(self, params, lr, betas, eps, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                m = state.setdefault("exp_avg", torch.zeros_like(p))
                v = state.setdefault("exp_avg_sq", torch.zeros_like(p))
                step = state["step"] = state.get("step", 0) + 1
                m.mul_(first).add_(p.grad, alpha=1 - first)
                v.mul_(second).add_(p.grad * p.grad, alpha=1 - second)
                way = m / (1 - first**step) / ((v / (1 - second**step)).sqrt() + group["eps"]) + group["weight_decay"] * p
                own, whole = p.norm(), way.norm()
                p.sub_(way, alpha=group["lr"] * (float(own / whole) if own > 0 and whole > 0 else 1))


class AdaLomo(torch.optim.Optimizer):
    """AdaLomo of arXiv:2310.10195 as lomo-optim 0.1.1 writes it (fuse_update), its loop over parameters aside."""

    def __init__(self, params, lr, eps=1e-30, least_scale=1e-3, clip_threshold=1.0, beta2_decay=-0.8, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "eps": eps, "least_scale": least_scale, "clip_threshold": clip_threshold,
                                  "beta2_decay": beta2_decay, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                step = state["step"] = state.get("step", 0) + 1
                fresh = step ** group["beta2_decay"]
                square = p.grad**2 + group["eps"]
                if p.dim() > 1:
                    rows = state["exp_avg_sq_row"] = torch.lerp(state.get("exp_avg_sq_row", torch.zeros_like(p[..., 0])),
                                                                square.mean(dim=-1), fresh)
                    columns = state["exp_avg_sq_col"] = torch.lerp(
                        state.get("exp_avg_sq_col", torch.zeros_like(p[..., 0, :])), square.mean(dim=-2), fresh)
                    by_row = (rows / rows.mean(dim=-1, keepdim=True)).rsqrt().unsqueeze(-1)
                    update = by_row * columns.unsqueeze(-2).rsqrt() * p.grad
                else:
                    squares = state["exp_avg_sq"] = torch.lerp(state.get("exp_avg_sq", torch.zeros_like(p)), square, fresh)
                    update = squares.rsqrt() * p.grad
                size = p.numel() ** 0.5
                update /= (update.norm() / size / group["clip_threshold"]).clamp(min=1.0)
                rate = group["lr"] * max(group["least_scale"], float(p.norm()) / size)
                p.mul_(1 - rate * group["weight_decay"]).sub_(update, alpha=rate)


class ScheduleFree(torch.optim.Optimizer):
    """AdamWScheduleFree of schedulefree 1.4 (facebookresearch/schedule_free), its warm-up left to the rates."""

    def __init__(self, params, lr, betas, eps, weight_decay=0.0, r=0.0, weight_lr_power=2.0):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "r": r,
                                  "weight_lr_power": weight_lr_power, "k": 0, "lr_max": -1.0, "weight_sum": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            k, lr = group["k"], group["lr"]
            group["lr_max"] = max(lr, group["lr_max"])
            weight = (k + 1) ** group["r"] * group["lr_max"] ** group["weight_lr_power"]
            group["weight_sum"] += weight
            fraction = weight / group["weight_sum"]
            for y in group["params"]:
                state = self.state[y]
                z = state.setdefault("z", y.detach().clone())
                v = state.setdefault("exp_avg_sq", torch.zeros_like(y))
                v.mul_(beta2).addcmul_(y.grad, y.grad, value=1 - beta2)
                way = y.grad / (v / (1 - beta2 ** (k + 1))).sqrt().add_(group["eps"])
                way.add_(y, alpha=group["weight_decay"])
                y.lerp_(end=z, weight=fraction)
                y.add_(way, alpha=lr * (beta1 * (1 - fraction) - 1))
                z.sub_(way, alpha=lr)
            group["k"] += 1

    @torch.no_grad()
    def averages(self):
        """The parameters as evaluated: what eval() makes of them."""
        return {y: y.lerp(end=self.state[y]["z"], weight=1 - 1 / group["betas"][0])
                for group in self.param_groups for y in group["params"]}


class Muon:
    """torch.optim.Muon over the matrices of its groups, with matmuls as exact as their parameters, and AdamW, with
    its own defaults, over the others."""

    def __init__(self, params, lr, **keys):
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        own = [{**group, "params": [p for p in group["params"] if p.ndim == 2]} for group in groups]
        others = [{**group, "params": [p for p in group["params"] if p.ndim != 2]} for group in groups]
        adamw = {key: keys.pop(key) for key in ("adamw",) if key in keys}.get("adamw", {})
        keys.setdefault("weight_decay", 0.1)
        self.parts = []
        if any(group["params"] for group in own):
            self.parts.append((torch.optim.Muon([g for g in own if g["params"]], lr=lr, **keys), 1))
        if any(group["params"] for group in others):
            rate = adamw.get("lr", 1e-3)
            self.parts.append((torch.optim.AdamW([g for g in others if g["params"]], **{"lr": rate, **adamw}), rate / lr))

    @property
    def param_groups(self):
        return [group for part, _ in self.parts for group in part.param_groups]

    @property
    def state(self):
        return {p: state for part, _ in self.parts for p, state in part.state.items()}

    def set_rate(self, rate):
        for part, scale in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * scale

    def zero_grad(self):
        for part, _ in self.parts:
            part.zero_grad()

    def step(self):
        exact = torch.bfloat16
        torch.bfloat16 = torch.float64  # of the iteration's matmuls
        try:
            for part, _ in self.parts:
                part.step()
        finally:
            torch.bfloat16 = exact


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
    "adadelta": ({}, torch.optim.Adadelta),
    "adadelta_decay": ({"rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}, torch.optim.Adadelta),
    "rmsprop": ({}, torch.optim.RMSprop),
    "rmsprop_decay": ({"alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1}, torch.optim.RMSprop),
    "rmsprop_momentum": ({"momentum": 0.7}, torch.optim.RMSprop),
    "rmsprop_centered": ({"centered": True, "alpha": 0.9, "eps": 1e-6}, torch.optim.RMSprop),
    "rmsprop_centered_momentum": ({"centered": True, "momentum": 0.7, "eps": 1e-6}, torch.optim.RMSprop),
    "lion": ({"betas": [0.9, 0.99]}, Lion),
    "lion_decay": ({"betas": [0.9, 0.99], "weight_decay": 0.1}, Lion),
    "lamb": ({"eps": 1e-6}, Lamb),
    "lamb_decay": ({**BETAS, "eps": 1e-4, "weight_decay": 0.1}, Lamb),
    "adafactor": ({}, torch.optim.Adafactor),
    "adafactor_decay": ({"beta2_decay": -0.6, "eps": 1e-3, "least_scale": 0.1, "clip_threshold": 1.01,
                         "weight_decay": 0.1}, torch.optim.Adafactor),
    "schedule_free_adamw": ({}, ScheduleFree),
    "schedule_free_adamw_decay": ({**BETAS, "eps": 1e-6, "weight_decay": 0.1, "r": 0.5, "weight_lr_power": 1.0},
                                  ScheduleFree),
    "muon": ({"weight_decay": 0.1}, Muon),
    "muon_plain": ({"nesterov": False, "momentum": 0.8, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3,
                    "adamw": {"lr": 0.02, "betas": [0.8, 0.97], "eps": 1e-6, "weight_decay": 0.1}}, Muon),
    "muon_spectral": ({"adjust_lr_fn": "spectral_unclamped", "eps": 1e-5}, Muon),
}


def own_name(name):
    """The optimizer of a rule."""
    return "schedule_free_adamw" if name.startswith("schedule_free") else name.split("_")[0]


def keys_of(name, **more):
    """The group `optimizer` of the job."""
    keys = {"name": own_name(name), "lr": LR, "weight_decay": 0.0, **RULES[name][0], **more}
    return keys


def peer_of(name, params):
    """PyTorch's optimizer with the same numbers."""
    keys, make = RULES[name]
    keys = {"weight_decay": 0.0, **keys}
    if make is torch.optim.Adafactor:
        keys["eps"] = (keys.get("eps", 2.0**-23), keys.pop("least_scale", 1e-3))
        keys["d"] = keys.pop("clip_threshold", 1.0)
        return make(params, lr=LR, foreach=False, **keys)
    if make is Muon:
        return make(params, lr=LR, **keys)
    if make not in (torch.optim.SGD, torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.RMSprop):
        keys.setdefault("betas", [0.9, 0.999])
    if make not in (torch.optim.SGD, Lion):
        keys.setdefault("eps", {torch.optim.Adagrad: 1e-10, torch.optim.Adadelta: 1e-6}.get(make, 1e-8))
    return make(params, lr=LR, **keys)


def first_match(groups, name):
    """The group of param_groups that a parameter belongs to, as docs/job.md says; {} for none."""
    for group in groups:
        if group["match"].startswith("re:"):
            if re.search(group["match"][3:], name):
                return group
            continue
        pattern = re.escape(group["match"]).replace(r"\*", ".*").replace(r"\?", ".")
        if re.fullmatch(pattern, name):
            return group
    return {}
