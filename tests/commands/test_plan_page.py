"""Pages of `accel-gen plan --html`: the numbers are those of `plan` and `plan --json`, a pipeline's schedule has the order of the trainer's own
text, each action comes as soon as what it needs is there, ranks are where the axes' order puts them.
Pages of `accel-gen diff --html` have what `diff --json` has. TAP."""

import itertools
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "build")]

from report_page import Page, contrast, palettes  # noqa: E402
from tap import TREE, finish, report, run  # noqa: E402

TINY = str(TREE / "examples" / "jobs" / "tiny.yaml")
KINDS = ["forward", "backward", "gradients of weights"]
CALLS = {"go_forward": KINDS[0], "go_back": KINDS[1], "add_deferred": KINDS[2]}


def pipeline(schedule, ranks, batches, chunks=1):
    keys = [f"devices.per_node={ranks}", f"parallelism.pp={ranks}", f"parallelism.pp_schedule={schedule}", "training.eval_interval=0",
            f"model.config.n_layer={ranks * chunks}", f"accumulation={{num_steps: {batches}, sync_with_dataloader: false}}"]
    return keys + (["parallelism.megatron.num_layers_per_virtual_pipeline_stage=1"] if chunks > 1 else [])


PIPELINES = {"gpipe": (4, 6), "1f1b": (4, 6), "interleaved": (2, 4, 2), "zero_bubble": (3, 7)}


def sets(keys):
    return [word for key in keys for word in ("--set", key)]


def planned(folder, keys=(), job=TINY, flags=()):
    """The page, what is in it as JSON, and the same command's text."""
    words = [job, *sets(keys), *flags]
    done = run("plan", *words, "--html", folder / "plan.html")
    page = Page((folder / "plan.html").read_text(encoding="utf-8")) if done.returncode == 0 else None
    return done, page, json.loads(run("plan", *words, "--json").stdout), run("plan", *words).stdout


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def script(page, name):
    return json.loads(next(page.root.all("script", id=name)).text)


def section(page, name):
    return next(part for part in page.root.all("section") if part.attributes["aria-labelledby"] == name)


def same_numbers(page, plan, text):
    """Each line of the text, in order, and the object."""
    for summary in section(page, "plan").all("summary"):
        summary.text = " "
    shown = squeezed(section(page, "plan").words())
    wrong = [line for line in text.splitlines() if squeezed(line[10:]) not in shown]
    return page.wrong + wrong[:3] + ([] if page.data == plan else ["the data is not that of --json"])


def check_numbers(folder):
    for name, keys, flags in (("one rank", [], []), ("ranks", ["devices.per_node=2", "parallelism.zero_stage=2"], ["--nodes", "2"]),
                              ("an evaluator", [], ["--program", "evaluate"]), ("a generator", [], ["--program", "generate"]),
                              ("kernels", ["training.ema.decay=0.9"], ["-v"])):
        done, page, plan, text = planned(folder, keys, flags=flags)
        report(f"{name}: the numbers are those of plan", [done.stderr, done.stdout] if page is None else same_numbers(page, plan, text))
        if page is None:
            continue
        total = plan["arena_bytes"]["total"]
        if "--program" in flags:
            shares = [float(row_cells[1].words()) for body in section(page, "memory").all("tbody") for row in body.all("tr") for row_cells in [list(row.all("td"))]]
            report(f"{name}: the parts of memory are all", [] if abs(sum(shares) - 100) < 0.4 else shares)
        else:
            memory = script(page, "memory-data")
            report(f"{name}: memory is the arena", [] if memory["bytes"] == total else [memory["bytes"], total])


# ---- Pipelines ----


def number(text, names):
    """An expression of the program."""
    return eval(re.sub(r"\((?:size_t|int64_t)\)", "", text).replace("/", "//"), {}, names)  # of our own program's text


