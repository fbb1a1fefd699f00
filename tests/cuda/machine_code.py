"""What nvcc reports of kernels while it compiles them: registers, memory that spills, and how wide their accesses are."""

import collections
import re

Usage = collections.namedtuple("Usage", "registers spilled shared")
ELEMENT = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def plain(mangled):
    """"_ZN6device5twiceILi4EEEvPf" is "twice<4>"."""
    match = re.match(r"_Z(?:N6device)?(\d+)", mangled)
    if match is None:
        return mangled
    end = match.end() + int(match[1])
    width = re.match(r"ILi(\d+)E", mangled[end:])
    return mangled[match.end():end] + (f"<{width[1]}>" if width else "")


def usage(output):
    """{(kernel, architecture): Usage} of what `-Xptxas -v` prints."""
    found = {}
    for part in output.split("Compiling entry function '")[1:]:
        name, architecture = re.match(r"(\w+)' for '(\w+)'", part).groups()
        stored, loaded = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part).groups()
        shared = re.search(r"(\d+) bytes smem", part)
        registers = re.search(r"Used (\d+) registers", part)[1]
        found[plain(name), architecture] = Usage(int(registers), int(stored) + int(loaded), int(shared[1]) if shared else 0)
    return found


def widest(ptx):
    """{kernel: bytes of the widest load from the device's memory, and of the widest store} of a .ptx."""
    found = {}
    for name, body in re.findall(r"^(?:\.visible |\.weak )*\.entry (\w+)\((.*?)^\}", ptx, re.M | re.S):
        accesses = re.findall(r"\b(ld|st)\.global(?:\.\w+)*?(?:\.v(\d))?\.[a-z](\d+)\b", body)
        found[plain(name)] = tuple(max((int(count or 1) * ELEMENT[bits] for kind, count, bits in accesses if kind == way), default=0) for way in ("ld", "st"))
    return found
