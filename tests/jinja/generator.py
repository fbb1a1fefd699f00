"""Random templates with values for the differential test: mostly valid, sometimes broken, never large."""

VALUES = {
    "n": 3, "m": -4, "z": 0, "f": 2.5, "g": -0.125, "s": "hello", "e": "", "w": "a<b> & 'c'", "u": "Grüße Ω", "t": True, "no": None,
    "xs": [3, 1, 2], "ys": [], "ws": ["b", "A", "c"], "em": {}, "d": {"a": 1, "b": "x", "k": [1, 2]}, "deep": {"a": {"b": {"c": 5}}},
    "us": [{"name": "ann", "age": 30}, {"name": "Bob", "age": 25}, {"name": "cid", "age": 30}], "ps": [["a", 1], ["b", 2]], "mix": [1, "a", None, 2.5, True, [], {}],
}
NAMES = list(VALUES) * 2 + ["missing", "a", "b", "x", "y", "x"]
FILTERS = {
    "text": ["upper", "lower", "title", "capitalize", "trim", "string", "length", "reverse", "wordcount", "e", "safe", "striptags", "first", "last", "urlencode", "center(9)", "indent(2)", "truncate(6)", "replace('l', 'L')", "list",
             "tojson", "int", "float", "default('d')", "d('x', true)", "join('-')", "sort|join", "unique|join", "escape", "format('a')", "wordwrap(4)", "truncate(4, true, '~', 0)", "center(6)", "forceescape", "batch(2)|list"],
    "number": ["abs", "round", "round(1)", "int", "float", "string", "default(0)", "filesizeformat", "round(1, 'floor')", "round(-1)", "tojson", "round(0, 'ceil')"],
    "list": ["length", "first", "last", "join", "join(', ')", "sort", "reverse|list", "unique|list", "list", "sum", "min", "max", "map('string')|join", "select|list", "reject('odd')|list", "select('gt', 1)|list", "batch(2)|list", "slice(2)|list", "tojson",
             "map('upper')|list", "sort(reverse=true)", "count", "map(attribute='name')|join(',')", "selectattr('age', 'gt', 26)|list", "sort(attribute='age')|map(attribute='name')|join", "groupby('age')|list", "string", "sum(attribute='age')", "map('length')|list", "rejectattr('name')|list", "batch(2, 0)|list"],
    "map": ["length", "dictsort", "list", "items|list", "tojson", "join('+')", "default({})", "dictsort(by='value')", "xmlattr", "urlencode", "first", "tojson(indent=1)"],
}
TESTS = ["defined", "undefined", "none", "odd", "even", "string", "number", "mapping", "sequence", "iterable", "callable", "boolean", "integer", "float", "lower", "upper", "divisibleby 2", "eq(3)", "in [1, 2, 3]", "gt 1", "lt(2)", "sameas none", "true", "false", "escaped", "ne 'a'"]
METHODS = ["upper()", "lower()", "title()", "split()", "split('l')", "strip()", "replace('a', 'b')", "startswith('h')", "find('l')", "count('l')", "center(8, '*')", "splitlines()", "isdigit()", "zfill(5)", "items()|list", "keys()|list", "get('a')", "get('q', 1)", "values()|list", "index(1)", "join(['a', 'b'])", "format(1)", "partition('l')", "capitalize()", "swapcase()", "rsplit('l', 1)", "endswith('o')", "isupper()"]


