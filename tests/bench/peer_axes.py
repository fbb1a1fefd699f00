"""The benchmark's model divided among two ranks by PyTorch's own means: matrices, sequences, layers.

Each function takes (model, configuration, optimizer_of) and returns a Divided. The weights are those of the model in one process.
"""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed._functional_collectives import all_gather_tensor_autograd, all_to_all_single_autograd
from torch.distributed.device_mesh import init_device_mesh


@dataclass
class Divided:
    optimizer: torch.optim.Optimizer
    clip: Callable  # of gradients to the norm 1
    step: Callable  # (tokens, targets) -> the loss of both ranks, once its gradients are there


def trained_by(model, backward=torch.Tensor.backward):
    def step(tokens, targets):
        loss = model(tokens, targets)
        backward(loss)
        return loss.item()

    return step


def undivided(model, c, optimizer_of):
    return Divided(optimizer_of(model.parameters()), lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0), trained_by(model))


# Matrices.


def tensor_parallel(model, c, optimizer_of, compiled=False):
    """Matrices and heads of attention divided among the ranks, as Megatron-LM: columns of c_attn and c_fc, rows of the products after
    them; everything else is whole on each rank. The rows of c_attn's weight are first reordered, queries, keys and values of a rank's
    heads next to each other, so that it stays one product."""
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        for parameter in block.attn.c_attn.parameters():
            parameter.data = parameter.data.unflatten(0, (3, mesh.size(), -1)).transpose(0, 1).flatten(0, 2)
    plan = {"attn.c_attn": ColwiseParallel(), "attn.c_proj": RowwiseParallel(), "c_fc": ColwiseParallel(), "c_proj": RowwiseParallel()}
    model = parallelize_module(model, mesh, {f"blocks.*.{name}": style for name, style in plan.items()})
    # One fused update, or norm, takes DTensors or tensors, not both.
    parameters = list(model.parameters())
    groups = [[p for p in parameters if isinstance(p, DTensor)], [p for p in parameters if not isinstance(p, DTensor)]]

    def clip():
        parts, whole = (nn.utils.get_total_norm([p.grad for p in group]) for group in groups)
        norm = torch.hypot(parts.full_tensor(), whole)
        for group in groups:
            nn.utils.clip_grads_with_norm_(group, 1.0, norm)

    optimizer = optimizer_of([{"params": group} for group in groups])
    return Divided(optimizer, clip, trained_by(torch.compile(model) if compiled else model))


# Sequences: each rank has the rows of its positions, and gradients are averaged by DDP.


def heads_for_positions(q, k, v):
    """DeepSpeed-Ulysses: ranks exchange their positions of all heads for all positions of their heads, and back."""
    ranks = dist.get_world_size()

    def exchange(x, give, take):
        """Parts of dimension GIVE go to the ranks; what they give is concatenated along TAKE."""
        parts = torch.stack(x.chunk(ranks, give)).contiguous()
        there = all_to_all_single_autograd(parts.flatten(0, 1), None, None, dist.group.WORLD).view_as(parts)
        return torch.cat(tuple(there), take)

    q, k, v = (exchange(x, 1, 2) for x in (q, k, v))
    return exchange(F.scaled_dot_product_attention(q, k, v, is_causal=True), 2, 1)


def chunks_of(c):
    """The positions of this rank, two chunks: number r, and number r from the end, so that causal attention is as much work for each."""
    rank, chunk = dist.get_rank(), c.length // (2 * dist.get_world_size())
    return [slice(at * chunk, (at + 1) * chunk) for at in (rank, 2 * dist.get_world_size() - 1 - rank)]


