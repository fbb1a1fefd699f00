"""The page of `accel-gen report` in headless Chromium: what its script draws is what the command drew, its switches move the curves where the
numbers say, nothing is wider than the window, and the colours are those of the light and of the dark. Skipped without Chromium. TAP."""

import http.client
import http.server
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from PIL import Image

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "build")]

from report_page import Page, palettes  # noqa: E402
from tap import GENERATOR, TREE, finish, report  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DARK = "--blink-settings=preferredColorScheme=0"
# Each state of the switches, and the width of the page in it.
PROBE = """
const shown = {};
const form = document.getElementById('controls');
const probe = (name, change) => {
  form.reset();
  change(form.elements);
  form.dispatchEvent(new Event('input'));
  shown[name] = document.querySelector('main').outerHTML;
};
probe('plain', () => {});
probe('log', elements => { elements.log.checked = true; });
probe('time', elements => { elements.x.value = 'time'; });
probe('units', elements => { elements.x.value = 'units'; });
probe('smooth', elements => { elements.smoothing.value = 0.5; });
probe('one', elements => { elements.run[1].checked = false; });
const made = document.createElement('script');
made.type = 'application/json';
made.id = 'shown';
made.textContent = JSON.stringify({...shown, width: document.documentElement.scrollWidth, window: innerWidth}).replace(/</g, '\\\\u003c');
document.body.append(made);
"""


def is_without_server():
    missing = TREE / "build/config/missing"
    return missing.exists() and "server" in missing.read_text().split()


def chromium(folder, page, *flags):
    done = subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser", *flags, page if isinstance(page, str) else page.as_uri()],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.stdout


