"""Recipes of training in 8 bits: as their documentation has them, over PyTorch's own types of 8 bits, torchao's tensorwise scaling
and Transformer Engine's DelayedScaling; and torchao's own layers, emulated, for rows and blocks. Products are in float32, of
the rounded numbers."""

import dataclasses

import torch

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def rounded(x, scale, kind):
    """x times the scale in this type, saturated; as float32."""
    most = torch.finfo(kind).max
    return (x.float() * scale).clamp(-most, most).to(kind).float()


class Tensorwise:
    """Of one layer: each tensor's scale brings its own largest size to the type's largest number (torchao, amax_to_scale)."""

    def __init__(self, backward=E5M2):
        self.backward = backward

    def round(self, role, x):
        kind = self.backward if role == "grad_output" else E4M3
        scale = (torch.finfo(kind).max / x.detach().abs().max().double().clamp(min=1e-12)).float()
        return rounded(x, scale, kind), scale.reciprocal()


class Delayed:
    """Of one layer: scales are of the sizes of the batches before (Transformer Engine, DelayedScaling)."""

    def __init__(self, length=1024, algorithm="most_recent", margin=0, hybrid=True, wide_wgrad=False):
        self.length, self.algorithm, self.margin, self.hybrid, self.wide_wgrad = length, algorithm, margin, hybrid, wide_wgrad
        self.frozen = False  # whether scales and histories stay as they are
        self.evaluates = False  # without gradients: sizes are noted for the next batch, whose end moves the history
        self.scales = {role: torch.tensor(1.0) for role in ("input", "weight", "grad_output")}
        self.histories = {role: torch.zeros(length) for role in self.scales}

    def round(self, role, x):
        kind = E5M2 if role == "grad_output" and self.hybrid else E4M3
        scale = self.scales[role]
        if not self.frozen:
            self.histories[role][0] = torch.maximum(self.histories[role][0], x.detach().abs().max().float())
            if not self.evaluates:
                self.update(role, torch.finfo(kind).max)
        return rounded(x, scale, kind), 1 / scale

    def update(self, role, most):
        """Transformer Engine's update after each forward or backward: the history is rolled, and its first place is free."""
        history = self.histories[role]
        amax = history.max() if self.algorithm == "max" else history[0].clone()
        self.histories[role] = history.roll(-1)
        self.histories[role][0] = 0
        if amax > 0 and torch.isfinite(amax):
            self.scales[role] = (torch.tensor(most * 2.0**-self.margin) / amax).clamp(max=torch.finfo(torch.float32).max)


class Grouped:
    """torchao's own layer: of a recipe of rows, or of MX blocks with scales by this mode."""

    def __init__(self, name, mode="floor"):
        self.name, self.mode = name, mode

    def layer(self, linear):
        if self.name == "mxfp8":
            return Blocks(linear, self.mode)
        from torchao.float8 import Float8LinearConfig
        from torchao.float8.float8_linear import Float8Linear

        return Float8Linear.from_float(linear, dataclasses.replace(Float8LinearConfig.from_recipe_name(self.name), emulate=True))


class Blocks(torch.nn.Module):
    """In place of torch.nn.Linear: torchao's product of MX numbers of E4M3."""

    def __init__(self, linear, mode):
        from torchao.prototype.mx_formats.config import ScaleCalculationMode

        super().__init__()
        self.weight, self.bias, self.mode = linear.weight, linear.bias, ScaleCalculationMode(mode)

    def forward(self, x):
        from torchao.prototype.moe_training.mxfp8_linear import _to_mxfp8_then_scaled_mm
        from torchao.quantization.quantize_.common.kernel_preference import KernelPreference

        y = _to_mxfp8_then_scaled_mm(x, self.weight, KernelPreference.EMULATED, self.mode)
        return y if self.bias is None else y + self.bias


class Product(torch.autograd.Function):
    """x W^T in the type `dtype`, by a layer's recipe."""

    @staticmethod
    def forward(ctx, x, weight, recipe, dtype):
        x = x.to(dtype)
        (qx, ix), (qw, iw) = recipe.round("input", x), recipe.round("weight", weight)
        ctx.save_for_backward(qx, ix, qw, iw, x)
        ctx.recipe = recipe
        return (qx @ qw.T * (ix * iw)).to(dtype)

    @staticmethod
    def backward(ctx, dy):
        qx, ix, qw, iw, x = ctx.saved_tensors
        qy, iy = ctx.recipe.round("grad_output", dy)
        wide = getattr(ctx.recipe, "wide_wgrad", False)
        dw = dy.flatten(0, -2).T @ x.flatten(0, -2) if wide else qy.flatten(0, -2).T @ qx.flatten(0, -2) * (iy * ix)
        return (qy @ qw * (iy * iw)).to(dy.dtype), dw.to(dy.dtype), None, None


