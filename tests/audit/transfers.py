"""Single edits of programs with collectives in flight, each of which breaks the claim no-race-with-transfers: gradients in
buckets, ZeRO's shards, stages of a pipeline, experts, ring attention, and the host's halves of programs for GPUs. A kind takes
a program's text and a random generator, as those of mutations.py."""

import re

from mutations import regions, replace

START = r"accel_start_(?:all_reduce|reduce_scatter|all_gather)\w*\((?:[^()]|\([^()]*\))*\);"
GATHER = r"accel_start_all_gather\w*\([^;]*;"
WAIT = r"\n  accel_wait_(?:collectives|gathers)\(\);"
LAST = "(arena->all_gradients + sizeof arena->all_gradients / sizeof(float))"  # the end, of the last sums


def of(mark, kind, without="\0"):
    """Of programs that have `mark`."""
    return lambda text, rng: kind(text, rng) if re.search(mark, text) and not re.search(without, text) else None


def of_cpu(mark, kind):
    return of(mark, kind, "accel_gpu_")


def one_of(*changes):
    """One of the changes, (pattern, new text), that the program has."""
    def kind(text, rng):
        found = [change for change in changes if re.search(change[0], text)]
        return replace(*rng.choice(found))(text, rng) if found else None
    return kind


def before_sums(line):
    """A line between the backward and the wait for its sums."""
    return replace(r"(?:(?<=\n  backward\(\);)|(?<=end_step\(void\) \{))\n  accel_wait_collectives\(\);",
                   lambda m, r: f"\n  {line}{m[0]}")


def other_entry(table, change):
    """Another number in a table of the program's."""
    def kind(text, rng):
        match = re.search(rf"{table} = \{{([^}}]*)\}}", text)
        numbers = [int(n) for n in match[1].split(",")] if match else []
        new = change(list(numbers), rng)
        return None if new is None or new == numbers else (
            text[:match.start(1)] + ", ".join(map(str, new)) + text[match.end(1):])
    return kind


def fewer(numbers, rng):
    places = [i for i, n in enumerate(numbers) if n > 0]
    if not places:
        return None
    i = rng.choice(places)
    return [*numbers[:i], numbers[i] - rng.choice([1, numbers[i]]), *numbers[i + 1:]]


def more(numbers, rng):
    i = rng.randrange(len(numbers)) if numbers else None
    return None if i is None else [*numbers[:i], numbers[i] + 20, *numbers[i + 1:]]


def layer_in_use(numbers, rng):
    """Of two layers' weights that are held at a time: those of the layer at hand are replaced by another one's."""
    places = [i for i in range(len(numbers)) if numbers[i] == i + 1 < len(numbers) or numbers[i] == i - 1]
    if not places:
        return None
    i = rng.choice(places)
    return [*numbers[:i], i + 2 if i + 2 < len(numbers) else i - 2, *numbers[i + 1:]] if i >= 2 or i + 2 < len(numbers) else None


def in_step(pattern, new):
    """A change in the function of the step."""
    def kind(text, rng):
        start = re.search(r"\nstatic void step\([^;{]*\) \{\n", text)
        if not start:
            return None
        end = text.index("\n}\n", start.end())
        changed = re.sub(pattern, new, text[start.end():end + 1], count=1)
        return None if changed == text[start.end():end + 1] else text[:start.end()] + changed + text[end + 1:]
    return kind