def order_of(text, rank):
    """(kind, stage, micro-batch) as the C of a trainer runs them."""
    tables = {name: [int(one) for one in values.split(",")] for name, values in re.findall(r"static const size_t (slots|forwards_ahead)\[\] = \{(.*?)\}", text)}
    names = {"stage": rank, **tables}
    names["ahead"] = number(re.search(r"const size_t ahead = (.*?);", text)[1], names)
    works = {name: {of: re.search(rf"static void {name}\([^)]*\) {{[^}}]*?const size_t {of} = ([^;]*);", text) for of in ("part", "i")} for name in CALLS}
    step = re.search(r"\nstatic void step\(.*?\n}\n", text, re.S)[0]
    order = []
    for first, end, body in re.findall(r"for \(size_t i = ([^;]*); i < ([^;]*); i\+\+\) (\{.*?\n  \}|[^{\n]*;)", step, re.S):
        calls = re.findall(r"(go_forward|go_back|add_deferred)\((?:run, at, )?([^)]*)\);", body)
        for i in range(number(first, names), number(end, names)) if calls else ():
            for name, argument in calls:
                at = {**names, "n": number(argument, {**names, "i": i})}
                at["i"] = at["n"]
                order.append((CALLS[name], *(number(works[name][of][1], at) if works[name][of] else at[other] for of, other in (("part", "stage"), ("i", "i")))))
    return order


def needed(kind, stage, batch, last):
    if kind == KINDS[0]:
        return (kind, stage - 1, batch) if stage > 0 else None
    if kind == KINDS[1]:
        return (kind, stage + 1, batch) if stage < last else (KINDS[0], stage, batch)
    return (KINDS[1], stage, batch)


def check_times(ranks, parts):
    """Each action begins when the one before it on its rank and what it needs have ended, and not later."""
    ends = {(kind, stage, batch): end for row in ranks for kind, stage, batch, _, end in row}
    last = max(stage for _, stage, _ in ends)
    defers = any(kind == KINDS[2] for kind, _, _ in ends)
    wrong = [] if max(ends.values()) == parts else [f"{parts} parts"]
    for row in ranks:
        for before, (kind, stage, batch, start, end) in zip([None, *row], row):
            first = max(before[4] if before else 0, ends.get(needed(kind, stage, batch, last), 0))
            length = 1 if kind != KINDS[1] or defers else 2
            wrong += [] if (start, end) == (first, first + length) else [(kind, stage, batch, start, end, first)]
    return wrong[:3]


def check_picture(figure, ranks, parts):
    """The boxes and their labels against the times."""
    svg = next(child for child in figure.all("svg") if "style" in child.attributes)
    width = float(svg.attributes["viewbox"].split()[2])
    boxes = [(path.attributes["d"], next(path.all("title")).text) for path in svg.all("path")]
    labels = [int(label.text) for label in svg.all("text")]
    actions = [(k, action) for k, row in enumerate(ranks) for action in row]
    wrong = [] if len(boxes) == len(actions) else [f"{len(boxes)} boxes"]
    wrong += [] if labels == [action[2] for _, action in actions] else ["labels"]
    for (k, (kind, stage, batch, start, end)), (path, title) in zip(actions, boxes):
        left, top, wide = (float(part) for part in re.match(r"M([\d.]+) ([\d.]+)h([\d.]+)", path).groups())
        good = abs(left * parts / width - start) < 1e-3 and abs(wide * parts / width - (end - start)) < 1e-3 and int(top) // 24 == k
        wrong += [] if good and title == f"{kind} of micro-batch {batch}, stage {stage}" else [(path, title, kind, stage, batch, start)]
    return wrong[:3]