def write_runs(folder):
    for number, name in enumerate(("first", "second")):
        run = folder / name
        run.mkdir()
        lines = [{"step": step, "loss": (number + 4) * math.exp(-step / 40) + 0.1, **({"eval_loss": 5 / step} if step % 20 == 0 else {}), "lr": 1e-3 * step, "step_ms": 250.0 * (number + 1),
                  "grad_norm/a": step, "grad_norm/b": 1 / step} for step in range(2, 121, 2)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (run / "run.json").write_text(json.dumps({"unit": "token", "units_per_step": 64, "keys": {"optimizer.lr": {"value": str(number)}}}))
    page = folder / "page.html"
    subprocess.run([GENERATOR, "report", folder / "first", folder / "second", "-o", page], check=True, timeout=60)
    return page


def close(a, b, size):
    return abs(a - b) <= 4e-3 * size


def wrong_points(chart, expected):
    """The points of each curve, with those of its ticks' axes."""
    found = [[point for part in parts for point in part] for _, parts in chart.lines]
    if len(found) != len(expected):
        return [f"{len(found)} curves, not {len(expected)}"]
    wrong = []
    for points, pairs in zip(found, expected):
        width, height = (max(abs(pair[i]) for of in expected for pair in of) for i in (0, 1))
        wrong += [f"{len(points)} points, not {len(pairs)}"] if len(points) != len(pairs) else []
        wrong += [f"{a} is not {b}" for a, b in zip(points, pairs) if not close(a[0], b[0], width) or not close(a[1], b[1], height)][:2]
    return wrong


def check_script(folder, page):
    static = Page(page.read_text())
    probed = folder / "probed.html"
    probed.write_text(page.read_text().replace("</body>", f"<script>{PROBE}</script></body>"))
    text = chromium(folder, probed, "--window-size=360,900", "--dump-dom")
    found = Page(text, whole=False).root
    shown = json.loads(next(found.all("script", id="shown")).text)
    views = {name: Page(text, whole=False).charts() for name, text in shown.items() if isinstance(text, str)}
    wrong = []
    for name, chart in static.charts().items():
        other = views["plain"][name]
        wrong += [f"{name}: ticks {other.y} are not {chart.y}"] if (chart.x, chart.y) != (other.x, other.y) else []
        wrong += [f"{name}: {a} is not {b}" for a, b in zip(chart.lines, other.lines) if a[0] != b[0]]
        wrong += [f"{name}: {problem}" for problem in wrong_points(other, [[point for part in parts for point in part] for _, parts in chart.lines])]
    report("the script draws what the command drew", wrong)
    runs = static.data["runs"]
    pairs = [[(step, loss) for step, loss in zip(run["last"], run["series"][name]["mean"]) if loss is not None] for name in ("loss", "eval_loss") for run in runs]
    log = views["log"]["Loss"]
    log.lines = [(classes, [[(x, log.log_value(log.y, at)) for (x, _), at in zip(part, ats)] for part, ats in zip(parts, places)]) for (classes, parts), places in zip(log.lines, log.places)]
    report("the logarithm is one", wrong_points(log, pairs) + [f"{at}: {number}" for at, number in log.y if not close(log.log_value(log.y, at), number, number)])
    report("over time a step takes what it took", wrong_points(views["time"]["Learning rate"], [[(0.25 * (i + 1) * step / scale, lr) for step, lr in zip(run["last"], run["series"]["lr"]["mean"])]
                                                                                               for scale in [1] for i, run in enumerate(runs)]))
    report("over tokens a step has its tokens", wrong_points(views["units"]["Learning rate"], [[(64 * step, lr) for step, lr in zip(run["last"], run["series"]["lr"]["mean"])] for run in runs]))
    smooth = []
    for run in runs:
        for values in [run["series"]["lr"]["mean"]]:
            means = [sum(value * 0.5 ** (k - i) for i, value in enumerate(values[:k + 1])) / sum(0.5 ** (k - i) for i in range(k + 1)) for k in range(len(values))]
            smooth.append(list(zip(run["last"], means)))
    chart = views["smooth"]["Learning rate"]
    chart.lines = [line for line in chart.lines if "faint" not in line[0]]
    report("smoothing is a mean with falling weights", wrong_points(chart, smooth))
    report("a run can be left out", wrong_points(views["one"]["Learning rate"], [[(step, lr) for step, lr in zip(runs[0]["last"], runs[0]["series"]["lr"]["mean"])]]))
    report("nothing is wider than a small window", [] if shown["width"] <= shown["window"] <= 500 else [f"{shown['width']} in {shown['window']}"])


def colour(text):
    return np.array([int(text[i:i + 2], 16) for i in (1, 3, 5)] if len(text) == 7 else [17 * int(digit, 16) for digit in text[1:]])


def check_pictures(folder, page):
    css = palettes(Page(page.read_text()).css)
    for width, scheme in ((1280, "light"), (600, "dark"), (360, "light")):
        picture = folder / "page.png"
        chromium(folder, page, f"--window-size={width},2400", f"--screenshot={picture}", *([DARK] if scheme == "dark" else []))
        pixels = np.asarray(Image.open(picture).convert("RGB")).astype(int)
        wrong = [] if pixels.shape[1] == width else [pixels.shape]
        count = {name: int((np.abs(pixels - colour(css[scheme][name])).max(axis=2) <= 2).sum()) for name in ("paper", "ink", "r0", "r1", "rule")}
        wrong += [f"{count['paper']} of {pixels.shape[0] * width} pixels are paper"] if count["paper"] < 0.6 * pixels.shape[0] * width else []
        wrong += [f"{count[name]} pixels of {name}" for name in ("ink", "r0", "r1", "rule") if count[name] < 150]
        report(f"{width} pixels, {scheme}: the page has its colours", wrong)


# ---- A page that is served ----

CHOOSE = """
const chosen = document.getElementById('controls').elements;
chosen.log.checked = true;
chosen.smoothing.value = 0.5;
chosen.run[1].checked = false;
document.querySelector('[aria-labelledby=numbers] details').open = true;
"""
TELL = """
const kept = document.getElementById('controls').elements;
document.body.dataset.kept = [kept.log.checked, kept.smoothing.value, kept.by.value, kept.run[0].checked, kept.run[1].checked, kept.x.value,
  document.querySelector('[aria-labelledby=numbers] details').open, document.querySelectorAll('details[open]').length].join(' ');
"""


class Between(http.server.BaseHTTPRequestHandler):
    """Hands on what the server says: to the first page adds a reader who chooses, to later ones one who tells; before the first state the run grows."""

    def do_GET(self):
        server, asked = self.server, self.server.asked
        asked.append(self.path)
        if self.path == "/state" and asked.count("/state") == 1:
            server.grow()
        if self.path == "/state":
            time.sleep(0.5)  # the browser's clock stands still meanwhile
        connection = http.client.HTTPConnection("127.0.0.1", server.port_behind, timeout=60)
        connection.request("GET", self.path)
        answer = connection.getresponse()
        bytes_ = answer.read()
        if self.path == "/":
            bytes_ = bytes_.replace(b"</body>", b"<script>" + (CHOOSE if asked.count("/") == 1 else TELL).encode() + b"</script></body>")
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(bytes_)))
        self.end_headers()
        self.wfile.write(bytes_)

    def log_message(self, *_):
        pass


def check_reload(folder):
    def grow():
        with (folder / "first" / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"step": 122, "loss": 0.1, "step_ms": 250.0}) + "\n")

    process = subprocess.Popen([GENERATOR, "report", folder / "first", folder / "second", "--serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
    between.asked, between.grow = [], grow
    between.port_behind = int(process.stdout.readline().split("/")[2].split(":")[1])
    threading.Thread(target=between.serve_forever, daemon=True).start()
    try:
        text = chromium(folder, f"http://127.0.0.1:{between.server_address[1]}/", "--virtual-time-budget=15000", "--dump-dom")
        data = Page(text, whole=False).root
        last = json.loads(next(data.all("script", id="data")).text)["runs"][0]["last"][-1]
        report("a page whose run has grown is loaded again", [] if last == 122 and between.asked.count("/") >= 2 else [last, between.asked])
        kept = next(data.all("body")).attributes.get("data-kept")
        report("with its switches as they were", [] if kept == "true 0.5 0.5 true false steps true 1" else [kept])
    finally:
        process.terminate()
        process.wait(60)
        between.shutdown()


def main():
    if BROWSER is None:
        print("no chromium here")
        sys.exit(77)
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        page = write_runs(folder)
        check_script(folder, page)
        check_pictures(folder, page)
        if not is_without_server():
            check_reload(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish()


if __name__ == "__main__":
    main()