KINDS = {
    "sum read in flight": of_cpu(START, before_sums(f"report.loss += {LAST}[-40];")),
    "sum scaled in flight": of_cpu(START, before_sums(f"for (int k = 40; k < 60; k++) {LAST}[-k] *= 0.5f;")),
    "sum cleared in flight": of_cpu(START, before_sums(f"memset(&{LAST}[-60], 0, 60 * sizeof(float));")),
    "sum cleared in flight on a GPU": of(r"accel_gpu_", before_sums(
        f"accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), &{LAST}[-60], 60 * sizeof(float));")),
    "gradients cleared while sent": of_cpu(r"whole_gradients", one_of(
        (r"\n(  accel_advance_collectives\(\);)", r"\n  memset(arena->whole_gradients, 0, sizeof arena->whole_gradients);\n\1"))),
    "weights read in flight": of_cpu(r"arena->gathered", one_of(
        (r"\n  accel_wait_gathers\(\);\n  gather_layer", r"\n  arena->result[0] += arena->gathered[5000] + arena->gathered[9000];\g<0>"))),
    "weights updated in flight": of_cpu(r"arena->gathered", one_of(
        (r"\n  accel_wait_gathers\(\);\n  gather_layer", r"\n  memset(arena->all_weights, 0, sizeof arena->all_weights);\g<0>"))),
    "sum without its wait": replace(r"\n  accel_wait_collectives\(\);", ""),
    "layer without its wait": replace(r"\n  accel_wait_gathers\(\);(\n  gather_layer)", r"\1"),
    "weights without their wait": of(r"\n  accel_wait_gathers\(\);(?!\n  gather_layer)", replace(
        r"\n  accel_wait_gathers\(\);(?!\n  gather_layer)", "")),
    "buffer without its wait": replace(r"\n +accel_wait_reductions\([^;]*;", ""),
    "layer that is not waited for": replace(r"\n +hold_layer\([^;]*;", "", regions("forward")),
    "sums fewer than needed": other_entry(r"reduced\[\]", fewer),
    "sums more than started": other_entry(r"reduced\[\]", more),
    "layer into one in use": other_entry(r"begins\[\]", layer_in_use),
    "sum started twice": of_cpu(START, replace(rf"\n( +)(?!.*chained)({START})", r"\n\1{ \2 \2 }")),
    "sum of a bucket too long": of_cpu(r"buckets\[\]", replace(
        r"(buckets\[i\]\.first, )(buckets\[i\]\.count)", r"\1\2 + 64")),
    "shards that arrive where they are added": of_cpu(START, replace(
        r"(accel_start_reduce_scatter_onto\([^;]*?)arena->arriving", r"\1arena->all_gradients")),
    "shards too long": of_cpu(START, replace(
        r"(accel_start_reduce_scatter\w*\([^;]*ranges\[\w\]\.shard_size)(, ranges\[\w\]\.shard_size)", r"\1 + 16\2 + 16")),
    "sums that are never started": of_cpu(START, replace(rf"\n +(?!.*chained){START}(?=\n  accel_advance)", "")),
    "gathers that are never started": of(GATHER, lambda t, r: re.sub(rf"\n +{GATHER}", "", t)),
    "sent before it is complete": replace(
        r"\n(  \w+(?:_backward|sum|matmul)\w*\([^;]*gradients->[^;]*;)\n(  send_gradients\([^;]*;)", r"\n\2\n\1"),
    "sum started at the end of a step": of(r"void send_gradients\(size_t first", in_step(r"\Z", "  send_gradients(0, 1);\n")),
    "gather started at the end of a step": of(r"static void gather_range", in_step(r"\Z", "  gather_range(0);\n")),
    "norm before the wait": replace(
        r"(\n  accel_wait_collectives\(\);)((?:\n  (?!accel_wait).*)*?\n  (?:report.grad_norm = gradient_norm|sum_squares)[^;]*;)", r"\2\1"),
    "wait by data": of_cpu(WAIT, replace(
        r"\n  (accel_wait_(?:collectives|gathers)\(\);)", r"\n  if (arena->result[0] < 9.0f) \1")),
    "start by data": of_cpu(START, replace(rf"\n( +)(?!.*chained)({START})", r"\n\1if (arena->result[0] < 9.0f) \2")),
    "message written in flight": replace(
        r"\n  (accel_start_send\(ACCEL_PP, \d, ([\w>.\[\]-]+), [^;]*;)", r"\n  \1\n  memset(\2, 0, 64);"),
    "message without its wait": replace(
        r"\n  accel_wait_send\(arena->\w+\);(\n  memcpy)", r"\1"),
    "messages without a wait": of(r"accel_take\(", lambda t, r: re.sub(r"\n +accel_wait_sends\(\);", "", t)),
    "message that is received into": replace(
        r"\n  (accel_start_send\(ACCEL_PP, (\d), ([\w>.\[\]-]+), ([^;]*)\);)", r"\n  \1\n  accel_take(ACCEL_PP, \2, \3, \4);"),
}
