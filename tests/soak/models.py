"""Models, drawn as text: functions over tensors in C with loops over layers, choices by the config, helpers, arrays, and
any function of the vocabulary over what has a shape for it."""

import copy
import re

import divided
import layers
from body import NAME, Body, Function, NoFit, Statement
from vocabulary import DRAWS

FEATURES, CLASSES, BYTES = 12, 3, 256  # of the data that jobs have
INCLUDE = "#include <accel/model.h>\n"


class Model:
    """domain: tokens or rows; value: whether the rows' label is a number; axis: of ranks that divide a part of each layer."""

    def __init__(self, random, domain, value=False, packed=False, axis=None):
        self.rng, self.domain, self.value_labels, self.packed, self.axis = random, domain, value, packed, axis
        self.names = self.scopes = 0
        self.may_draw = random.random() < 0.15  # random numbers, which a program that trains alone gives
        self.classes = BYTES if domain == "tokens" else CLASSES
        self.width, self.steps = random.choice((4, 5, 6, 8, 12)), random.choice((3, 4, 5, 8))
        self.config = {"n_layer": random.randint(1, 3), "width": self.width, "vocab": self.classes, "flag": random.random() < 0.5,
                       "kind": random.choice(("PLAIN", "OTHER")), "drop": random.choice((0.0, 0.1, 0.3))}
        if axis is not None:  # of equal parts, mostly
            self.steps, self.config["n_layer"] = random.choice((4, 8)), random.choice((2, 2, 4))
        if domain == "tokens":
            self.config["block_size"] = self.steps
        self.whole = {name for name, value in self.config.items() if type(value) is int}
        self.functions = []
        self.compose()

    # What bodies ask.

    def name(self, letter="v"):
        self.names += 1
        return f"{letter}{self.names}"

    def scope(self):
        self.scopes += 1
        return self.scopes

    # Functions.

    def one_of(self, body, names=None):
        """Some draw that fits; a function that is rarely drawn comes as often as another."""
        for _ in range(50):
            name = self.rng.choice(names or sorted(DRAWS))
            there = len(body.values), len(body.statements)
            try:
                DRAWS[name](body, name)
                return
            except (NoFit, IndexError, ValueError):
                del body.values[there[0]:], body.statements[there[1]:]

    def into(self, body, stream):
        """Adds what was drawn to the stream, rather the last of it."""
        try:
            value = body.value(kind=self.rng.choice("fffffi"))
            value = body.brought(value, stream.shape)
            if all(isinstance(extent, int) or extent in stream.shape for extent in value.shape):
                soft = body.add(f"scale(tanh_of({value.name}), {body.real(0.2, 1)})", value.shape)
                stream = body.add(f"add({stream.name}, {soft.name})", stream.shape)
        except NoFit:
            pass
        return stream

    def some(self, body, stream, most):
        for _ in range(self.rng.randint(1, most)):
            self.one_of(body)
            if self.rng.random() < 0.7:
                stream = self.into(body, stream)
        return self.into(body, stream)

    def choice(self, body, stream):
        """What is decided when the model is read."""
        one, other = (body.add(f"{f}({stream.name})", stream.shape) for f in self.rng.sample(("relu", "tanh_of", "silu", "neg"), 2))
        name = self.name()
        way = self.rng.randrange(5)
        test = self.rng.choice(("c.flag", "c.kind == OTHER", "c.n_layer > 1", f"dim({stream.name}, -1) % 2 == 0", "!c.flag && c.width > 4"))
        text = [f"  tensor {name} = {test} ? {one.name} : {other.name};",
                f"  tensor {name};\n  if ({test}) {name} = {one.name};\n  else {name} = {other.name};",
                f"  tensor {name} = {one.name};\n  switch (c.kind) {{\n  case OTHER: {name} = {other.name}; break;\n  default: break;\n  }}",
                f"  tensor {name} = {one.name};\n  for (int i = 0; i < 5; i++) {{\n    if (i == c.n_layer) break;\n"
                f"    {name} = add({name}, scale({other.name}, 1.0 / (i + 2)));\n  }}",
                f"  tensor {name}_of[] = {{{one.name}, {other.name}}};\n  int {name}_i = 0;\n  while ({name}_i < 1 && {test}) {name}_i++;\n"
                f"  tensor {name} = {name}_of[{name}_i];"][way]
        value = type(stream)(name, stream.shape)
        body.say(text, value)
        return value

    def helper(self, shape):
        """A function without parameters, which becomes a part of who calls it; its shapes are as its operand's."""
        body = Body(self.rng, self, scoped=False)
        stream = body.given(shape)
        name, head = self.name("helper"), self.rng.choice(("static tensor", "static inline tensor"))
        last = self.some(body, stream, 3)
        self.functions.append(Function(f"{head} {name}(struct config c, tensor {stream.name})", body.statements,
                                       f"(void)c;\n  return {last.name};", name, [stream]))
        return name

    def layer(self, shape, others):
        body = Body(self.rng, self)
        first = stream = body.given(shape)
        more = [body.given(other.shape, other.kind, other.below) for other in others]
        name = self.name("layer")
        if self.axis is not None:
            stream = divided.add(body, stream, self.axis)
        elif self.rng.random() < 0.6:
            normed = body.add(f'{self.rng.choice(("layer_norm", "rms_norm"))}({body.scope()}, {stream.name})', shape)
            body.add(f"linear({body.scope()}, {normed.name}, {body.number(shape[-1])})", shape)
        last = stream if self.axis is not None and self.rng.random() < 0.5 else self.some(body, stream, 5 if self.axis is None else 2)
        given = ", ".join(f"tensor {value.name}" for value in (first, *more))
        self.functions.append(Function(f"static tensor {name}(scope s, struct config c, {given})", body.statements,
                                       f"(void)c;\n  return {last.name};", name, [first, *more]))
        return name

    def loop(self, body, stream):
        """x = layer(x) so many times, with equal layers."""
        others = [value for value in self.rng.sample(body.values, min(len(body.values), self.rng.choice((0, 0, 1))))
                  if value.shape != stream.shape and all(isinstance(e, int) or e in stream.shape for e in value.shape)]
        name = self.layer(stream.shape, others)
        made = self.name()
        more = "".join(f", {value.name}" for value in others)
        bound = self.rng.choice(("c.n_layer", "c.n_layer", "2", "1") if self.axis is None else ("c.n_layer", "2"))
        text = f"  tensor {made} = {stream.name};\n  for (int i = 0; i < {bound}; i++) " \
               f"{made} = {name}(nth(s, \"h{self.scope()}\", i), c, {made}{more});"
        if self.axis is None and self.rng.random() < 0.2:  # a layer alone, perhaps the same twice
            text = f'  tensor {made} = {name}(at(s, "h{self.scope()}"), c, {stream.name}{more});'
        value = type(stream)(made, stream.shape)
        body.say(text, value)
        return value

    def trunk(self, body):
        """From the data to a stream, through layers and whatever else."""
        if self.domain == "tokens":
            tokens = body.values[0]
            stream = body.add(f'embedding({body.scope()}, tokens, c.vocab, c.width)', (*tokens.shape, self.width))
            if self.rng.random() < 0.6:
                positions = body.spread((self.steps, self.width))
                stream = body.add(f"add({stream.name}, slice({positions.name}, 0, 0, dim(tokens, 1)))", stream.shape)
        else:
            stream = body.add(f"linear({body.scope()}, features, c.width)", ("B", self.width))
            if self.rng.random() < 0.4:
                body.add(f"reshape(features, dim(features, 0), 3, {FEATURES // 3})", ("B", 3, FEATURES // 3))
            if self.rng.random() < 0.4:
                body.add("reshape(features, dim(features, 0), 1, 4, 3)", ("B", 1, 4, 3))
        parts = [self.rng.choice(("some", "some", "loop", "loop", "choice", "helper")) for _ in range(self.rng.randint(1, 4))]
        if self.axis is not None:
            parts = ["loop"] + parts[1:3] if self.rng.random() < 0.5 else ["loop"]
        for part in parts:
            if part == "helper":
                stream = body.add(f"{self.helper(stream.shape)}(c, {stream.name})", stream.shape)
            else:
                stream = {"some": lambda: self.some(body, stream, 4), "loop": lambda: self.loop(body, stream),
                          "choice": lambda: self.choice(body, stream)}[part]()
        return stream

    def inputs(self, body, labels):
        """The entry's tensors."""
        if self.domain == "tokens":
            shape = ("B", self.steps)
            body.given(shape, "i", BYTES, "tokens")
            if labels:
                body.given(shape, "i", None, "targets")
            if self.packed:
                body.given(shape, "i", None, "starts")
                body.given(shape, "i", self.steps, "positions")
        else:
            body.given(("B", FEATURES), name="features")
            if labels:
                body.given(("B",), *(("f", None) if self.value_labels else ("i", None)), name="labels")
        return [value.name for value in body.values]

    def entry(self, name, labels, write):
        body = Body(self.rng, self)
        names = self.inputs(body, labels)
        last = write(body)
        given = ", ".join(f"tensor {value}" for value in names)
        self.functions.append(Function(f"tensor {name}(scope s, struct config c, {given})", body.statements,
                                       f"(void)c;\n  return {last.name};", name))
        return names

    def predictor(self, body):
        stream = self.trunk(body)
        if self.value_labels:
            last = body.add(f"linear({body.scope()}, {stream.name}, 1)", ("B", 1))
            return body.add(f"reshape({last.name}, dim({last.name}, 0))", ("B",))
        return body.add(f"linear({body.scope()}, {stream.name}, c.vocab)", (*stream.shape[:-1], self.classes), most=10000)

    def loss(self, body, names):
        if self.predicts:
            shape = ("B",) if self.value_labels else ("B", self.classes) if self.domain == "rows" else ("B", self.steps, self.classes)
            given = [name for name in names if name not in ("labels", "targets")]
            logits = body.add(f"predict(s, c, {', '.join(given)})", shape, most=10000)
        else:
            logits = self.predictor(body)
        label = "targets" if self.domain == "tokens" else "labels"
        if label not in names:
            square = body.add(f"square({logits.name})", logits.shape, most=10000)
            body.add(f"mean_all({square.name})", ())
        elif self.value_labels:
            body.add(f"{self.rng.choice(('mse_loss', 'l1_loss'))}({logits.name}, labels)", ())
        else:
            name = self.rng.choice([name for name in layers.LOSSES if name.startswith("cross")])
            more = {"cross_entropy_ignore": ", -100", "cross_entropy_smooth": ", 0.1", "cross_entropy_z": ", 1e-3",
                    "cross_entropy_with": ", -100, 0.1, 1e-3"}.get(name, "")
            body.add(f"{name}({logits.name}, {label}{more})", ())
        loss = body.values[-1]
        while self.rng.random() < 0.3:
            self.one_of(body, layers.LOSSES)
            if body.values[-1].shape == () and body.values[-1] is not loss:
                loss = body.add(f"add({loss.name}, scale({body.values[-1].name}, 0.1))", ())
        return loss

    def prune(self):
        """Takes out what nothing uses; now and then it stays."""
        for function in self.functions:
            alive = set(NAME.findall(function.ending))
            for statement in reversed(list(function.statements)):
                if statement.made is None or statement.made.name in alive or self.rng.random() < 0.02:
                    alive |= statement.uses()
                else:
                    function.statements.remove(statement)

    def compose(self):
        self.predicts = self.rng.random() < 0.75
        if self.predicts:
            self.entry("predict", False, self.predictor)
        labels = self.rng.random() < 0.92  # some models name only a part of what the data gives
        names = self.inputs(Body(self.rng, self), labels)
        self.entry("model", labels, lambda body: self.loss(body, names))
        self.prune()

    # Text, and less of it.

    def text(self):
        fields = {int: "int", bool: "bool", float: "double", str: "enum kind"}
        head = "\n".join(f"  {fields[type(value)]} {name};" for name, value in self.config.items())
        parts = [INCLUDE, "enum kind { PLAIN, OTHER };\n", f"struct config {{\n{head}\n}};\n",
                 *(function.text() for function in self.functions)]
        return "\n".join(parts)

    def without(self, function, statement):
        """The model without a statement, its value replaced by one of the same shape; None where there is none."""
        smaller = copy.deepcopy(self)
        of = smaller.functions[function]
        gone = of.statements.pop(statement)
        if gone.made is None:
            return smaller
        known = [s.made for s in of.statements[:statement] if s.made is not None]
        known += of.given
        same = [v for v in known if v.shape == gone.made.shape and v.kind == gone.made.kind]
        if same:
            other = max(same, key=lambda v: v.name in gone.uses()).name
        elif all(isinstance(extent, int) for extent in gone.made.shape) and gone.made.kind == "f":
            other = f"constant(0.5, {', '.join(map(str, gone.made.shape or (1,)))})"
            if not gone.made.shape:
                other = f"mean_all({other})"
        else:
            other = None
        name = gone.made.name
        rest = of.statements[statement:] + [Statement(of.ending)]
        if other is None and any(name in s.uses() for s in rest):
            return None
        for s in of.statements[statement:]:
            s.text = replaced(s.text, name, other)
        of.ending = replaced(of.ending, name, other)
        return smaller

    def without_line(self, line):
        """The model without the statement that has a line of the text; None where none can be taken away there."""
        text = self.text()
        for f, function in enumerate(self.functions):
            at = text[:text.index(function.head + " {")].count("\n") + 2
            for s, statement in enumerate(function.statements):
                lines = statement.text.count("\n") + 1
                if at <= line < at + lines:
                    return self.without(f, s)
                at += lines
        return None

    def without_unused(self):
        """The model without functions that nothing calls."""
        smaller = copy.deepcopy(self)
        while True:
            text = {f.name: "".join(g.text() for g in smaller.functions if g is not f) for f in smaller.functions}
            kept = [f for f in smaller.functions if f.name in ("model",) or f"{f.name}(" in text[f.name]]
            if len(kept) == len(smaller.functions):
                return smaller
            smaller.functions = kept

    def size(self):
        return sum(len(function.statements) for function in self.functions)


def replaced(text, name, other):
    return re.sub(rf"\b{name}\b", other or name, text)
