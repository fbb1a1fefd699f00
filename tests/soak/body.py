"""The body of one function of a model while it is drawn: its values with their shapes, and its statements. An extent is a
number, or a name of one that is not known before the job is: the batch, and what is made of it."""

import math
import re
from dataclasses import dataclass, field

MOST = 3000  # elements of a value
NAME = re.compile(r"\bv\d+\b")


class NoFit(Exception):
    """No value that is there has the shape that a draw wants."""


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple
    kind: str = "f"  # or "i": int32
    below: int | None = None  # of integers from 0 on: what each is below; None: nobody knows


@dataclass
class Statement:
    """Lines of C. What they make is `made`; a loop over the layers makes again what was there, and makes nothing new."""

    text: str
    made: Value | None = None

    def uses(self):
        return set(NAME.findall(self.text)) - ({self.made.name} if self.made else set())


@dataclass
class Function:
    head: str
    statements: list
    ending: str
    name: str
    given: list = field(default_factory=list)

    def text(self):
        lines = "\n".join(line for statement in self.statements for line in statement.text.split("\n"))
        return f"{self.head} {{\n{lines}\n  {self.ending}\n}}\n"


def count(shape, batch=4):
    """Elements, with the batch and its multiples taken as of a usual size."""
    return math.prod(extent if isinstance(extent, int) else batch * int(extent[1:] or 1) for extent in shape)


def times(extent, factor):
    """The name of so many batches: B is the batch, B7 seven of it."""
    return f"B{int(extent[1:] or 1) * factor}" if isinstance(extent, str) else extent * factor


class Body:
    def __init__(self, random, model, scoped=True):
        self.random, self.model, self.scoped = random, model, scoped
        self.values, self.statements = [], []

    # What is there.

    def given(self, shape, kind="f", below=None, name=None):
        """A parameter of the function."""
        value = Value(name or self.model.name(), shape, kind, below)
        self.values.append(value)
        return value

    def value(self, test=lambda value: True, kind="f"):
        """One of the values, rather a newer one."""
        found = [value for value in self.values if value.kind == kind and test(value)]
        if not found:
            raise NoFit
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]

    def of_rank(self, *ranks, last=True, kind="f"):
        """One with so many dimensions, whose last is a number."""
        return self.value(lambda v: len(v.shape) in ranks and (not last or isinstance(v.shape[-1], int)), kind)

    def like(self, value):
        """Another of its shape, or itself."""
        return self.value(lambda other: other.shape == value.shape)

    def index(self, below, test=lambda value: True):
        """Integers that are all within [0, below)."""
        return self.value(lambda v: v.below is not None and v.below <= below and test(v), "i")

    # What is written.

    def number(self, extent):
        """C for an extent."""
        found = [(value, axis) for value in self.values for axis, there in enumerate(value.shape) if there == extent]
        if isinstance(extent, str) and not found:
            raise NoFit
        if isinstance(extent, str) or found and self.random.random() < 0.3:
            value, axis = self.random.choice(found)
            back = axis - len(value.shape) if self.random.random() < 0.2 else axis
            return f"dim({value.name}, {back})"
        fields = [name for name, there in self.model.config.items() if there == extent and name in self.model.whole]
        return f"c.{self.random.choice(fields)}" if fields and self.random.random() < 0.4 else str(extent)

    def numbers(self, shape):
        return ", ".join(self.number(extent) for extent in shape)

    def real(self, low, high):
        return f"{self.random.uniform(low, high):.3g}" if self.random.random() < 0.8 else f"{high:.1f}"

    def size(self, high=9):
        return self.random.randint(1, high)

    def scope(self):
        """A scope of its own below that of the function."""
        if not self.scoped:
            raise NoFit
        number = self.model.scope()
        text = f'nth(s, "q", {number})' if self.random.random() < 0.2 else f'at(s, "p{number}")'
        start = self.random.random()
        if start < 0.1:
            return f"init_normal({text}, 0.1)"
        if start < 0.15:
            return f"init_uniform({text}, 0.2)"
        if start < 0.17:
            return f"init_constant({text}, 0.25)"
        return f"{self.random.choice(('init_zeros', 'init_ones'))}({text})" if start < 0.2 else text

    def add(self, expression, shape, kind="f", below=None, most=MOST):
        """tensor v7 = expression."""
        if count(shape) > most or len(shape) > 6:
            raise NoFit
        value = Value(self.model.name(), tuple(shape), kind, below)
        self.say(f"  tensor {value.name} = {expression};", value)
        return value

    def say(self, text, made=None):
        self.statements.append(Statement(text, made))
        if made is not None:
            self.values.append(made)

    def may_draw(self, draws=True):
        """Random numbers are for programs that train alone."""
        if draws and not self.model.may_draw:
            raise NoFit

    def spread(self, shape):
        """Numbers that differ, where a parameter would start as zeros."""
        scope = f'init_uniform(at(s, "p{self.model.scope()}"), 0.5)'
        if not self.scoped:
            raise NoFit
        return self.add(f'parameter({scope}, "w", {self.numbers(shape)})', shape)

    def brought(self, value, shape):
        """A value brought to another shape, to be added to what has it."""
        if value.kind == "i":
            value = self.add(f"cast_float({value.name})", value.shape)
        if value.shape == shape:
            return value
        if self.scoped and value.shape[:-1] == shape[:-1] and value.shape and isinstance(value.shape[-1], int):
            return self.add(f"linear({self.scope()}, {value.name}, {self.number(shape[-1])})", shape)
        while value.shape and (len(value.shape) > len(shape) or any(
                mine not in (1, other) for mine, other in zip(value.shape[::-1], shape[::-1]))):
            axis = self.random.randrange(len(value.shape)) if len(value.shape) > 1 else 0
            name = self.random.choice(("sum", "mean", "max_along"))
            value = self.add(f"{name}({value.name}, {axis})", value.shape[:axis] + value.shape[axis + 1:])
        return value