def check_stage_memory(memory, times, stages):
    """What each rank has throughout is plan's; activations are there from a forward to the last action of its micro-batch and stage, on bytes of
    their own, and at most as many as plan says."""
    wrong = [] if memory["parts"] == times["parts"] and len(memory["ranks"]) == len(stages) else [memory["parts"]]
    for k, (rank, row, stage) in enumerate(zip(memory["ranks"], times["ranks"], stages)):
        spans = {}
        for _, at_stage, batch, start, end in row:
            first, last = spans.get((batch, at_stage), (start, end))
            spans[batch, at_stage] = (min(first, start), max(last, end))
        boxes = rank["occupants"]
        kept = {tuple(map(int, re.findall(r"\d+", box[0]))): (box[4], box[5]) for box in boxes if box[0].startswith("micro-batch")}
        wrong += [] if kept == spans else [f"rank {k}: {kept} is not {spans}"]
        wrong += [f"rank {k}: {a} {b}" for i, a in enumerate(boxes) for b in boxes[:i] if a[2] < b[2] + b[3] and b[2] < a[2] + a[3] and a[4] < b[5] and b[4] < a[5]][:2]
        whole = {kind: sum(box[3] for box in boxes if box[1] == kind and (box[4], box[5]) == (0, memory["parts"])) for kind in ("weights", "gradients", "optimizer")}
        wrong += [] if all(whole[kind] == stage[kind] for kind in whole) else [f"rank {k}: {whole}, not {stage}"]
        slots = {(box[2], box[3]) for box in boxes if box[1] == "activations"}
        wrong += [] if sum(size for _, size in slots) == stage["activations"] else [f"rank {k}: {slots} are not {stage['activations']}"]
        wrong += [] if len({at for at, _ in slots}) - any("way" in box[0] for box in boxes) == sum(stage["chunks"]) else [f"rank {k}: {len(slots)} slots, not {stage['chunks']}"]
        wrong += [] if rank["bytes"] == sum(whole.values()) + stage["activations"] else [f"rank {k}: {rank['bytes']} bytes"]
    return wrong


def check_pipelines(folder):
    for schedule, (ranks, batches, *chunks) in PIPELINES.items():
        keys = pipeline(schedule, ranks, batches, *chunks)
        done, page, plan, text = planned(folder, keys)
        if page is None:
            report(f"{schedule} has a page", [done.stderr])
            continue
        report(f"{schedule}: the numbers are those of plan", same_numbers(page, plan, text))
        run(TINY, *sets(keys), "-o", folder / "trainer.c")
        trainer, times = (folder / "trainer.c").read_text(), script(page, "schedule-data")
        wrong = [f"rank {k}: {[tuple(action[:3]) for action in row][:9]} is not {order_of(trainer, k)[:9]}" for k, row in enumerate(times["ranks"])
                 if [tuple(action[:3]) for action in row] != order_of(trainer, k)]
        wrong += [] if len(times["ranks"]) == ranks else ["ranks"]
        report(f"{schedule}: the order is that of the trainer", wrong)
        report(f"{schedule}: nothing begins before what it needs, nor later", check_times(times["ranks"], times["parts"]))
        report(f"{schedule}: ranks have the memory of plan, and activations while they are needed",
               check_stage_memory(script(page, "memory-data"), times, plan["pipeline"]["stages"]))
        figure = next(page.root.all("figure", class_="schedule"))
        report(f"{schedule}: the picture is that of the times", check_picture(figure, times["ranks"], times["parts"]))
        busy = sum(action[4] - action[3] for row in times["ranks"] for action in row)
        waits = 1 - busy / (times["parts"] * ranks)
        said = re.search(r"a rank waits ([\d.]+) %", figure.words())[1]
        wrong = [] if abs(waits - plan["pipeline"]["bubble"]) < 1e-9 and said == f"{100 * waits:.1f}" else [waits, plan["pipeline"]["bubble"], said]
        report(f"{schedule}: ranks wait as long as plan says", wrong)
    done, page, *_ = planned(folder, pipeline("1f1b", 2, 6000))
    wrong = [] if page and "24000 forwards and backwards" in page.source and len(page.source) < 100_000 else [done.stderr]
    report("a schedule that no picture can show has none", wrong)


# ---- The mesh ----


