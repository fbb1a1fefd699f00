"""A page of `accel-gen report` as a reader of HTML has it: its elements, its data, its charts as numbers, and the contrast of its colours."""

import html.parser
import json
import re

VOID = {"meta", "input", "br", "link", "img", "hr"}
SVG = {"path"}
SCALES = {"k": 1e3, "M": 1e6, "G": 1e9}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children, self.text = tag, dict(attributes), parent, [], ""

    def all(self, tag=None, **attributes):
        """The elements within this one, in the order of the page."""
        for child in self.children:
            if (tag is None or child.tag == tag) and all(value in child.attributes.get(name.rstrip("_"), "").split() for name, value in attributes.items()):
                yield child
            yield from child.all(tag, **attributes)

    def words(self):
        return self.text + "".join(child.words() for child in self.children)


class Page(html.parser.HTMLParser):
    """Reads a page; `wrong` lists what makes it no page that stands alone. Not `whole`: a part of one, of which nothing is required."""

    def __init__(self, text, whole=True):
        super().__init__()
        self.root = self.at = Element("", (), None)
        self.wrong, self.ids = [], []
        self.source = text
        self.feed(text)
        self.close()
        if not whole:
            return
        self.wrong += [f"{self.at.tag} is not closed"] if self.at is not self.root else []
        self.check()
        self.data = json.loads(next(self.root.all("script", id="data")).text)
        self.css = next(self.root.all("style")).text

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs, self.at)
        self.at.children.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attrs):
        if tag not in SVG:
            self.wrong.append(f"<{tag}/> in HTML")
        self.at.children.append(Element(tag, attrs, self.at))

    def handle_endtag(self, tag):
        if tag != self.at.tag:
            self.wrong.append(f"</{tag}> in <{self.at.tag}> at {self.getpos()}")
        else:
            self.at = self.at.parent

    def handle_data(self, data):
        self.at.text += data

    def check(self):
        elements = list(self.root.all())
        self.ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
        self.wrong += [f"the id {name} twice" for name in set(self.ids) if self.ids.count(name) > 1]
        for element in elements:
            for name, value in element.attributes.items():
                if name in ("src", "srcset", "action", "data", "poster", "xlink:href") or (name == "href" and not value.startswith("#")):
                    self.wrong.append(f"{element.tag} refers to {value}")
                if name.startswith("on"):
                    self.wrong.append(f"{element.tag} has {name}")
                if name in ("aria-labelledby", "aria-describedby") or (name == "href" and value.startswith("#")):
                    self.wrong += [f"no id {value}"] if value.lstrip("#") not in self.ids else []
            if element.tag == "table" and not list(element.all("th", scope="col")) + list(element.all("th", scope="row")):
                self.wrong.append("a table without heads")
        self.wrong += [f"{word} in the style" for word in ("url(", "@import") if word in next(self.root.all("style")).text]
        self.wrong += [] if next(self.root.all("html")).attributes.get("lang") else ["no language"]
        policy = [meta.attributes["content"] for meta in self.root.all("meta") if meta.attributes.get("http-equiv") == "Content-Security-Policy"]
        self.wrong += [] if len(policy) == 1 and policy[0].startswith("default-src 'none'") else ["no policy against a network"]
        self.wrong += [f"{len(list(self.root.all('h1')))} titles"] if len(list(self.root.all("h1"))) != 1 else []

    def charts(self):
        return {next(figure.all("strong")).text: Chart(figure) for figure in self.root.all("figure") if "data-chart" in figure.attributes}


def number_of(label):
    return float(label[:-1]) * SCALES[label[-1]] if label[-1] in SCALES else float(label)


class Chart:
    """A chart's curves in the numbers of its axes, which are read from the labels of its ticks."""

    def __init__(self, figure):
        self.words = next(figure.all("div", role="img")).attributes["aria-label"]
        self.x, self.y = self.axis(figure, "x", "left"), self.axis(figure, "y", "bottom")
        self.lines = [(path.attributes["class"].split(), self.points(path.attributes["d"])) for path in figure.all("path") if "line" in path.attributes["class"].split()]
        self.places = [[[1 - float(y) / 1000 for _, y in self.pairs(part)] for part in path.attributes["d"].split("M")[1:]]
                       for path in figure.all("path") if "line" in path.attributes["class"].split()]
        self.bands = [self.points(path.attributes["d"]) for path in figure.all("path", class_="band")]

    @staticmethod
    def axis(figure, name, side):
        """(position, number) of each tick."""
        spans = [span for span in next(figure.all("div", class_=name)).children if span.attributes.get("class") != "name"]
        return [(float(re.search(rf"{side}: ?([\d.]+)%", span.attributes["style"])[1]) / 100, number_of(span.text)) for span in spans]

    @staticmethod
    def value(axis, at):
        (from_at, from_number), (to_at, to_number) = axis[0], axis[-1]
        return from_number + (at - from_at) / (to_at - from_at) * (to_number - from_number)

    @staticmethod
    def log_value(axis, at):
        (from_at, from_number), (to_at, to_number) = axis[0], axis[-1]
        return from_number * (to_number / from_number) ** ((at - from_at) / (to_at - from_at))

    @staticmethod
    def pairs(part):
        return re.findall(r"(-?[\d.]+(?:e-?\d+)?) (-?[\d.]+(?:e-?\d+)?)", part)

    def points(self, path):
        """Lists of points, one for each part that is drawn without a gap."""
        return [[(self.value(self.x, float(x) / 1000), self.value(self.y, 1 - float(y) / 1000)) for x, y in self.pairs(part)] for part in path.split("M")[1:]]

    def wrong_ticks(self):
        """Ticks that are not where their labels say, unevenly apart, or too few."""
        wrong = []
        for axis in (self.x, self.y):
            wrong += [f"ticks {axis}"] if not 2 <= len(axis) <= 12 else []
            wrong += [f"{number} is at {at}" for at, number in axis if abs(self.value(axis, at) - number) > 1e-3 * (axis[-1][1] - axis[0][1])]
            wrong += [f"ticks outside {axis}"] if not all(-1e-6 <= at <= 1 + 1e-6 for at, _ in axis) else []
            apart = axis[1][1] - axis[0][1]
            mantissa = float(f"{apart:e}".split("e")[0])
            wrong += [f"ticks {apart} apart"] if min(abs(mantissa - round_one) for round_one in (1, 2, 5, 10)) > 1e-3 else []
        return wrong


def luminance(colour):
    """Of WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def palettes(css):
    """The colours in the light and in the dark."""
    light, dark = (dict(re.findall(r"--(\w+): (#\w+)", block)) for block in re.findall(r":root \{([^}]*)\}", css))
    return {"light": light, "dark": {**light, **dark}}
