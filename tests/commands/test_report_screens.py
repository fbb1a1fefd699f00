"""The page of `accel-gen report` as headless Chromium draws it at 1280, 600 and 360 pixels, in the light and in the dark, against the pictures in
screens/. Machines have different fonts: the page is drawn in a font of fixed width, whose letters are 0.6 em wide everywhere, and what is compared
are the mean colours of blocks of 16 by 16 pixels, of which one in 25 may differ (a font of other widths: one in 16; a page that begins two lines
later: one in 5). The pictures have a quarter of the size. --accept writes them again.
Skipped without Chromium. TAP."""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "build")]

from tap import GENERATOR, finish, report  # noqa: E402

SCREENS = pathlib.Path(__file__).resolve().parent / "screens"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS, SCHEMES, HEIGHT = (1280, 600, 360), {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}, 3200
KEPT, BLOCK = 4, 16  # pixels of a side: of what is kept as one, and compared as one
SAME, FEW = 20, 0.04  # of 255 levels; of all blocks
FONT = "<style>* { font-family: monospace !important; }</style></head>"


def event(name, kind, start, duration):
    return {"name": name, "cat": kind, "ph": "X", "ts": start, "dur": duration}


def write_page(folder):
    """Two runs with all that a page shows but for the memory of a plan, which other changes change."""
    for number, name in enumerate(("first", "second")):
        run = folder / name
        run.mkdir()
        lines = [{"step": step, "loss": (number + 4) * math.exp(-step / 60) + 0.2 * math.sin(step) ** 2, "lr": 1e-3 * min(step / 20, 1), "grad_norm": 2 - number + math.cos(step),
                  "tokens_per_s": 1000.0 * (number + 1) + step, "step_ms": 50.0 / (number + 1), "peak_memory_mib": 100 + number,
                  "grad_norm/wte": step, "grad_norm/h.0.attn": 1 / step, **({"eval_loss": 3 / math.sqrt(step) + number} if step % 20 == 0 else {})} for step in range(2, 201, 2)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (run / "run.json").write_text(json.dumps({
            "unit": "token", "units_per_step": 64, "steps": 200, "ranks": 1, "threads": 2, "summary": "2 layers, 0.1 M parameters, float32", "matmul_flops_per_step": 2e8,
            "machine": {"processor": "A processor of 2 GHz", "logical_processors": 4, "memory_bytes": 1 << 33, "system": "Linux"},
            "keys": {"optimizer.lr": {"value": str(1e-3 * (number + 1))}, "training.steps": {"value": "200"}, "devices.peak_flops": {"value": "1e10"}}}))
        (run / "audit.json").write_text(json.dumps({"program": {"file": "trainer.c"}, "summary": {"holds": 40, "broken": 0, "cannot_tell": number}, "claims": []}))
        trace = [event("matmul_nt_8x8", "part", 0, 60), event("add_8", "part", 60, 30 - 10 * number), event("step 0", "step", 0, 100)]
        (run / "profile_0.json").write_text(json.dumps({"traceEvents": trace}))
    subprocess.run([GENERATOR, "report", "first", "second", "-o", "page.html"], cwd=folder, check=True, timeout=60)
    page = folder / "page.html"
    page.write_text(page.read_text().replace("</head>", FONT))
    return page


def means(pixels, side):
    """The mean colours of blocks; what is no whole block is left out."""
    rows, columns = (size // side for size in pixels.shape[:2])
    return pixels[:rows * side, :columns * side].reshape(rows, side, columns, side, 3).mean(axis=(1, 3))


def drawn(folder, page, width, flags):
    picture = folder / "page.png"
    subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser", f"--window-size={width},{HEIGHT}",
                    f"--screenshot={picture}", *flags, page.as_uri()], capture_output=True, timeout=120, check=False)
    return means(np.asarray(Image.open(picture).convert("RGB")).astype(float), KEPT)


def different(a, b):
    """What part of the blocks is different; 1 where sizes are."""
    if a.shape != b.shape:
        return 1.0
    return float((np.abs(means(a, BLOCK // KEPT) - means(b, BLOCK // KEPT)).max(axis=2) > SAME).mean())


def check_comparison(kept):
    """It notices a page in other colours, one that begins two lines later, and one that lacks a chart."""
    light, dark = kept["1280_light"], kept["1280_dark"]
    report("other colours are another picture", [] if different(light, dark) > FEW else [different(light, dark)])
    later = np.roll(light, 40 // KEPT, axis=0)
    report("a page that begins two lines later is another picture", [] if different(light, later) > FEW else [different(light, later)])
    for name in ("1280_light", "360_dark"):
        picture, rows = kept[name], 200 // KEPT
        without = np.concatenate([picture[:picture.shape[0] // 4], picture[picture.shape[0] // 4 + rows:], np.broadcast_to(picture[2, 2], (rows, *picture.shape[1:]))])
        report(f"{name}: a page that lacks a chart is another picture", [] if different(picture, without) > FEW else [different(picture, without)])


def main():
    if BROWSER is None:
        print("no chromium here")
        sys.exit(77)
    folder, kept = pathlib.Path(tempfile.mkdtemp()), {}
    try:
        page = write_page(folder)
        for width in WIDTHS:
            for scheme, flags in SCHEMES.items():
                name = f"{width}_{scheme}"
                path, found = SCREENS / f"report_{name}.png", drawn(folder, page, width, flags)
                if "--accept" in sys.argv:
                    SCREENS.mkdir(exist_ok=True)
                    Image.fromarray(found.round().astype(np.uint8)).quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
                kept[name] = np.asarray(Image.open(path).convert("RGB")).astype(float)
                share = different(found, kept[name])
                if share > FEW:
                    path = pathlib.Path("build/tests") / path.name
                    Image.fromarray(found.round().astype(np.uint8)).save(path)
                report(f"{width} pixels, {scheme}: as in {(SCREENS / f'report_{name}.png').name}", [] if share <= FEW else [f"{100 * share:.1f} % of the blocks differ; {path} is what is drawn"])
        check_comparison(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish()


if __name__ == "__main__":
    main()
