"""docs/combinations.md: which two keys do not go together, and what the generator says. Every pair of keys is tried with
each value that is not its default, in each context in which the keys make sense alone.

usage: combinations.py [--accept] [KEY[=VALUE]...]   prints the page, or writes it; with KEYs, or values of these, tries the
                                                     pairs of these alone, and takes all others from the present page"""

import concurrent.futures
import itertools
import json
import pathlib
import re
import shutil
import sys
import tempfile

import keys

PAGE = keys.TREE / "docs" / "combinations.md"
HEAD = """# Which keys go together

Every key of the job works with every other one, except for the pairs on this page. The generator refuses those with the
message in the table. The test tried each pair of keys with every enumerated value, and with typical numbers other than
the default, on the example models.

`tests/program/combinations.py --accept` regenerates this page, and `tests/program/test_combinations.py` compares it with
the generator.

"""
NAMES = """## Keys of a name

These keys go only with some names of their group (`optimizer.name`, `schedule.name`). With another name they are refused
with a message such as "'momentum' does not go with optimizer.name 'adam'".

| key | goes with |
|---|---|
"""
PAIRS = """
## Other pairs

| key | with | message |
|---|---|---|
"""

MOST = 2  # contexts that a pair is tried in


def group_of(key):
    return key.split(".")[0]


def choices():
    """Key to the values that a pair is tried with."""
    defaults = {key: schema.get("default") for key, schema in keys.leaves()}
    found = {}
    for key, values in keys.all_values().items():
        values = [value for value in values if value != defaults.get(key) and value not in (0, False, [])]
        if "enum" not in dict(keys.leaves())[key]:
            values = values[:1]
        if values:
            found[key] = values
    return found


def names(key):
    """The names that the group of a key can have, its default first; just None where a group has none."""
    group = group_of(key)
    schema = keys.target(keys.SCHEMA["properties"][group]).get("properties", {}).get("name")
    if schema is None or key == f"{group}.name":
        return [None]
    return [schema["default"]] + [name for name in schema["enum"] if name != schema["default"]]


class Table:
    """Runs a copy of the generator, which a build meanwhile does not replace, and remembers where a key makes sense alone."""

    def __init__(self, folder):
        self.folder, self.known = folder, {}
        self.generator = shutil.copy2(keys.GENERATOR, folder)

    def job(self, base, settings):
        """A base with (key, value, name of the key's group) for each setting."""
        job = dict(keys.BASES[base])
        for key, value, name in settings:
            named = group_of(key) + ".name"
            job |= {**keys.companions(named, name), named: name} if name else {}
            job |= keys.companions(key, value)
        return job | {key: value for key, value, _ in settings}

    def generate(self, base, settings, number):
        return keys.generate(self.job(base, settings), self.folder, f"pair{number}", self.generator)

    def takes(self, one, at, number):
        """Whether a key is taken by itself at (base, name)."""
        key = str((one, at))
        if key not in self.known:
            self.known[key] = isinstance(self.generate(at[0], [(*one, at[1])], number), str)
        return self.known[key]

    def alone(self, one, number):
        """Yields the (base, name) that take a key by itself; tries no more than are wanted."""
        where = (at for at in itertools.product(keys.BASES, names(one[0])) if self.takes(one, at, number))
        first = next(where, None)
        if first is None:
            raise AssertionError(f"tests/program/keys.py: nothing takes {one} alone; what other keys does it need?")
        yield first
        yield from where

    def common(self, pair, bases, number):
        """Yields the (base, name, name) in which both make sense alone."""
        (one, other), same = pair, group_of(pair[0][0]) == group_of(pair[1][0])
        for base, name, second in itertools.product(bases, names(one[0]), names(other[0])):
            if (not same or None in (name, second) or name == second) and \
                    self.takes(one, (base, name), number) and self.takes(other, (base, second), number):
                yield base, name, second

    def together(self, pair, number):
        """Of these, MOST, and as many of the bases that are not among them."""
        first = set()
        for at in itertools.islice(self.common(pair, keys.BASES, number), MOST):
            first.add(at[0])
            yield at
        yield from itertools.islice(self.common(pair, [base for base in keys.BASES if base not in first], number), MOST)

    def where(self, pair, number):
        """Where a pair is tried; when no context is good for both, where the error of the first names the other."""
        nowhere = True
        for at in self.together(pair, number):
            nowhere = False
            yield at
        if nowhere:
            (base, name), _ = (next(self.alone(key, number)) for key in pair)
            yield base, name, None

    def refusal(self, pair, number):
        """None when the pair works somewhere; else what the generator says of it."""
        message = None
        for base, name, other_name in self.where(pair, number):
            outcome = self.generate(base, [(*pair[0], name), (*pair[1], other_name)], number)
            if isinstance(outcome, str):
                return None
            message = message or re.search(r"error: (.*)", outcome.text)[1]
        return message


def all_pairs(found):
    for one, other in itertools.combinations(sorted(found), 2):
        for pair in itertools.product(found[one], found[other]):
            yield (one, pair[0]), (other, pair[1])


def refusals(pairs, table, workers=2):
    """Pair to message, for those that are refused."""

    def ask(item):
        number, pair = item
        return pair, table.refusal(pair, number % 1000)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return [(pair, message) for pair, message in pool.map(ask, enumerate(pairs)) if message]