def gathered(c):
    """Attention of this rank's queries to keys and values gathered from all ranks, as Llama 3's context parallelism."""
    ranks, chunks = dist.get_world_size(), chunks_of(c)
    # The order in which chunks come together: 0, 2N-1, 1, 2N-2, ...; numbered in the sequence's order.
    order = [at for rank in range(ranks) for at in (rank, 2 * ranks - 1 - rank)]
    back = [order.index(at) for at in range(2 * ranks)]
    masks = [torch.ones(c.length, c.length, dtype=torch.bool).tril()[at, : at.stop] for at in chunks]

    def whole(x):
        parts = all_gather_tensor_autograd(x, 2, dist.group.WORLD).chunk(2 * ranks, 2)
        return torch.cat([parts[at] for at in back], 2)

    def attend(q, k, v):
        k, v = whole(k), whole(v)
        parts = zip(q.chunk(2, 2), chunks, masks)
        return torch.cat([F.scaled_dot_product_attention(part, k[:, :, : at.stop], v[:, :, : at.stop], attn_mask=mask)
                          for part, at, mask in parts], 2)

    return attend


def sequence_parallel(model, c, optimizer_of, attend, parts):
    for block in model.blocks:
        block.attn.attend = attend
    own = torch.cat([torch.arange(c.length)[part] for part in parts])
    model.positions = own
    ranks = nn.parallel.DistributedDataParallel(model)
    step = trained_by(ranks)

    def step_of_part(tokens, targets):
        loss = torch.tensor(step(tokens[:, own].contiguous(), targets[:, own].contiguous()))
        dist.all_reduce(loss)
        return loss.item() / dist.get_world_size()

    return Divided(optimizer_of(model.parameters()), lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0), step_of_part)


def ulysses(model, c, optimizer_of):
    part = c.length // dist.get_world_size()
    return sequence_parallel(model, c, optimizer_of, heads_for_positions, [slice(dist.get_rank() * part, (dist.get_rank() + 1) * part)])


def context_parallel(model, c, optimizer_of):
    return sequence_parallel(model, c, optimizer_of, gathered(c), chunks_of(c))


# Layers.


class Stage(nn.Module):
    """The first or the last half of a GPT; both have the tied table of tokens."""

    def __init__(self, model, rank, ranks):
        super().__init__()
        layers = len(model.blocks) // ranks
        self.blocks = model.blocks[rank * layers : (rank + 1) * layers]
        self.first, self.last = rank == 0, rank == ranks - 1
        self.wte = model.wte if self.first or self.last else None
        self.wpe = model.wpe if self.first else None
        self.ln_f = model.ln_f if self.last else None

    def forward(self, x):
        if self.first:
            x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight) if self.last else x


def pipeline(model, c, optimizer_of, schedule, micro_batches):
    from torch.distributed import pipelining

    rank, ranks = dist.get_rank(), dist.get_world_size()
    half = Stage(model, rank, ranks)
    stage = pipelining.PipelineStage(half, rank, ranks, torch.device("cpu"))
    schedule = getattr(pipelining, schedule)(
        stage, micro_batches, loss_fn=lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    parameters = list(half.parameters())
    own = [p for p in parameters if rank == 0 or p is not half.wte.weight]  # the tied table counts once in the norm

    def clip():
        squares = nn.utils.get_total_norm([p.grad for p in own]) ** 2
        dist.all_reduce(squares)
        nn.utils.clip_grads_with_norm_(parameters, 1.0, squares.sqrt())

    def step(tokens, targets):
        losses = []
        schedule.step(*([tokens] if half.first else []), **({"target": targets, "losses": losses} if half.last else {}))
        dist.all_reduce(half.wte.weight.grad)
        loss = torch.stack(losses).mean() if half.last else torch.zeros(())
        dist.broadcast(loss, ranks - 1)
        return loss.item()

    return Divided(optimizer_of(parameters), clip, step)


AXES = {
    "one": undivided,
    "tp": tensor_parallel,
    "tp-compile": lambda *words: tensor_parallel(*words, compiled=True),
    "sp": ulysses,
    "cp": context_parallel,
    "pp-gpipe": lambda *words: pipeline(*words, "ScheduleGPipe", 4),
    "pp-1f1b": lambda *words: pipeline(*words, "Schedule1F1B", 4),
}
