"""join_uneven_inputs against Accelerate's own over gloo: two epochs of rows that do not fill a round of all ranks."""

import unittest

import torch
import torch.nn.functional as F
from peers import accelerated, peers, relative, trained
from rows import SEED, TRAIN, Mlp, Order, Rows
from torch.distributed.algorithms.join import Join

EPOCHS, LR = 2, 0.1


def joined(model, accelerator, by_all):
    """Accelerate joins GPUs alone; with another divisor PyTorch is asked itself."""
    if not by_all:
        return Join([model], divide_by_initial_world_size=False)
    type(accelerator).multi_device = property(lambda _: True)
    return accelerator.join_uneven_inputs([model], even_batches=False)


def train(rows, samples, by_all, rank, ranks, port, out):
    """One of Accelerate's ranks: the losses of its own batches, by epochs, and rank 0's weights at the end."""
    accelerator = accelerated(rank, ranks, port)
    model = torch.nn.parallel.DistributedDataParallel(Mlp(rows.weights))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, weight_decay=0.1)
    losses = []
    for epoch in range(EPOCHS):
        order = [rows.order.start(epoch * rows.order.taken + i) for i in range(samples)]
        data = torch.utils.data.TensorDataset(torch.tensor(rows.features[order]), torch.tensor(rows.labels[order]))
        loader = accelerator.prepare(torch.utils.data.DataLoader(data, batch_size=rows.batch))
        loader.batch_sampler.even_batches = False
        own = []
        with joined(model, accelerator, by_all):
            for features, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(features), labels)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                own.append(loss.item())
        losses.append(own)
    losses_of_ranks = [None] * ranks
    torch.distributed.all_gather_object(losses_of_ranks, losses)
    if rank == 0:
        out.put((losses_of_ranks, {name: value.numpy() for name, value in model.module.state_dict().items()}))
    torch.distributed.destroy_process_group()


def means(losses_of_ranks):
    """The loss of each step, over the ranks that have samples in it."""
    for epoch in range(EPOCHS):
        for step in range(len(losses_of_ranks[0][epoch])):
            there = [own[epoch][step] for own in losses_of_ranks if step < len(own[epoch])]
            yield sum(there) / len(there)


class Joined(unittest.TestCase):
    def check(self, ranks, batch, samples, by_all=True, **groups):
        parallelism = {"ddp": {"divide_by_initial_world_size": by_all}}
        rows = Rows(samples, batch, EPOCHS * -(-samples // (ranks * batch)), devices={"per_node": ranks}, parallelism=parallelism,
                    data={"drop_last": False, "even_batches": False, "join_uneven_inputs": True},
                    optimizer={"name": "sgd", "lr": LR, "weight_decay": 0.1, "clip_grad_norm": 0.5}, **groups)
        rows.order = Order(SEED, TRAIN, True, 0, samples, batch=ranks * batch, keeps_last=True)
        lines = trained(rows, ranks)
        losses_of_ranks, weights = peers(train, ranks, rows, samples, by_all)
        self.assertGreater(len(losses_of_ranks[0][0]), len(losses_of_ranks[-1][0]), "the last rank runs out of samples")
        wanted = list(means(losses_of_ranks))
        self.assertEqual(len(lines), len(wanted))
        for line, loss in zip(lines, wanted):
            self.assertLess(abs(line["loss"] / loss - 1), 1e-6, f"loss of step {line['step']}")
        after = rows.trainer.weights()
        for name, value in weights.items():
            self.assertLess(relative(after[name], value), 1e-5, name)

    def test_three_ranks(self):
        """Of a round of twelve rows there are two: two ranks have none, and the other one a short batch."""
        self.check(3, 4, 38)

    def test_by_those_that_are_left(self):
        self.check(2, 4, 27, by_all=False)


if __name__ == "__main__":
    unittest.main()