def check_mesh(folder):
    """Ranks in the order of docs/parallelism.md: the last axis runs fastest; those along cp are counted along dp_shard, too."""
    lengths = {"dp_replicate": 2, "dp_shard": 3, "cp": 2, "tp": 2}
    keys = ["devices.nodes=4", "devices.per_node=6", "parallelism={dp_replicate: 2, dp_shard: 3, cp: 2, tp: 2, zero_stage: 1}", "training.eval_interval=0"]
    done, page, *_ = planned(folder, keys)
    if page is None:
        report("a mesh has a page", [done.stderr])
        return
    places = list(itertools.product(*(range(length) for length in lengths.values())))
    expected = {rank: f"dp_replicate {a}, dp_shard {2 * b + c}, cp {c}, tp {d}; machine {rank // 6}" for rank, (a, b, c, d) in enumerate(places)}
    cells = {int(cell.text): cell.attributes["title"] for cell in section(page, "mesh").all("td") if "title" in cell.attributes}
    report("ranks have the numbers of the axes' order", [(rank, cells.get(rank), words) for rank, words in expected.items() if cells.get(rank) != words][:3])
    wrong = []
    for table in section(page, "mesh").all("table"):
        columns = [head.text for head in next(table.all("thead")).all("th")]
        for row in next(table.all("tbody")).all("tr"):
            for column, cell in zip(columns, [cell for cell in row.all("td")]):
                words = [*next(table.all("caption")).text.split(", "), next(row.all("th")).text, column]
                title = cell.attributes["title"]
                wrong += [f"{cell.text}: {title} is not in {words}"] if not all(re.search(rf"{name} ({first}|{last})\b", title) for name, first, last in
                                                                                 (re.match(r"(\w+) (\d+)(?:-(\d+))?", word).groups(default="x") for word in words)) else []
    report("the heads of the tables say where their ranks are", wrong[:3])


# ---- Pages, and what is refused ----


def check_refusals(folder):
    job = folder / "a<b>&\"'.yaml"
    shutil.copyfile(TREE / "examples/jobs/table.yaml", job)
    text = job.read_text()
    job.write_text(re.sub(r"(source|path): (?!/)", rf"\1: {TREE}/examples/jobs/", text))
    done, page, *_ = planned(folder, job=str(job))
    report("names are escaped", [done.stderr] if page is None else page.wrong + ([] if next(page.root.all("h1")).words() == f"Plan of {job}" else [next(page.root.all("h1")).words()]))
    kept = (folder / "plan.html").read_bytes()
    (folder / "bad.yaml").write_text("model: 5\n")
    done = run("plan", folder / "bad.yaml", "--html", folder / "plan.html")
    good = done.returncode == 2 and "bad.yaml:1:8: error" in done.stderr and (folder / "plan.html").read_bytes() == kept
    report("a wrong job leaves the page as it was", [] if good else [done.returncode, done.stderr])
    done = run("plan", job, "--html", job)
    report("the job is not overwritten", [] if done.returncode == 1 and "which is read" in done.stderr and job.read_text().startswith(text[:10]) else [done.stderr])
    for flags in (["--json"], ["--dump", "read"]):
        done = run("plan", job, "--html", folder / "plan.html", *flags)
        report(f"--html and {flags[0]} are refused", [] if done.returncode == 2 and f"without {flags[0]}" in done.stderr else [done.stderr])
    a, b = run("plan", job, "--html", "-"), run("plan", job, "--html", "-")
    report("the same job gives the same bytes", [] if a.stdout == b.stdout and a.stdout.encode() == kept else ["they differ"])


def cells_of(part):
    """Rows of a section's table: the name, and the words of the cells; None where a side has nothing."""
    return [(next(row.all("th")).words(), *(None if cell.attributes.get("class") == "quiet" else cell.words() for cell in row.all("td")))
            for body in part.all("tbody") for row in body.all("tr")]


def compared(a, b, folder, *flags):
    done = run("diff", a, b, "--html", folder / "diff.html", *flags)
    return done, Page((folder / "diff.html").read_text(encoding="utf-8")), json.loads(run("diff", a, b, "--json", *flags).stdout)