class Linear(torch.nn.Module):
    """In place of torch.nn.Linear: its parameters, and the product by a recipe. Where `trains` alone, evaluation is without."""

    def __init__(self, linear, recipe, dtype=torch.float32, always=True):
        super().__init__()
        self.weight, self.bias, self.recipe, self.dtype, self.always = linear.weight, linear.bias, recipe, dtype, always

    def forward(self, x):
        if not (self.always or self.training):
            return torch.nn.functional.linear(x, self.weight, self.bias)
        self.recipe.evaluates = not torch.is_grad_enabled()
        y = Product.apply(x, self.weight, self.recipe, self.dtype)
        return y if self.bias is None else y + self.bias.to(y.dtype)


class Divided(torch.nn.Module):
    """In place of a layer: the layer as ranks have it, each with its positions of x [batch][position][feature] and with scales of these."""

    def __init__(self, layer, positions):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.__dict__["layer"] = layer  # whose parameters keep their names
        self.positions = [torch.tensor(own) for own in positions]

    def forward(self, x):
        parts = [self.layer(x[:, own]) for own in self.positions]
        return torch.cat(parts, 1)[:, torch.cat(self.positions).argsort()]


def convert(model, make, keep_ends, multiple=16, skip=(), positions=None, **how):
    """Puts Linear, or the recipe's own layer, in place of all linear layers of multiples of 16, but of those to skip, and of the first and the last where
    keep_ends (Accelerate's filter_linear_layers); with `positions` as ranks have them that divide sequences so. Returns the recipes by the layers' names; make() gives each its own."""
    layers = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    ends = {layers[0][0], layers[-1][0]} if keep_ends else set()
    recipes = {}
    for name, module in layers:
        if name in ends or name in skip or any(extent % multiple for extent in module.weight.shape):
            continue
        recipe = recipes[name] = make()
        parent, _, child = name.rpartition(".")
        layer = recipe.layer(module) if hasattr(recipe, "layer") else Linear(module, recipe, **how)
        setattr(model.get_submodule(parent), child, layer if positions is None else Divided(layer, positions))
    return recipes


def power(amax, most, before=1.0):
    """MS-AMP's scale (ScalingMeta.compute_scaling_factor): the largest power of two that keeps amax within `most`."""
    exponent = torch.floor(torch.log2(torch.tensor(most, dtype=torch.float64) / amax.double()))
    return torch.exp2(exponent).float() if amax > 0 and torch.isfinite(amax) else torch.tensor(before)


def stored(x, kind):
    """x as a tensor of this type with a scale of its own."""
    scale = power(x.abs().max(), torch.finfo(kind).max)
    return (x * scale).to(kind).float() / scale


class MsAmp:
    """Of one layer: MS-AMP's FP8Linear. For the first 16 steps a scale is of the tensor at hand, later of the last 16 steps; that of a
    weight always of the weight (ScalingMeta's windows)."""

    WINDOW = 16

    def __init__(self):
        self.taken = 0  # steps
        self.scales = {role: torch.tensor(1.0) for role in ("input", "grad_output")}
        self.sizes = {role: torch.zeros(self.WINDOW) for role in self.scales}

    def round(self, role, x):
        kind = E5M2 if role == "grad_output" else E4M3
        amax, most = x.detach().abs().max(), torch.finfo(kind).max
        if role == "weight":
            scale = power(amax, most)
        else:
            at_hand = self.taken < self.WINDOW
            self.sizes[role][0] = amax if at_hand else torch.maximum(self.sizes[role][0], amax)
            scale = self.scales[role] = power(amax, most) if at_hand else self.scales[role]
        return rounded(x, scale, kind), 1 / scale

    def end_step(self):
        """LBOptimizer._update_scaling_factors."""
        for role, sizes in self.sizes.items():
            self.scales[role] = power(sizes.max(), torch.finfo(E5M2 if role == "grad_output" else E4M3).max)
            self.sizes[role] = sizes.roll(1)
            self.sizes[role][0] = 0
        self.taken += 1


def exchanged(gradients):
    """What MS-AMP's reducer makes of a layer's gradients of several ranks: numbers of E4M3 by one scale, which leaves room for their
    sum, added up as such; and of one rank's."""
    if len(gradients) == 1:
        return stored(gradients[0], E4M3)
    amax = max(gradient.abs().max() for gradient in gradients)
    scale = power(amax, torch.finfo(E4M3).max) / len(gradients) ** 0.5
    total = sum(rounded(gradient, scale, E4M3) for gradient in gradients)
    return rounded(total, 1.0, E4M3) / scale / len(gradients)


def adamw(weight, gradient, m, v, step, lr, betas, eps, decay, low):
    """MS-AMP's LBAdamW, of weights that are rounded afterwards; low: its moments are rounded, too (O2). Returns both."""
    weight.mul_(1 - lr * decay)
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient * gradient
    weight.sub_(lr / (1 - betas[0] ** step) * m / ((v / (1 - betas[1] ** step)).sqrt() + eps))
    return (stored(m, E4M3), stored(v, torch.float16)) if low else (m, v)
