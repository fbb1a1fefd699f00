"""Diffusion of the paper's published code (Peebles, Xie, arXiv:2212.09748) in PyTorch: the noise that images get, and of the variances
that a model finds what the process says of the step back. examples/models/dit.c is the other side."""

import math

import torch


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
