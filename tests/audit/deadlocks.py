"""Single edits of programs whose ranks send to each other, each of which breaks the claim deadlock-free: stages of a
pipeline under every schedule, and ring attention. A kind takes a program's text and a random generator, as those of
mutations.py."""

from mutations import of_ranks, replace

CALLS = "send|start_send|receive|take|add_other"


def of_stages(*changes):
    """One of these changes of a program whose ranks are the stages of a pipeline."""
    return of_ranks(*changes, mark="(ACCEL_PP,")


def of_chunks(kind):
    """Of a program in which a rank has several stages."""
    return lambda text, rng: kind(text, rng) if "const size_t part = n" in text else None


def of_one_chunk(kind):
    """Of 1F1B with one stage on each rank: where a stage is ahead of this order, others wait for it."""
    return lambda text, rng: kind(text, rng) if "one back for each" in text and "forwards_ahead[]" not in text else None


def of_distinct_neighbours(kind):
    """Of more than two ranks with several stages each, which have other channels for gradients than for values."""
    return of_chunks(lambda text, rng: kind(text, rng) if "% 2 * 4 + (size_t)stage" in text else None)


# What goes round ranks: to whom, what, from whom, whereto, how much.
RING = r"(accel_send_receive\(ACCEL_CP, )(-?\d+), (\w+), (-?\d+), (\w+), (\d+)( \* sizeof)"

KINDS = {
    "message to another rank": replace(RING, lambda m, r: r.choice([
        f"{m[1]}{m[4]}, {m[3]}, {m[4]}, {m[5]}, {m[6]}{m[7]}", f"{m[1]}{m[2]}, {m[3]}, {m[2]}, {m[5]}, {m[6]}{m[7]}",
        f"{m[1]}{int(m[2]) + 1}, {m[3]}, {m[4]}, {m[5]}, {m[6]}{m[7]}", f"{m[1]}0, {m[3]}, 0, {m[5]}, {m[6]}{m[7]}"])),
    "message to another stage": replace(
        rf"(accel_(?:{CALLS})\(ACCEL_PP, )(\d)", lambda m, r: m[1] + str(int(m[2]) + r.choice([-1, 1]))),
    "message of another size": replace(
        r"(accel_(?:send|start_send|receive|take)\(ACCEL_PP, [^;]*, )(\d+)( \* sizeof)", lambda m, r: f"{m[1]}{int(m[2]) // r.choice([2, 4])}{m[3]}"),
    "message left out": replace(rf"\n  (?:if \(stage == \d\) )?accel_(?:{CALLS})\(ACCEL_PP, [^;]*;", ""),
    "message sent twice": replace(r"\n  (accel_(?:send|start_send|receive|take)\(ACCEL_PP, [^;]*;)", r"\g<0>\n  \1"),
    "sending instead of a receipt": replace(
        r"accel_(send|start_send|receive|take)(\(ACCEL_PP, )", lambda m, r: f"accel_{'send' if m[1] in ('receive', 'take') else 'receive'}{m[2]}"),
    "stage that leaves a micro-batch out": of_stages(
        (r"if \((stage|part) == 0\)(\s+stage_0_\w+_(?:forward|backward)\()", r"if (\1 == 0 && i > 0)\2"),
        (r"i < (\d+); i\+\+\) go_back\(", r"i < \1 - (stage == 0); i++) go_back("),
        (r"\n( +)go_forward\(", r"\n\1if (stage == 0 || i % 2 == 0) go_forward(")),
    "stages in another order": of_stages(
        (r"\n  add_gradients\(\);((?:\n.*){1,8}?\n  report.grad_norm = [^;]*;)",
         r"\n  if (stage == 0) add_gradients();\1\n  if (stage > 0) add_gradients();"),
        (r"\n  (accel_all_reduce_doubles\(ACCEL_PP, &report.loss, 1\);)((?:\n.*)*?)\n  (report.grad_norm = [^;]*;)",
         r"\n  if (stage == 0) \1\2\n  \3\n  if (stage > 0) \1")),
    "back before forward": of_one_chunk(of_stages(
        (r"\n( +)(go_forward\([^;]*;)\n +(go_back\([^;]*;)", r"\n\1if (stage == 0) \2\n\1\3\n\1if (stage > 0) \2"))),
    "stage that runs ahead": of_one_chunk(replace(
        r"(slots\[\] = \{)(\d+)", lambda m, r: m[1] + str(int(m[2]) + r.choice([1, 2])))),
    "rank that turns back too early": of_distinct_neighbours(replace(
        r"(forwards_ahead\[\] = \{)(\d+)", lambda m, r: m[1] + str(r.choice([0, 1])))),
    "stage with a forward too many": of_stages(
        (r"i < (\d+); i\+\+\) \{\n( +)go_forward", r"i < \1 + (stage == 0); i++) {\n\2go_forward"),
        (r"i < ahead; i\+\+\)", r"i < ahead + (stage == 1); i++)")),
    "message that its stage waits for": of_one_chunk(replace(r"accel_start_send(\(ACCEL_PP, )", r"accel_send\1")),
    "receipts that wait for what is sent": of_chunks(lambda t, r: t.replace("accel_take(", "accel_receive(")),
    "sum of one stage": replace(r"\n  (accel_all_reduce_\w+\(ACCEL_PP)", r"\n  if (stage == 1) \1"),
}