def check_figures(page, differences):
    """Values, ratios, and bars as long as the numbers."""
    wrong = []
    rows = list(section(page, "figures").all("tr"))[1:]
    for row, change in zip(rows, differences["plan"]):
        name, a, b, ratio, _ = cells_of(row.parent.parent)[rows.index(row)]
        one, other = float(change["a"]), float(change["b"])
        wide = [float(re.match(r"M0 [\d.]+H([\d.]+)", path.attributes["d"])[1]) for path in row.all("path")]
        wrong += [] if (name, a, b) == (change["name"], change["a"], change["b"]) and ratio == (f"{100 * (other - one) / one:+.1f} %" if one else "") else [(name, a, b, ratio, change)]
        wrong += [] if all(abs(length - 100 * number / max(one, other)) < 0.1 for length, number in zip(wide, (one, other), strict=True)) else [(name, wide)]
    return wrong + ([] if len(rows) == len(differences["plan"]) > 3 else [f"{len(rows)} rows"])


def check_diff(folder):
    other = folder / "<i>other.yaml"
    other.write_text(f"extends: {TINY}\nmodel: {{config: {{n_layer: 6}}}}\noptimizer: {{clip_grad_norm: 0.25}}\n")
    done, page, differences = compared(TINY, other, folder)
    report("diff: the page has the object of --json", page.wrong + ([] if done.returncode == 1 and done.stdout == "" and page.data == differences else [done.returncode, done.stdout]))
    wrong = [] if cells_of(section(page, "job")) == [(change["name"], change["a"], change["b"]) for change in differences["job"]] else cells_of(section(page, "job"))
    report("diff: the keys are those of --json", wrong)
    report("diff: the figures are those of --json", check_figures(page, differences))
    lines = [(sign, int(next(line.all("span")).text), line.text[2:]) for sign, line in ((line.tag, line) for pre in page.root.all("pre") for line in pre.children)]
    expected = [(tag, line["line"], line["text"]) for function in differences["step_path"] if None not in (function["a"], function["b"])
                for tag, side in (("del", "removed"), ("ins", "added")) for line in function[side]]
    report("diff: the lines are those of --json", [] if lines == expected and len(lines) > 4 else [lines[:3], expected[:3]])
    done, page, differences = compared(TINY, TINY, folder)
    report("diff: a job is the same as itself", page.wrong + ([] if done.returncode == 0 and "Nothing differs." in page.source else [done.returncode]))
    kept = (folder / "diff.html").read_bytes()
    done = run("diff", TINY, folder / "none.yaml", "--html", folder / "diff.html")
    report("diff: what cannot be read leaves the page as it was", [] if done.returncode == 2 and (folder / "diff.html").read_bytes() == kept else [done.returncode])
    for flags in (["--json"], ["-o", folder / "text"]):
        done = run("diff", TINY, other, "--html", folder / "diff.html", *flags)
        report(f"diff: --html and {flags[0]} are refused", [] if done.returncode == 2 and f"without {flags[0]}" in done.stderr else [done.stderr])


def check_colours(page):
    """Numbers on the boxes of a schedule: the darkest shade, over the paper."""
    wrong = []
    share = float(re.search(r"\.q4 \{ fill-opacity: ([\d.]+)", page.css)[1])
    for scheme, colours in palettes(page.css).items():
        for name in ("r0", "r1", "r2"):
            parts = [[int(colour[i:i + 2], 16) for i in (1, 3, 5)] for colour in (colours[name], colours["paper"] if len(colours["paper"]) == 7 else "#ffffff")]
            mixed = "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in zip(*parts))
            wrong += [f"{scheme}: ink on {mixed} has {contrast(colours['ink'], mixed):.2f}"] if contrast(colours["ink"], mixed) < 4.5 else []
    report("numbers are legible on every shade", wrong)


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        check_numbers(folder)
        check_pipelines(folder)
        check_mesh(folder)
        check_refusals(folder)
        check_diff(folder)
        check_colours(planned(folder)[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish()


if __name__ == "__main__":
    main()
