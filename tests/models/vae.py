"""diffusers' AutoencoderKL in PyTorch, by its names and its arithmetic. examples/models/vae.c is its other side."""

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels, out, groups):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, channels, 1e-6), nn.GroupNorm(groups, out, 1e-6)
        self.conv1, self.conv2 = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x):
        return self.conv_shortcut(x) + self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))


class Attention(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.group_norm = nn.GroupNorm(groups, channels, 1e-6)
        self.to_q, self.to_k, self.to_v = (nn.Linear(channels, channels) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x):
        h = self.group_norm(x).flatten(2).mT
        h = F.scaled_dot_product_attention(self.to_q(h), self.to_k(h), self.to_v(h))
        return x + self.to_out[0](h).mT.unflatten(2, x.shape[2:])


class Sampler(nn.Module):
    def __init__(self, channels, narrows):
        super().__init__()
        self.narrows = narrows
        self.conv = nn.Conv2d(channels, channels, 3, 2, 0) if narrows else nn.Conv2d(channels, channels, 3, 1, 1)

    def forward(self, x):
        return self.conv(F.pad(x, (0, 1, 0, 1)) if self.narrows else F.interpolate(x, scale_factor=2.0))


class Block(nn.Module):
    def __init__(self, channels, out, layers, sampler, groups):
        super().__init__()
        self.resnets = nn.ModuleList([Residual(out if j else channels, out, groups) for j in range(layers)])
        if sampler:
            setattr(self, sampler, nn.ModuleList([Sampler(out, sampler == "downsamplers")]))

    def forward(self, x):
        for layer in (*self.resnets, *getattr(self, "downsamplers", ()), *getattr(self, "upsamplers", ())):
            x = layer(x)
        return x


class Middle(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.resnets = nn.ModuleList([Residual(channels, channels, groups) for _ in range(2)])
        self.attentions = nn.ModuleList([Attention(channels, groups)])

    def forward(self, x):
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Half(nn.Module):
    """The encoder, or with `up` the decoder."""

    def __init__(self, inputs, outputs, widths, layers, groups, up):
        super().__init__()
        last, self.up = len(widths) - 1, up
        order = list(reversed(widths)) if up else widths
        self.conv_in = nn.Conv2d(inputs, order[0], 3, padding=1)
        blocks = nn.ModuleList([Block(order[max(i - 1, 0)], out, layers + up, ("upsamplers" if up else "downsamplers") * (i < last), groups)
                                for i, out in enumerate(order)])
        setattr(self, "up_blocks" if up else "down_blocks", blocks)
        self.mid_block = Middle(widths[-1], groups)
        self.conv_norm_out, self.conv_out = nn.GroupNorm(groups, order[-1], 1e-6), nn.Conv2d(order[-1], outputs, 3, padding=1)

    def forward(self, x):
        parts = [self.mid_block, *self.up_blocks] if self.up else [*self.down_blocks, self.mid_block]
        x = self.conv_in(x)
        for part in parts:
            x = part(x)
        return self.conv_out(F.silu(self.conv_norm_out(x)))


class Vae(nn.Module):
    def __init__(self, in_channels, latent_channels, block_out_channels, layers_per_block, norm_num_groups):
        super().__init__()
        same = (block_out_channels, layers_per_block, norm_num_groups)
        self.encoder = Half(in_channels, 2 * latent_channels, *same, False)
        self.decoder = Half(latent_channels, in_channels, *same, True)
        self.quant_conv = nn.Conv2d(2 * latent_channels, 2 * latent_channels, 1)
        self.post_quant_conv = nn.Conv2d(latent_channels, latent_channels, 1)

    def forward(self, x, noise):
        """The picture again, and each sample's divergence: torch.distributions'."""
        mean, log_variance = self.quant_conv(self.encoder(x)).chunk(2, 1)
        drawn_from = torch.distributions.Normal(mean, (log_variance.clamp(-30, 20) / 2).exp())
        divergence = torch.distributions.kl_divergence(drawn_from, torch.distributions.Normal(0.0, 1.0))
        return self.decoder(self.post_quant_conv(drawn_from.loc + drawn_from.scale * noise)), divergence.sum()