class Generator:
    def __init__(self, random):
        self.random = random
        self.names = list(NAMES)
        self.loops = 0
        self.macros = []

    def pick(self, *choices):
        return self.random.choice(choices)

    def literal(self):
        r = self.random
        return self.pick(str(r.randrange(-2, 12)), str(r.randrange(0, 4)), f"{r.randrange(0, 100) / 8}", repr(self.pick("", "a", "Bc", "x y", "l", "<i>", "é", "a,b", "3", "2.5")), "true", "false", "none", "[]", "{}", "[1, 2]", "(1, 'a')", "{'a': 1}", "['b', 'a']", "0x1f", "1e3")

    def atom(self):
        return self.literal() if self.random.random() < 0.45 else self.pick(*self.names)

    def expression(self, depth=3):
        if depth <= 0 or self.random.random() < 0.22:
            return self.atom()
        return getattr(self, self.pick("binary", "binary", "compare", "logic", "conditional", "filtered", "filtered", "filtered", "tested", "attribute", "item", "method", "concat", "display", "unary", "paren", "call"))(depth - 1)

    def binary(self, depth):
        op = self.pick("+", "+", "-", "*", "/", "//", "%")
        if self.random.random() < 0.12:  # any types, mostly an error
            return f"{self.expression(depth)} {op} {self.expression(depth)}"
        kind = self.pick(("n", "m", "f", "g", "7", "2.5", "xs|length", "1", "(n - 1)"), ("s", "w", "'a'", "u", "e"), ("xs", "[1]", "ys", "ws"))
        if kind[0] == "n":
            return f"{self.pick(*kind)} {op} {self.pick(*kind)}"
        return self.pick(f"{self.pick(*kind)} + {self.pick(*kind)}", f"{self.pick(*kind)} * 2")

    def unary(self, depth):
        return self.pick("-n", "+f", "-m|abs", "-2", "not " + self.expression(depth), "not " + self.expression(depth))

    def compare(self, depth):
        if self.random.random() < 0.6:
            return self.pick("n < 5", "xs[0] >= f", "s != 'x'", "1 < n <= 3", "s < w", "n in xs", "'a' in d", "'l' in s", "n not in ys", "f == 2.5", "[1, 2] < xs") if self.random.random() < 0.6 else f"{self.expression(depth)} {self.pick('==', '!=')} {self.expression(depth)}"
        op = self.pick("==", "!=", "<", ">", "<=", ">=", "in", "not in")
        more = f" {self.pick('<', '==', '>=')} {self.expression(depth - 1)}" if self.random.random() < 0.15 else ""
        return f"{self.expression(depth)} {op} {self.expression(depth)}{more}"

    def logic(self, depth):
        return f"{self.expression(depth)} {self.pick('and', 'or')} {self.expression(depth)}"

    def conditional(self, depth):
        other = f" else {self.expression(depth)}" if self.random.random() < 0.8 else ""
        return f"({self.expression(depth)} if {self.expression(depth)}{other})"

    def filtered(self, depth):
        kind = self.pick("text", "text", "number", "list", "list", "map")
        if self.random.random() < 0.88:
            operand = {"text": self.pick("s", "e", "w", "u", "'a b-c'", "n ~ s", "(w|e)", "(w|safe)"), "number": self.pick("n", "m", "f", "g", "7", "(1.25)"), "list": self.pick("xs", "ys", "ws", "us", "ps", "range(4)", "mix"), "map": self.pick("d", "deep", "em", "{'b': 1, 'A': 2}")}[kind]
        else:
            operand = f"({self.expression(depth)})"
        return f"{operand}|{self.pick(*FILTERS[kind])}"

    def tested(self, depth):
        test = self.pick(*TESTS)
        operand = self.pick("n", "m", "f", "z", "3") if test.split("(")[0].split()[0] in ("odd", "even", "divisibleby", "gt", "lt") and self.random.random() < 0.9 else self.expression(depth)
        return f"{operand} is {self.pick('', '', 'not ')}{test}"

    def attribute(self, depth):
        loop = ("loop.index", "loop.last", "loop.length") if self.loops else ()
        odd = ("missing.x", f"({self.expression(depth)}).a") if self.random.random() < 0.2 else ()
        return self.pick("d.a", "d.zz", "deep.a.b.c", "us[0].name", "us.0.age", "deep.a", "d.k.1", "us[1].age", *loop, *odd)

    def item(self, depth):
        key = self.pick("0", "-1", "1:", ":2", "::-1", "'a'", "9", "1:2", "::2", self.expression(depth - 1))
        return f"{self.pick('xs', 's', 'd', 'ps', 'ws', 'u')}[{key}]"

    def method(self, depth):
        return self.pick(f"{self.pick('s', 'w', 'u', 's', 'w')}.{self.pick(*METHODS[:14])}", f"d.{self.pick(*METHODS[14:19])}", f"{self.pick('s', 'd', 'xs', self.literal())}.{self.pick(*METHODS)}")

    def concat(self, depth):
        # Of constants alone Jinja2 makes a string that is escaped, whatever they were: docs/jinja.md, difference 10.
        return f"{self.expression(depth)} ~ {self.pick('s', 'n')} ~ {self.expression(depth)}"

    def display(self, depth):
        one, two = self.expression(depth), self.expression(depth)
        return self.pick(f"[{one}, {two}]", f"({one}, {two})", f"{{'p': {one}, 'q': {two}}}", f"[{one}]")

    def paren(self, depth):
        return f"({self.expression(depth)})"

    def call(self, depth):
        if self.macros and self.random.random() < 0.6:
            return f"{self.pick(*self.macros)}({self.pick('', self.expression(depth), 'b=' + self.expression(depth), '1, 2', 'a=1')})"
        return self.pick("range(3)|list", "range(1, 4)|list", "dict(a=1)", "'%s' % n", "'{}-{}'.format(n, s)", "joiner()()", "cycler(1, 2).next()", f"dict(k={self.expression(depth)})")

    def space(self):
        return self.pick("", "", "", "", " ", "\n", "  ", "\n  ", " text ", "x", "<p>", "a\nb\n")

    def tag(self, inside):
        left, right = self.pick("", "", "", "", "-", "+"), self.pick("", "", "", "", "-", "+")
        return f"{{%{left} {inside} {right}%}}"

    def output(self):
        return self.pick("{{ %s }}", "{{ %s }}", "{{ %s }}", "{{- %s }}", "{{ %s -}}", "{{%s}}") % self.expression()

    def body(self, depth):
        return "".join(self.space() + self.statement(depth) for _ in range(self.random.randrange(1, 3))) + self.space()

    def statement(self, depth):
        if depth <= 0 or self.random.random() < 0.45:
            return self.output()
        return getattr(self, "make_" + self.pick("if", "if", "for", "for", "for", "set", "set", "set_block", "with", "macro", "filter", "comment", "raw", "call", "do", "namespace", "loop_control", "autoescape", "include", "import", "recursive"))(depth - 1)

    def make_if(self, depth):
        text = self.tag("if " + self.expression()) + self.body(depth)
        if self.random.random() < 0.3:
            text += self.tag("elif " + self.expression()) + self.body(depth)
        if self.random.random() < 0.5:
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endif")

    def make_for(self, depth):
        target, over = self.pick(("x", "xs"), ("x", "range(3)"), ("x", "ws"), ("y", "us"), ("a, b", "ps"), ("a, b", "d.items()"), ("x", "s"), ("x", "ys"), ("x", "xs|sort"), ("x", "mix"), ("x", self.expression(2)) if self.random.random() < 0.3 else ("x", "d"))
        condition = f" if {self.expression(2)}" if self.random.random() < 0.15 else ""
        self.loops += 1
        text = self.tag(f"for {target} in {over}{condition}") + self.body(depth)
        if self.random.random() < 0.4:
            text += "{{ loop.%s }}" % self.pick("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "cycle('p', 'q')", "changed(x)", "previtem", "nextitem")
        self.loops -= 1
        if self.random.random() < 0.3:
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endfor")

    def make_recursive(self, depth):
        return self.tag("for x in [[1, [2]], [3]] recursive") + "<{{ loop.depth }}" + self.space() + "{% if x is sequence %}{{ loop(x) }}{% else %}{{ x }}{% endif %}>" + self.tag("endfor")

    def make_set(self, depth):
        name = self.pick("a", "b", "x", "n", "s")
        return self.tag(self.pick(f"set {name} = {self.expression()}", f"set {name} = {self.expression()}", f"set a, b = {self.expression(1)}, {self.expression(1)}"))

    def make_set_block(self, depth):
        return self.tag(f"set {self.pick('a', 'b', 'x')}{self.pick('', '', '|upper', '|trim')}") + self.body(depth) + self.tag("endset")

    def make_with(self, depth):
        return self.tag(f"with {self.pick('a', 'x', 'n')} = {self.expression()}") + self.body(depth) + self.tag("endwith")

    def make_macro(self, depth):
        name = self.pick("mac", "mic")
        loops, self.loops = self.loops, 0
        text = self.tag(f"macro {name}({self.pick('', 'a', 'a, b=2', 'a=1', 'x')})") + self.body(depth) + self.pick("", "", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}") + self.tag("endmacro")
        self.loops = loops
        self.macros.append(name)
        return text

    def make_call(self, depth):
        name = self.pick(*self.macros) if self.macros else "missing"
        loops, self.loops = self.loops, 0
        text = self.tag(f"call{self.pick('', '', '(x)')} {name}({self.pick('', '1')})") + self.body(depth) + self.tag("endcall")
        self.loops = loops
        return text

    def make_filter(self, depth):
        return self.tag("filter " + self.pick("upper", "trim", "replace('a', 'b')", "indent", "title", "lower|upper", "e")) + self.body(depth) + self.tag("endfilter")

    def make_comment(self, depth):
        return self.pick("{# c #}", "{#- c -#}", "{# {{ x }} #}", "\n  {# c #}\n")

    def make_raw(self, depth):
        return self.pick("{% raw %}{{ x }}{% endraw %}", "{%- raw -%} {% if %} {%- endraw -%}", "{% raw %}\n a {% endraw %}")

    def make_do(self, depth):
        return self.tag("do " + self.pick("[1].append(2)", self.expression(2)))

    def make_namespace(self, depth):
        return "{% set ns = namespace(v=" + self.expression(1) + ") %}" + self.tag(f"for x in {self.pick('xs', 'ws')}") + "{% set ns.v = " + self.pick("x", "ns.v ~ x", self.expression(1)) + " %}" + self.tag("endfor") + "{{ ns.v }}"

    def make_loop_control(self, depth):
        if self.loops == 0:
            return self.output()
        return self.tag("if " + self.expression(2)) + self.tag(self.pick("break", "continue")) + self.tag("endif")

    def make_autoescape(self, depth):
        return self.tag("autoescape " + self.pick("true", "false")) + self.body(depth) + self.tag("endautoescape")

    def make_include(self, depth):
        return self.tag("include " + self.pick("'part'", "'part'", "['nope', 'part']", "'nope' ignore missing"))

    def make_import(self, depth):
        how = self.pick("", "", " with context")
        return self.pick(self.tag("import 'lib' as lib" + how) + "{{ lib.f(1) }}{{ lib.v }}", self.tag("from 'lib' import f, v as y" + how) + "{{ f(2) }}{{ y }}")

    def templates(self):
        main = self.body(3)
        templates = {"main": main, "part": "[{{ x }}{{ n }}{% set a = 5 %}{{ a }}]", "lib": "{% macro f(q) %}({{ q }}{{ n }}{{ a }}){% endmacro %}{% set v = 'V' %}"}
        if self.random.random() < 0.15:
            templates["base"] = "B[{% block one %}" + self.body(1) + "{% endblock %}" + self.body(2) + "{% block two scoped %}" + self.output() + "{% endblock %}]"
            templates["main"] = "{% extends 'base' %}" + self.pick("", self.body(2)) + "{% block one %}" + self.pick("", "{{ super() }}") + self.body(2) + "{% endblock %}" + self.pick("", "{% block two %}" + self.body(1) + "{% endblock %}")
        return templates


def broken(random, text):
    """A template with a piece missing or in the wrong position."""
    at = random.randrange(len(text) + 1)
    return random.choice([text[:at], text[:at] + random.choice(["{{", "%}", "}}", "{%", "'", "(", "|", "]", "{#", " "]) + text[at:], text[:at] + text[at + 1:]])


def case(random):
    generator = Generator(random)
    templates = generator.templates()
    if random.random() < 0.05:
        templates["main"] = broken(random, templates["main"])
    options = {}
    for name, fraction in (("trim_blocks", 0.3), ("lstrip_blocks", 0.3), ("keep_trailing_newline", 0.2), ("autoescape", 0.2)):
        if random.random() < fraction:
            options[name] = True
    options["undefined"] = random.choice(["lenient", "lenient", "lenient", "lenient", "lenient", "chainable", "debug", "strict"])
    return templates, VALUES, options
