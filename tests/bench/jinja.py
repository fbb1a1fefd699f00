"""Times gen/jinja against Jinja2 and MiniJinja (the PyPI package): parse and render apart.

usage: jinja.py DRIVER [--rounds N]

The shapes are those of Jinja2's own benchmark: a big table, an inheritance chain, a page full of macros. All engines
take turns in every round; what is printed is the median of the rounds with the middle half of them, and the medians'
ratios, with the load of the machine. Times are those of the processor, so that other work on it counts little. Making
an environment is never counted.

MiniJinja is called through its Python module in two ways: "MiniJinja" gets the values as every caller of the module gives
them, and reads Python's objects while it renders; for "its own" the values stand as constants at the head of the template,
which its compiler turns into its own values, so that rendering is its binary code alone.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import jinja2
import minijinja

TABLE = {
    "templates": {"main": "<table>\n{% for row in table %}\n<tr>{% for col in row %}<td>{{ col }}</td>{% endfor %}</tr>\n{% endfor %}\n</table>"},
    "values": {"table": [[i * j for j in range(10)] for i in range(1000)]},
}
NAVIGATION = [{"href": f"/page{i}", "caption": f"Page {i}"} for i in range(20)]
INHERITANCE = {
    "templates": {
        "main": "{% extends 'layout' %}{% block title %}{{ page }} - {{ super() }}{% endblock %}{% block body %}<h1>{{ page }}</h1>\n"
        "{% for item in items %}<p class=\"{{ loop.cycle('odd', 'even') }}\">{{ loop.index }}: {{ item.caption|upper }}</p>\n{% endfor %}{{ super() }}{% endblock %}",
        "layout": "{% extends 'base' %}{% block navigation %}<ul>{% for item in items %}<li><a href=\"{{ item.href }}\"{% if loop.first %} class=\"first\"{% endif %}>{{ item.caption }}</a></li>\n{% endfor %}</ul>{% endblock %}"
        "{% block body %}<div>{% block inner %}nothing{% endblock %}</div>{% endblock %}",
        "base": "<!doctype html>\n<title>{% block title %}Site{% endblock %}</title>\n<nav>{% block navigation %}{% endblock %}</nav>\n<main>{% block body %}{% endblock %}</main>\n<footer>{% block footer %}&copy; {{ year }}{% endblock %}</footer>",
    },
    "values": {"page": "Index", "items": NAVIGATION, "year": 2026},
}
MACROS = {
    "templates": {
        "main": "{% macro input(name, value='', type='text', size=20) %}<input type=\"{{ type }}\" name=\"{{ name }}\" value=\"{{ value }}\" size=\"{{ size }}\">{% endmacro %}"
        "{% macro field(label, name, value='') %}<dt>{{ label }}</dt><dd>{{ input(name, value, size=size) }}</dd>{% endmacro %}"
        "<form>{% for f in fields %}{{ field(f.label, f.name, f.value) }}{{ input('hidden' ~ loop.index, type='hidden') }}\n{% endfor %}</form>",
    },
    "values": {"size": 40, "fields": [{"label": f"Field {i}", "name": f"field{i}", "value": f"value {i}"} for i in range(100)]},
}
SHAPES = {"table, 10,000 cells": TABLE, "inheritance chain": INHERITANCE, "300 macro calls": MACROS}


def timed(action, count):
    start = time.process_time()
    for _ in range(count):
        action()
    return (time.process_time() - start) * 1e3 / count


class Ours:
    def __init__(self, driver, shape):
        self.process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(shape) + "\n")

    def measure(self, what, count):
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Jinja2:
    def __init__(self, shape):
        self.shape = shape
        self.environment = jinja2.Environment(loader=jinja2.DictLoader(shape["templates"]))
        self.template = self.environment.get_template("main")

    def compile_all(self):
        for name, text in self.shape["templates"].items():
            self.environment.compile(text, name)

    def measure(self, what, count):
        if what == "parse":
            return timed(self.compile_all, count)
        return timed(lambda: self.template.render(**self.shape["values"]), count)


class MiniJinja:
    def __init__(self, shape):
        self.shape = shape
        self.environment = minijinja.Environment(templates=shape["templates"], auto_escape_callback=lambda name: False)

        self.other = minijinja.Environment()

    def compile_all(self):
        for name, text in self.shape["templates"].items():
            self.other.add_template(name, text)

    def measure(self, what, count):
        if what == "parse":
            return timed(self.compile_all, count)
        return timed(lambda: self.environment.render_template("main", **self.shape["values"]), count)


class MiniJinjaOwn(MiniJinja):
    def __init__(self, shape):
        super().__init__(shape)
        text = self.environment.render_template("main", **shape["values"])
        head = "".join(f"{{% set {name} = {json.dumps(value)} %}}" for name, value in shape["values"].items())
        self.environment.add_template("main", head + shape["templates"]["main"])
        assert self.environment.render_template("main") == text

    def measure(self, what, count):
        return timed(lambda: self.environment.render_template("main"), count)


# repetitions in a round, by the order of the engines
COUNTS = {"parse": (200, 3, 30), "render": (20, 5, 5, 5)}


def summary(times):
    low, _, high = statistics.quantiles(times, n=4)
    return statistics.median(times), low, high


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print("load before:", *(f"{load:.1f}" for load in os.getloadavg()))
    for name, shape in SHAPES.items():
        engines = {"gen/jinja": Ours(arguments.driver, shape), "Jinja2": Jinja2(shape), "MiniJinja": MiniJinja(shape), "its own": MiniJinjaOwn(shape)}
        for what, counts in COUNTS.items():
            times = {engine: [] for engine, _ in zip(engines, counts)}
            for _ in range(arguments.rounds):
                for (engine, target), count in zip(engines.items(), counts):
                    times[engine].append(target.measure(what, count))
            ours = statistics.median(times["gen/jinja"])
            for engine in times:
                median, low, high = summary(times[engine])
                ratio = sorted(other / own for other, own in zip(times[engine], times["gen/jinja"]))
                print(f"{name:20} {what:6} {engine:10} {median:9.4f} ms  [{low:.4f} {high:.4f}]  {median / ours:7.1f}x  "
                      f"[{ratio[len(ratio) // 4]:.1f} {ratio[3 * len(ratio) // 4]:.1f}]")
    print("load after:", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