def names_taken(found, table, groups=()):
    """Of keys that not all names of their group take: key to those that do. Of other groups than these, if any are given, as
    the page says."""
    taken = {key: names for key, names in listed(PAGE.read_text())[0].items() if group_of(key) not in groups} if groups else {}
    for key, values in found.items():
        if groups and group_of(key) not in groups:
            continue
        good = {name for value in values for _, name in table.alone((key, value), 0)}
        if good < set(names(key)):
            taken[key] = good
    return taken


def by_name(pair, taken):
    """Whether the names that two keys go with say already that they do not go together."""
    (one, v), (other, w) = pair
    group = group_of(one)
    if group != group_of(other):
        return False
    sides = [{value} if key == f"{group}.name" else taken.get(key) for key, value in ((one, v), (other, w))]
    return None not in sides and not sides[0] & sides[1]


def normal(message):
    """A message without what differs from value to value."""
    return re.sub(r"\d[\d.e+-]*", "N", message)


def spelled(key, values):
    return f"`{key}`: " + ", ".join(f"`{json.dumps(value)}`" for value in values)


def rows(refused):
    """One line for all values of two keys that get the same message."""
    groups = {}
    for ((one, v), (other, w)), message in refused:
        groups.setdefault((one, other, normal(message), json.dumps(v)), [message, v, []])[2].append(w)
    merged = {}
    for (one, other, text, _), (message, v, ws) in groups.items():
        merged.setdefault((one, other, text, json.dumps(ws)), [message, [], ws])[1].append(v)
    for (one, other, _, _), (message, vs, ws) in sorted(merged.items()):
        yield f"| {spelled(one, vs)} | {spelled(other, ws)} | {message.replace('|', chr(92) + '|')} |"


def as_listed(pair):
    return frozenset((key, json.dumps(value)) for key, value in pair)


def earlier(pairs, taken):
    """Pair to message, as the page says of them; those that the names of their keys exclude, which it does not list, have
    none."""
    listed_messages = {}
    for sides, message in rows_of(PAGE.read_text()):
        for pair in itertools.product(*([(key, value) for value in values] for key, *values in sides)):
            listed_messages[frozenset(pair)] = message
    found = {as_listed(pair): "" if by_name(pair, taken) else listed_messages.get(as_listed(pair)) for pair in pairs}
    return {pair: message for pair, message in found.items() if message is not None}


def page(folder, again):
    found, table = choices(), Table(folder)
    taken = names_taken(found, table, {group_of(key) for key in again})
    pairs = list(all_pairs(found))
    tried = [pair for pair in pairs if not again or any(value in again.get(key, ()) for key, value in pair)]
    messages = {as_listed(pair): message for pair, message in refusals(tried, table)}
    if again:
        known = {as_listed(pair) for pair in tried}
        messages |= earlier([pair for pair in pairs if as_listed(pair) not in known], taken)
    refused = [(pair, messages[as_listed(pair)]) for pair in pairs if as_listed(pair) in messages]
    lines = list(rows([(pair, message) for pair, message in refused if not by_name(pair, taken)]))
    counts = f"{len(pairs):,} pairs of {len(found)} keys were tried; {len(refused):,} are refused.\n\n"
    named = [f"| `{key}` | {', '.join(f'`{name}`' for name in sorted(good))} |" for key, good in sorted(taken.items())]
    return HEAD + counts + NAMES + "\n".join(named) + "\n" + PAIRS + "\n".join(lines) + "\n"


def cells_of(text):
    """The cells of each row that begins with a key."""
    return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in text.splitlines() if line.startswith("| `")]


def rows_of(text):
    """Of each row of pairs: two lists of a key and its values in JSON; and the message."""
    for one, other, *message in cells_of(text):
        if message:
            yield [re.findall(r"`([^`]*)`", side) for side in (one, other)], " | ".join(message).replace(chr(92) + "|", "|")


def listed(text):
    """What a page says: the names that keys go with, and the other pairs, each as a frozen set of (key, JSON value)."""
    named = [cells for cells in cells_of(text) if len(cells) == 2]
    taken = {key.strip("`"): set(re.findall(r"`([^`]*)`", names)) for key, names in named}
    pairs = set()
    for sides, _ in rows_of(text):
        pairs |= {frozenset(pair) for pair in itertools.product(*([(key, value) for value in values] for key, *values in sides))}
    return taken, pairs


def main():
    found, again = choices(), {}
    for word in (word for word in sys.argv[1:] if not word.startswith("-")):
        key, _, value = word.partition("=")
        values = [one for one in found.get(key, []) if value in ("", one, json.dumps(one))]
        if not values:
            sys.exit(f"combinations.py: nothing to try of {word}: " +
                     (f"{key} is tried with {', '.join(map(json.dumps, found[key]))}" if key in found else "no such key"))
        again.setdefault(key, []).extend(values)
    with tempfile.TemporaryDirectory(prefix="accel-pairs-") as name:
        folder = pathlib.Path(name)
        keys.write_data(folder)
        text = page(folder, again)
    if "--accept" in sys.argv:
        PAGE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
