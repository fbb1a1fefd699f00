"""The search's model of cost, written again from the papers, and every mesh by brute force. Only what a planned division says
(`plan --json`, search.divisions) is the generator's; gen/search/mesh.h names the papers.

A mesh is a dict: axes by name, zero_stage, sequence_parallelism, order, chunks, batch_size, num_steps, recomputes."""

import dataclasses
import itertools
import math

AXES = ("dp_replicate", "dp_shard", "cp", "sp", "pp", "tp", "ep")  # outermost first
FLOAT = 4  # bytes of a gradient or a weight on its way
BUCKET = 25 * 2**20


@dataclasses.dataclass
class Cluster:
    ranks: int
    per_node: int
    memory: float
    samples: int  # of a step
    search: dict  # peak, efficiency, memory_bandwidth, links, divisions, model_flops

    def division(self, mesh):
        wanted = [mesh["axes"][axis] for axis in ("tp", "cp", "sp", "ep")] + [mesh["sequence_parallelism"], mesh["recomputes"]]
        for one in self.search["divisions"]:
            if [one[key] for key in ("tp", "cp", "sp", "ep", "sequence_parallelism", "recomputes")] == wanted:
                return one
        return None

    def link(self, size, stride):
        """Latency and bandwidth for each of `size` ranks, `stride` apart."""
        within, between = self.search["links"]["within"], self.search["links"]["between"]
        if size * stride <= self.per_node:
            return within
        together = max(1, self.per_node // stride)
        width = between[1] * together / self.per_node
        return between[0], min(width, within[1]) if together > 1 else width


def ring(kind, size, volume):
    """Bytes that each of `size` ranks sends: Thakur, Rabenseifner and Gropp 2005."""
    if size == 1:
        return 0
    return volume * (size - 1) / size * (2 if kind == "all-reduce" else 1)


def collective(kind, link, size, volume, count=1):
    if size == 1:
        return 0
    rounds = size - 1 if kind == "all-to-all" else math.ceil(math.log2(size)) * (2 if kind == "all-reduce" else 1)
    return count * rounds * link[0] + ring(kind, size, volume) / link[1]


def roofline(search, division, part, samples):
    speed, width = search["peak"] * search["efficiency"], search["memory_bandwidth"]
    return sum(kernel["runs"][part] * max(kernel["flops"] * samples / speed, (kernel["bytes"] * samples + kernel["fixed"]) / width)
               for kernel in division["kernels"])


def step_seconds(cluster, mesh):
    """Seconds of a step."""
    axes, search, d = mesh["axes"], cluster.search, cluster.division(mesh)
    stride = {axis: math.prod(axes[inner] for inner in AXES[i + 1:]) for i, axis in enumerate(AXES)}
    p, m, b, v = axes["pp"], mesh["num_steps"], mesh["batch_size"], mesh["chunks"]
    each = d["layers"] / p
    forward, backward, first, last, deferred = (roofline(search, d, part, b) for part in range(5))
    inside = outside = 0
    for one in d["exchanges"]:
        size = axes[one["axis"]]
        seconds = collective(one["kind"], cluster.link(size, stride[one["axis"]]), size, one["bytes"] * b)
        inside += seconds * one["per_layer"]
        outside += seconds * one["around"]
    send = 0
    if p > 1:
        latency, width = cluster.link(p, stride["pp"])
        send = 2 * v * (latency + d["bytes"]["crossing"] * b / width)
    stages = [each * (forward + backward + inside) + send + (first if s == 0 else 0) + (last + outside if s == p - 1 else 0) for s in range(p)]
    slowest = max(stages)
    if mesh["order"] == "zero_bubble":  # Qi et al. 2024, ZB-H1: gradients of weights fill the bubble
        gaps = [max(0, stage - 2 * each * deferred) for stage in stages]
    else:  # Huang et al. 2019; Narayanan et al. 2021
        gaps = [stage / v for stage in stages]
    pipeline = m * slowest + sum(gaps) - gaps[stages.index(slowest)]

    held = max(elements(d, p, s)[0] + elements(d, p, s)[1] for s in range(p))
    g, r = axes["dp_shard"], axes["dp_replicate"] * axes["cp"] * axes["sp"] * axes["ep"]
    block = p * axes["tp"]
    buckets = max(1, min(d["parameters"] * held / d["all"], math.ceil(held * FLOAT / BUCKET)))
    reduce = collective("all-reduce", cluster.link(r, block * g), r, held * FLOAT / g, buckets)
    scatter = collective("reduce-scatter", cluster.link(g, block), g, held * FLOAT, buckets)
    gather = collective("all-gather", cluster.link(g, block), g, held * FLOAT, buckets)
    behind = (each * backward + last) if p == 1 else 0
    before = (each * forward + first) if p == 1 else 0

    def open_part(seconds, hidden):
        return max(0, seconds - hidden)

    exposed = {0: open_part(reduce, behind),
               1: open_part(reduce + scatter, behind) + gather,
               2: open_part(reduce, behind) + m * open_part(scatter, behind) + gather,
               3: open_part(reduce, behind) + m * (open_part(gather, before) + open_part(gather + scatter, behind))}[mesh["zero_stage"]]
    own = held / (g if mesh["zero_stage"] else 1)
    size = d["bytes"]
    return pipeline + exposed + own * (2 * size["weights"] + size["gradients"] + 2 * size["optimizer"]) / search["memory_bandwidth"]


def elements(d, p, stage):
    """Of a stage: of its layers, of what is around them."""
    around = (d["first"] if stage == 0 else 0) + (d["last"] if stage == p - 1 else 0)
    return d["layer"] * d["layers"] / p, around if p > 1 else d["all"] - d["layers"] * d["layer"]


def step_bytes(cluster, mesh):
    """Of the rank that takes the most: Rajbhandari et al. 2020 for the states, Korthikanti et al. 2022 for activations."""
    axes, d = mesh["axes"], cluster.division(mesh)
    p, m, g, size = axes["pp"], mesh["num_steps"], axes["dp_shard"], d["bytes"]
    most = 0
    for stage in {0, p - 1}:
        layers, around = elements(d, p, stage)
        whole = around + min(layers, 2 * d["layer"])
        weights = size["weights"] * whole + FLOAT * (layers + around) / g if mesh["zero_stage"] == 3 else size["weights"] * (layers + around)
        own = FLOAT * (layers + around) / g  # a rank's part of the sum, and of what a micro-batch adds to it
        gradients = size["gradients"] * (whole if mesh["zero_stage"] >= 2 else layers + around)
        gradients += own * (0 if not mesh["zero_stage"] else 2 if mesh["zero_stage"] >= 2 and m > 1 else 1)
        optimizer = size["optimizer"] * (layers + around) / (g if mesh["zero_stage"] else 1)
        alive = {"": 1, "gpipe": m, "1f1b": min(m, p - stage), "zero_bubble": min(m, p),
                 "interleaved": min(m, p - stage + (p - 1) / mesh["chunks"])}[mesh["order"]]
        later = 1 if mesh["order"] == "zero_bubble" else 0
        saved = alive * ((size["saved"] + later * size["deferred"]) * d["layers"] / p +
                         (size["saved_around"] + later * size["deferred_around"] if stage == p - 1 else 0))
        most = max(most, weights + gradients + optimizer + mesh["batch_size"] * (saved + size["scratch"] + size["batch"]))
    return most


def divisors(number):
    return [i for i in range(1, number + 1) if number % i == 0]


def all_meshes(cluster):
    """Every mesh that gen/search/space.h describes."""
    for d in cluster.search["divisions"]:
        inner = d["tp"] * d["cp"] * d["sp"] * d["ep"]
        for p, g in itertools.product(divisors(cluster.ranks // inner), repeat=2):
            rest = cluster.ranks // inner // p
            if rest % g or (p > 1 and (d["layers"] == 0 or d["layers"] % p)) or cluster.samples % (rest * d["ep"]):
                continue
            samples = cluster.samples // (rest * d["ep"])
            for stage, b in itertools.product([0] if g == 1 else [1, 2, 3], divisors(samples)):
                for order in [""] if p == 1 else ["gpipe", "1f1b", "interleaved", "zero_bubble"]:
                    per = d["layers"] // p
                    chunks = [1] if order != "interleaved" else [c for c in divisors(per)[1:] if samples // b % p == 0] if per else []
                    for v in chunks:
                        yield {"axes": {"dp_replicate": rest // g, "dp_shard": g, "pp": p, **{axis: d[axis] for axis in ("cp", "sp", "tp", "ep")}},
                               "zero_stage": stage, "sequence_parallelism": d["sequence_parallelism"], "order": order, "chunks": v,
                               "batch_size": b, "num_steps": samples // b, "recomputes": d["recomputes"]}


def name_of(mesh):
    """What makes two meshes different ones, however they run."""
    return (*mesh["axes"].values(), mesh["zero_stage"], mesh["sequence_parallelism"])


def best_of(cluster, count=10):
    """The fastest way of each mesh that fits, (seconds, mesh), from the fastest on; and how many meshes there are."""
    best, total = {}, 0
    for mesh in all_meshes(cluster):
        total += 1
        if step_bytes(cluster, mesh) > cluster.memory:
            continue
        seconds = step_seconds(cluster, mesh)
        if seconds < best.get(name_of(mesh), (math.inf,))[0]:
            best[name_of(mesh)] = (seconds, mesh)
    return sorted(best.values(), key=lambda one: one[0])[:count], total
