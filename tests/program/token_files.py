"""Token files that say which tokens are trained on, by docs/data.md; their sum is XXH64 (Collet), by its specification."""

import struct

import numpy as np

P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
ALL = 2**64 - 1


def rotate(x, bits):
    return (x << bits | x >> 64 - bits) & ALL


def turn(lane, word):
    return rotate((lane + word * P2) & ALL, 31) * P1 & ALL


def xxh64(data):
    """With the seed 0."""
    at, lanes = 0, [P1 + P2 & ALL, P2, 0, -P1 & ALL]
    while len(data) - at >= 32:
        lanes = [turn(lane, int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little")) for i, lane in enumerate(lanes)]
        at += 32
    h = P5
    if at > 0:
        h = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & ALL
        for lane in lanes:
            h = ((h ^ turn(0, lane)) * P1 + P4) & ALL
    h = h + len(data) & ALL
    while len(data) - at >= 8:
        h = rotate(h ^ turn(0, int.from_bytes(data[at:at + 8], "little")), 27) * P1 + P4 & ALL
        at += 8
    if len(data) - at >= 4:
        h = rotate(h ^ int.from_bytes(data[at:at + 4], "little") * P1 & ALL, 23) * P2 + P3 & ALL
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * P5 & ALL, 11) * P1 & ALL
    h = (h ^ h >> 33) * P2 & ALL
    h = (h ^ h >> 29) * P3 & ALL
    return h ^ h >> 32


def token_file(documents, marks, vocabulary):
    """marks: of each document an array that says of each token whether it is trained on."""
    tokens, trained = np.concatenate(documents), np.concatenate(marks)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], trained.astype(np.int8), [0]])))
    body = tokens.astype("<u2").tobytes()
    body += bytes(-len(body) % 8) + np.cumsum([0, *map(len, documents[:-1])]).astype("<u8").tobytes()
    body += edges.astype("<u8").tobytes()

    def header(checksum):
        return struct.pack("<8sIIQQQQQQ", b"ACCELTOK", 2, 2, len(tokens), vocabulary, checksum, len(documents), len(edges) // 2,
                           int(trained.sum()))

    return header(xxh64(body + header(0))) + body
