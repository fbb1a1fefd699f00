"""Single edits of kernels, each of which makes threads of a block, or blocks, race, or threads miss a barrier: the claim no-race
notices it. Kinds as those of device_mutations.py, of the device's part."""

import re

from device_mutations import KERNEL, SWEEP, at_start_of, bodies
from mutations import insert, replace

PREPARE = re.compile(r"^__global__ void __launch_bounds__\(\d+\) (prepare_update)\([^;{]*\) \{\n", re.M)
UPDATE = re.compile(r"^__global__ void __launch_bounds__\(256\) update\([^;{]*\) \{\n", re.M)
# A statement that one thread of a block, or one lane of a warp, does.
ALONE = r"(\n +)if \((?:threadIdx\.x|lane) == 0\) (\{|(?:sums|mean|rstd|scale)\[)"
TURNED = "box[blockDim.x - 1 - threadIdx.x]"
EXCHANGE = "__shared__ float box[1024];\n  box[threadIdx.x] = 0.0f;\n  {}const float other = " + TURNED + ";\n  (void)other;"


def exchange(barrier):
    """Threads of the update write to shared memory, and read what others wrote."""
    update = re.compile(r"^  if \(progress->apply_update == 0\) return;\n", re.M)

    def kind(text, rng):
        at = update.search(text)
        return insert(text, at.end(), "  " + EXCHANGE.format(barrier)) if at else None
    return kind


KINDS = {
    "GPU: element of two threads": replace(r"(\n +)weights\[i\] = w;", r"\1weights[i / 2] = w;"),
    "GPU: element of the thread before": replace(r"(\n +)(moment_\d)\[i\] = (\w+);", r"\1\2[i] = \3 + \2[i > 0 ? i - 1 : 0];"),
    "GPU: number of two threads": replace(SWEEP, r"\g<1>256\2 / 2\3\4\5", bodies(UPDATE)),
    "GPU: all threads in place of one": replace(ALONE, r"\1\2", bodies(KERNEL)),
    "GPU: exchange without a barrier": exchange(""),
    "GPU: exchange with a barrier of some": exchange("if (threadIdx.x < 32) __syncthreads();\n  "),
    "GPU: exchange with a barrier by data": exchange("if (progress->stopped == 0) __syncthreads();\n  "),
    "GPU: barrier after some threads have left": at_start_of(PREPARE, "if (threadIdx.x > 5) return;"),
    "GPU: barrier left out": replace(r"\n    __syncthreads\(\);", ""),
    "GPU: row that is read and written": replace(
        r"(\n  const float l = all\.top \+ all\.rest;)", r"\1\n  if (threadIdx.x == 0) z[label == 0] = 0.0f;"),
}
