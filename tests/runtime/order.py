"""Which window or row a position is, written a second time from docs/data.md: the oracle of the runtime, and the
means to feed another framework the same batches."""

import math

MASK = 0xFFFFFFFF
TRAIN, EVAL = 0, 1
SHUFFLE, OFFSET, HIDE, PART = 2, 3, 5, 6


def philox(counter, key):
    """Philox-4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def random_word(seed, stream, index):
    """accel_random"""
    block = index // 4
    return philox((block & MASK, block >> 32, stream & MASK, stream >> 32), (seed & MASK, seed >> 32))[index % 4]


def masked(seed, split, position, tokens, vocabulary, mask_token, probability=0.15, random=0.1, keep=0.1):
    """The window at a position as masked language modelling has it: tokens and targets."""
    hidden, targets = list(tokens), [-100] * len(tokens)
    for t, token in enumerate(tokens):
        index = position * len(tokens) + t
        draw = philox((index & MASK, index >> 32, split, HIDE << 24), (seed & MASK, seed >> 32))
        if draw[0] / 2**32 >= probability:
            continue
        targets[t] = token
        how = draw[1] / 2**32
        hidden[t] = draw[2] * vocabulary >> 32 if how < random else token if how < random + keep else mask_token
    return hidden, targets


def mix(x):
    """The finaliser of MurmurHash3."""
    x = ((x ^ x >> 16) * 0x85EBCA6B) & MASK
    x = ((x ^ x >> 13) * 0xC2B2AE35) & MASK
    return x ^ x >> 16


def permute(seed, stream, n, index):
    """Where index goes: a Feistel network on the smallest 2^bits >= n (at least 4), walked until below n."""
    bits = max(2, (n - 1).bit_length())
    low_bits, high_bits = bits // 2, bits - bits // 2
    keys = [(random_word(seed, stream, i % 4) + i * 0x9E3779B9) & MASK for i in range(24)]
    while True:
        low, high = index % (1 << low_bits), index >> low_bits
        for step in range(0, 24, 2):
            low ^= mix(high ^ keys[step]) % (1 << low_bits)
            high ^= mix(low ^ keys[step + 1]) % (1 << high_bits)
        index = high << low_bits | low
        if index < n:
            return index


class Order:
    """samples: in an epoch, of which it takes what makes whole batches, or all, the last batch then short;
    start(position): the first token of a window (length given) or the row. One rank."""

    def __init__(self, seed, split, shuffle, first, count, length=None, batch=1, keeps_last=False):
        self.seed, self.split, self.shuffle, self.first = seed, split, shuffle, first
        self.samples, self.stride, self.offsets = count, 1, 1
        if length is not None:
            self._cut_windows(count, length)
        rest = self.samples % batch if split == TRAIN else 0
        self.taken = self.samples + (batch - rest if keeps_last and rest else -rest)

    def _cut_windows(self, count, length):
        self.samples, self.stride = max(0, (count - 1) // length), length
        if self.shuffle and self.split == TRAIN and self.samples > 0:
            if self.samples > 1:
                self.samples = (count - length) // length
            self.offsets = min(length, count - self.samples * length)

    def counts(self, position):
        return position % self.taken < self.samples

    def start(self, position):
        epoch, index = divmod(position, self.taken)
        if self.split == EVAL:
            epoch = 0
        if self.shuffle:
            index = permute(self.seed, SHUFFLE << 56 | self.split << 48 | epoch, self.samples, index)
        return self.at(epoch, index)

    def at(self, epoch, index):
        offset = random_word(self.seed, OFFSET << 56 | self.split, epoch) * self.offsets >> 32
        return self.first + offset + index * self.stride


class Mixture:
    """Windows of several files, given as [(file, (first, count))]; start(position): (file, first token)."""

    def __init__(self, seed, split, shuffle, parts, length, weights=None):
        self.seed, self.split, self.shuffle, self.weights = seed, split, shuffle, weights
        self.files = [file for file, _ in parts]
        self.orders = [Order(seed, split, shuffle, first, count, length) for _, (first, count) in parts]
        self.samples = sum(one.samples for one in self.orders)

    def start(self, position):
        epoch, index = divmod(position, self.samples)
        if self.split == EVAL:
            epoch = 0
        if self.shuffle:
            index = permute(self.seed, SHUFFLE << 56 | self.split << 48 | epoch, self.samples, index)
        if self.weights is not None:
            return self._drawn(epoch * self.samples + index)
        part = 0
        while index >= self.orders[part].samples:
            index -= self.orders[part].samples
            part += 1
        return self.files[part], self.orders[part].at(epoch, index)

    def _drawn(self, draw):
        low, high = 0, len(self.orders)
        while high - low > 1:
            middle = low + (high - low) // 2
            fraction = sum(self.weights[low:middle]) / sum(self.weights[low:high])
            before, after = math.floor(draw * fraction), math.floor((draw + 1) * fraction)
            low, high, draw = (low, middle, before) if after > before else (middle, high, draw - before)
        one = self.orders[low]
        epoch, index = divmod(draw, one.samples)
        if self.shuffle:
            index = permute(self.seed, (PART << 56 | low << 40) + epoch, one.samples, index)
        return self.files[low], one.at(epoch, index)


def splits(count, fraction):
    """(first, count) of the training and the evaluation split of one source."""
    kept = int(count * (1.0 - fraction))
    return (0, kept), (kept, count - kept)
