"""diffusers' UNet2DModel in PyTorch, by its names and its arithmetic: blocks of convolutions, with attention where
`attend` says so. examples/models/unet.c is its other side."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels, out, time, groups, eps):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, channels, eps), nn.GroupNorm(groups, out, eps)
        self.conv1, self.conv2 = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, out)
        self.conv_shortcut = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x))) + self.time_emb_proj(F.silu(time))[:, :, None, None]
        return self.conv_shortcut(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, channels, width, groups, eps):
        super().__init__()
        self.group_norm, self.width = nn.GroupNorm(groups, channels, eps), width
        self.to_q, self.to_k, self.to_v = (nn.Linear(channels, channels) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x):
        h = self.group_norm(x).flatten(2).mT
        q, k, v = (layer(h).unflatten(2, (-1, self.width)).transpose(1, 2) for layer in (self.to_q, self.to_k, self.to_v))
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.to_out[0](h).mT.unflatten(2, x.shape[2:])


class Sampler(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride, 1)

    def forward(self, x):
        return self.conv(x if self.conv.stride == (2, 2) else F.interpolate(x, scale_factor=2.0))


class Block(nn.Module):
    def __init__(self, inputs, out, time, attend, sampler, c):
        super().__init__()
        self.resnets = nn.ModuleList([Residual(n, out, time, c["norm_num_groups"], 1e-5) for n in inputs])
        if attend:
            self.attentions = nn.ModuleList([Attention(out, c["attention_head_dim"], c["norm_num_groups"], 1e-5) for _ in inputs[: attend]])
        if sampler:
            setattr(self, sampler, nn.ModuleList([Sampler(out, 2 if sampler == "downsamplers" else 1)]))


class UNet(nn.Module):
    def __init__(self, **c):
        super().__init__()
        self.c, widths, layers = c, c["block_out_channels"], c["layers_per_block"]
        time, last = 4 * widths[0], len(widths) - 1
        self.conv_in = nn.Conv2d(c["in_channels"], widths[0], 3, padding=1)
        self.time_embedding = nn.ModuleDict({"linear_1": nn.Linear(widths[0], time), "linear_2": nn.Linear(time, time)})
        if c["num_class_embeds"]:
            self.class_embedding = nn.Embedding(c["num_class_embeds"], time)
        self.down_blocks, self.up_blocks, skips = nn.ModuleList(), nn.ModuleList(), [widths[0]]
        for i, out in enumerate(widths):
            before = widths[max(i - 1, 0)]
            self.down_blocks.append(Block([before] + [out] * (layers - 1), out, time, c["attend"][i] * layers, "downsamplers" * (i < last), c))
            skips += [out] * (layers + (i < last))
        self.mid_block = Block([widths[-1]] * 2, widths[-1], time, 1, "", c)
        for i, out in reversed(list(enumerate(widths))):
            before = widths[min(i + 1, last)]
            inputs = [(before if j == 0 else out) + skips.pop() for j in range(layers + 1)]
            self.up_blocks.append(Block(inputs, out, time, c["attend"][i] * (layers + 1), "upsamplers" * (i > 0), c))
        self.conv_norm_out = nn.GroupNorm(c["norm_num_groups"], widths[0], 1e-5)
        self.conv_out = nn.Conv2d(widths[0], c["in_channels"], 3, padding=1)

    def time(self, steps, labels):
        half = self.c["block_out_channels"][0] // 2
        angles = steps[:, None] * torch.exp(-math.log(10000) * torch.arange(half) / half)
        waves = torch.cat((angles.cos(), angles.sin()), 1)
        time = self.time_embedding["linear_2"](F.silu(self.time_embedding["linear_1"](waves)))
        return time + self.class_embedding(labels) if self.c["num_class_embeds"] else time

    def forward(self, x, steps, labels):
        time, x = self.time(steps, labels), self.conv_in(x)
        skips = [x]
        for block in self.down_blocks:
            for j, layer in enumerate(block.resnets):
                x = layer(x, time)
                if hasattr(block, "attentions"):
                    x = block.attentions[j](x)
                skips.append(x)
            for sampler in getattr(block, "downsamplers", ()):
                x = sampler(x)
                skips.append(x)
        x = self.mid_block.resnets[1](self.mid_block.attentions[0](self.mid_block.resnets[0](x, time)), time)
        for block in self.up_blocks:
            for j, layer in enumerate(block.resnets):
                x = layer(torch.cat((x, skips.pop()), 1), time)
                if hasattr(block, "attentions"):
                    x = block.attentions[j](x)
            for sampler in getattr(block, "upsamplers", ()):
                x = sampler(x)
        return self.conv_out(F.silu(self.conv_norm_out(x)))


def noised(x, noise, steps, count=1000, first=1e-4, last=0.02):
    """x with its part of noise after so many steps of count."""
    left = torch.cumprod(1 - torch.linspace(first, last, count, dtype=torch.float64), 0)[steps].float().reshape(-1, 1, 1, 1)
    return left.sqrt() * x + (1 - left).sqrt() * noise
