"""DiT of the paper's published code in PyTorch, by its names and its arithmetic, and the loss of its training: the noise's squared error,
and of the variances what the process says of the step back. examples/models/dit.c is the other side."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def modulate(x, shift, scale):
    return x * (1 + scale[:, None]) + shift[:, None]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, ratio):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.attn = Attention(width, heads)
        inner = int(width * ratio)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, inner), "fc2": nn.Linear(inner, width)})
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, c):
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.adaLN_modulation(c).chunk(6, 1)
        x = x + gate_a[:, None] * self.attn(modulate(self.norm1(x), shift_a, scale_a))
        h = F.gelu(self.mlp["fc1"](modulate(self.norm2(x), shift_m, scale_m)), approximate="tanh")
        return x + gate_m[:, None] * self.mlp["fc2"](h)


class Final(nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.norm_final = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.linear = nn.Linear(width, outputs)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))

    def forward(self, x, c):
        shift, scale = self.adaLN_modulation(c).chunk(2, 1)
        return self.linear(modulate(self.norm_final(x), shift, scale))


def sincos(width, positions):
    angles = positions[:, None] / 10000 ** (np.arange(width // 2) / (width // 2))
    return np.concatenate((np.sin(angles), np.cos(angles)), 1)


class Dit(nn.Module):
    def __init__(self, input_size, patch_size, in_channels, hidden_size, depth, num_heads, mlp_ratio, class_dropout_prob, num_classes, learn_sigma):
        super().__init__()
        self.patch, self.outputs, along = patch_size, in_channels * (2 if learn_sigma else 1), input_size // patch_size
        self.x_embedder = nn.ModuleDict({"proj": nn.Conv2d(in_channels, hidden_size, patch_size, patch_size)})
        self.t_embedder = nn.ModuleDict({"mlp": nn.Sequential(nn.Linear(256, hidden_size), nn.SiLU(), nn.Linear(hidden_size, hidden_size))})
        self.y_embedder = nn.ModuleDict({"embedding_table": nn.Embedding(num_classes + (class_dropout_prob > 0), hidden_size)})
        rows, columns = np.divmod(np.arange(along * along), along)
        grid = np.concatenate((sincos(hidden_size // 2, columns), sincos(hidden_size // 2, rows)), 1)
        self.pos_embed = nn.Parameter(torch.tensor(grid, dtype=torch.float32)[None], requires_grad=False)
        self.blocks = nn.ModuleList([Block(hidden_size, num_heads, mlp_ratio) for _ in range(depth)])
        self.final_layer = Final(hidden_size, patch_size**2 * self.outputs)

    def forward(self, x, t, y):
        h = self.x_embedder["proj"](x).flatten(2).mT + self.pos_embed
        angles = t[:, None].float() * torch.exp(-math.log(10000) * torch.arange(128) / 128)[None]
        c = self.t_embedder["mlp"](torch.cat((angles.cos(), angles.sin()), 1)) + self.y_embedder["embedding_table"](y)
        for block in self.blocks:
            h = block(h, c)
        along, p = x.shape[2] // self.patch, self.patch
        h = self.final_layer(h, c).reshape(len(x), along, along, p, p, self.outputs)
        return torch.einsum("nhwpqc->nchpwq", h).reshape(len(x), self.outputs, *x.shape[2:])


class Process:
    """Diffusion in so many steps, in float64: means and variances of the step back by the posterior's own coefficients."""

    def __init__(self, count, first, last):
        beta = torch.linspace(first, last, count, dtype=torch.float64)
        self.left = torch.cumprod(1 - beta, 0)
        before = torch.cat((torch.ones(1, dtype=torch.float64), self.left[:-1]))
        least = beta * (1 - before) / (1 - self.left)
        self.least, self.most = torch.cat((least[1:2], least[1:])).log(), beta.log()
        self.of_image = beta * before.sqrt() / (1 - self.left)
        self.of_noisy = (1 - before) * (1 - beta).sqrt() / (1 - self.left)

    @staticmethod
    def at(table, t):
        return table[t].reshape(-1, 1, 1, 1)

    def noised(self, x, noise, t):
        left = self.at(self.left, t)
        return (left.sqrt() * x + (1 - left).sqrt() * noise).float()

    def bound(self, x, noisy, noise, variance, t):
        """In bits, the mean over all numbers."""
        x, noisy, left = x.double(), noisy.double(), self.at(self.left, t)
        found = (noisy - (1 - left).sqrt() * noise.double()) / left.sqrt()
        mean = self.at(self.of_image, t) * found + self.at(self.of_noisy, t) * noisy
        wanted = self.at(self.of_image, t) * x + self.at(self.of_noisy, t) * noisy
        least, most, share = self.at(self.least, t), self.at(self.most, t), (variance.double() + 1) / 2
        log_variance = share * most + (1 - share) * least
        back, known = (torch.distributions.Normal(m, (v / 2).exp()) for m, v in ((mean, log_variance), (wanted, least.expand_as(wanted))))
        divergence = torch.distributions.kl_divergence(known, back)

        def integral(at):
            at = (at - mean) / (log_variance / 2).exp()
            return 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (at + 0.044715 * at**3)))

        above, below = integral(x + 1 / 255), integral(x - 1 / 255)
        share = torch.where(x < -0.999, above, torch.where(x > 0.999, 1 - below, above - below))
        return torch.where(t.reshape(-1, 1, 1, 1) == 0, -share.clamp(min=1e-12).log(), divergence).mean() / math.log(2)
