"""A case of a kernel: what it is given, in memory between guards, and what must come out."""

import numpy as np


def strides_of(shape, order=None, gap=0):
    """Strides of a tensor whose dimensions are in memory in `order` (last one fastest), rows `gap` elements apart."""
    order = order or list(range(len(shape)))
    strides, step = [0] * len(shape), 1
    for position, axis in enumerate(reversed(order)):
        strides[axis] = step
        step *= shape[axis]
        if position == 0:
            step += gap
    return strides


def encoded(type_name, values):
    """Numbers as the elements of a type, rounded to the nearest, ties to even."""
    if type_name == "accel_f16":
        return np.asarray(values, np.float32).astype(np.float16).view(np.uint16)
    if type_name == "accel_bf16":
        bits = np.asarray(values, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)
    return values


def decoded(type_name, elements):
    if type_name == "accel_f16":
        return np.ascontiguousarray(elements).view(np.float16).astype(np.float64)
    if type_name == "accel_bf16":
        return (elements.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return elements.astype(np.float64)


class Memory:
    """An operand's memory between guard elements, and the values that it stands for."""

    GUARD = 64
    TYPES = {"uint8_t": np.uint8, "int8_t": np.int8, "int32_t": np.int32, "int64_t": np.int64, "accel_bf16": np.uint16, "accel_f16": np.uint16}

    def __init__(self, operand, values):
        dtype = self.TYPES.get(operand.type, np.float32)
        self.type = operand.type
        # Inputs end at the end of their block, so that the address sanitizer sees a read past them.
        self.block = np.full(operand.elements + 2 * self.GUARD, 77, dtype)
        self.array = self.block[self.GUARD : self.GUARD + operand.elements]
        self.view = np.lib.stride_tricks.as_strided(
            self.array, operand.shape, [s * self.array.itemsize for s in operand.strides]
        )
        self.view[...] = encoded(operand.type, values)
        self.inside = np.zeros(len(self.block), bool)
        positions = sum(
            (np.arange(n).reshape([-1] + [1] * (operand.rank - 1 - i)) * s
             for i, (n, s) in enumerate(zip(operand.shape, operand.strides))), np.zeros([], int))
        self.inside[self.GUARD + np.broadcast_to(positions, operand.shape).ravel()] = True

    def values(self):
        return decoded(self.type, self.view)

    def untouched(self):
        return bool((self.block[~self.inside] == 77).all())


class Case:
    def __init__(self, kernel, inputs, truths, in_place=None, stream=None, tolerance=2e-5, scales=None):
        """truths: by output; what is masked there (numpy.ma) may come out as any number."""
        self.kernel, self.inputs, self.truths = kernel, inputs, truths
        self.in_place, self.stream, self.tolerance, self.scales = in_place or {}, stream, tolerance, scales or {}
        self.error = 0.0  # the largest so far, relative to the largest value

    def run(self, function):
        """The outputs' memories after one call, and what stood in them before."""
        given = {operand.name: Memory(operand, self.inputs[operand.name]) for operand in self.kernel.inputs}
        outputs, before = [], {}
        for operand in self.kernel.outputs:
            before[operand.name] = np.random.default_rng(1).standard_normal(operand.shape).astype(np.float32)
            if operand.name in self.in_place:
                outputs.append(given[self.in_place[operand.name]])
            else:
                unset = -1 if operand.type.startswith("int") else 77 if operand.type == "uint8_t" else np.float32(np.nan)
                outputs.append(Memory(operand, before[operand.name] if operand.accumulate else unset))
        arguments = [m.array for m in outputs] + [given[operand.name].array for operand in self.kernel.inputs]
        function(*arguments, **({} if self.stream is None else {"stream": self.stream}))
        return outputs, before

    def check(self, function, set_threads=None, deterministic=None):
        """Runs the kernel; what is wrong as a sentence, or None. deterministic: the same kernel as a program with
        training.deterministic has it, where that is another. set_threads: also compares bits, of one number of threads run after
        run, and of several numbers with each other where that is promised."""
        message = self.wrong(function)
        if not message and deterministic:
            message = self.wrong(deterministic)
        if not message and set_threads:
            message = self.changing(function, set_threads, (2,) if deterministic else (1, 3))
        if not message and set_threads and deterministic:
            message = self.changing(deterministic, set_threads, (1, 3))
        return message

    def changing(self, function, set_threads, counts):
        """Whether bits are not those of two threads, as a sentence."""
        outputs, _ = self.run(function)
        for threads in counts:
            set_threads(threads)
            others, _ = self.run(function)
            set_threads(2)
            if any(a.block.tobytes() != b.block.tobytes() for a, b, o in zip(outputs, others, self.kernel.outputs) if not o.workspace):
                return f"other bits with {threads} threads"
        return None

    def wrong(self, function):
        """What is not as in the truth, as a sentence."""
        outputs, before = self.run(function)
        for operand, memory in zip(self.kernel.outputs, outputs):
            if operand.workspace:
                continue
            truth = np.ma.asarray(self.truths[operand.name], np.float64)
            any_number, truth = np.ma.getmaskarray(truth), truth.data
            if operand.accumulate:
                truth = truth + before[operand.name]
            if not memory.untouched():
                return f"{operand.name}: wrote outside"
            got = np.where(any_number, truth, memory.values())
            if np.isnan(got).any() and not np.isnan(truth).any():
                return f"{operand.name}: NaN"
            both = np.isnan(got) & np.isnan(truth)
            scale = max(1e-3, self.scales.get(operand.name, 0.0), float(np.abs(np.where(both, 0, truth)).max(initial=0)))
            error = float(np.abs(np.where(both, 0, got - truth)).max(initial=0)) / scale
            self.error = max(self.error, error)
            if not error < self.tolerance:
                return f"{operand.name}: error {error:.3g} of the largest value"
        return None


SIZES = [1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 40, 64, 65]


def drawn_size(rng, most=65):
    """An extent of a random case."""
    return int(rng.choice([size for size in SIZES if size <= most]))


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)
