"""Pages of `accel-gen report`: read as HTML and compared with what Python makes of the same metrics.jsonl and jobs; runs that are damaged,
resumed, long or hostile. TAP."""

import collections
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "build")]

from report_page import Page, contrast, palettes  # noqa: E402
from tap import GENERATOR, TREE, finish, report  # noqa: E402

JOB = {"model": {"source": str(TREE / "examples/models/nanogpt.c"), "config": {"n_layer": 1, "n_head": 1, "n_embd": 16, "vocab_size": 256, "block_size": 16}},
       "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2}, "optimizer": {"lr": 1e-3},
       "training": {"steps": 12, "eval_interval": 4, "eval_iters": 2}, "tracking": {"every": 1, "grad_norms": "per_layer", "log_with": ["tensorboard"]},
       "devices": {"threads": 1}, "hooks": {"source": "hooks.c", "on_eval": "on_eval"}}
HOOK = r"""
#include <accel/hooks.h>
#include <accel/tracking.h>
void on_eval(struct accel_run *run, const struct accel_progress *at);
void on_eval(struct accel_run *run, const struct accel_progress *at) {
  (void)at;
  accel_log_text(run, "a <sample>", "static int f(void) {\n  return 1 < 2; </pre><script>\xc3\xa9\xff\n}");
}
"""
TEXT = "static int f(void) {\n  return 1 < 2; </pre><script>é?\n}"
LINE = {"step": 10, "loss": 4.5, "lr": 0.001}


def metrics(folder, lines, end="\n"):
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "metrics.jsonl").write_text("\n".join(texts) + end, encoding="utf-8", errors="surrogateescape")
    return folder


def written(*runs, output=None):
    """What the command says, and the page that it wrote."""
    page = output or runs[0].parent / "page.html"
    done = subprocess.run([GENERATOR, "report", *runs, "-o", page], capture_output=True, text=True, timeout=60, check=False)
    return done, Page(page.read_text(encoding="utf-8")) if done.returncode == 0 else None


def near(a, b, least, most):
    return abs(a - b) <= 2e-3 * (most - least) + 1e-12


def compare_line(points, pairs):
    """The points of a curve with steps and numbers."""
    ys = [y for _, y in pairs]
    if len(points) != len(pairs):
        return [f"{len(points)} points, not {len(pairs)}"]
    return [f"{point} is not {pair}" for point, pair in zip(points, pairs)
            if not near(point[0], pair[0], 0, pairs[-1][0]) or not near(point[1], pair[1], min(ys), max(ys) + 1e-9)][:3]


def compare_columns(run, lines):
    """Columns that are single lines: the same numbers, exactly."""
    wrong = [] if run["last"] == [line["step"] for line in lines] and "first" not in run else ["steps"]
    for name in {name for line in lines for name in line if name != "step" and not name.startswith(("grad_norm/", "start_to", "weights_s"))}:
        values = [line.get(name) for line in lines]
        wrong += [] if run["series"].get(name) == {"mean": values} else [f"{name}: {run['series'].get(name)} is not {values}"]
    return wrong


# ---- What runs leave ----


def check_last_lines(folder):
    """They have the path of the job: that of a file of its name, or that accel-gen launch was given; none where --set changed the job."""
    (folder / "jobs").mkdir()
    shutil.copy(folder / "one.yaml", folder / "jobs" / "one.yaml")
    subprocess.run([GENERATOR, "build", "one.yaml", "--set", "optimizer.lr=0.5", "-o", "other.out"], cwd=folder, check=True, timeout=300, capture_output=True)
    for command, path in ((["./one.out"], "one.yaml"), ([GENERATOR, "launch", "jobs/one.yaml", "./one.out"], "jobs/one.yaml"), (["./other.out"], "JOB")):
        said = subprocess.run([*command, "--steps", "1", "--project-dir", "short_" + path.replace("/", "_")], cwd=folder, check=True, timeout=100, capture_output=True, text=True).stdout
        report(f"{' '.join(map(str, command[1:] or command))}: the job is {path}", [] if f"accel-gen build {path} --program generate " in said else [said])


def train(folder):
    """Two runs of a job, one of which is stopped and resumed."""
    (folder / "corpus.txt").write_bytes(random.Random(1).randbytes(4000))
    (folder / "hooks.c").write_text(HOOK)
    for name, lr in (("one", 1e-3), ("two", 4e-3)):
        job = {**JOB, "optimizer": {"lr": lr}, "checkpoint": {"project_dir": name, "every": 4, "resume": "auto"},
               "profile": {"schedule": {"wait": 2, "active": 3}, "output_trace_dir": f"{name}/traces"}}
        (folder / f"{name}.yaml").write_text(json.dumps(job))
        subprocess.run([GENERATOR, "build", f"{name}.yaml", "-o", name + ".out"], cwd=folder, check=True, timeout=300, capture_output=True)
        for steps in ((6, 12) if name == "two" else (12,)):
            subprocess.run([f"./{name}.out", "--steps", str(steps)], cwd=folder, check=True, timeout=300, capture_output=True)


# ---- The machine's limit ----


def event(name, kind, start, duration, work=None):
    return {"name": name, "cat": kind, "ph": "X", "ts": start, "dur": duration, **({"args": work} if work else {})}


def write_limited(folder, keys, traced=True):
    """A run of steps of 3 MFLOP and 50 tokens, and a trace of 4 steps, of which the middle two count."""
    metrics(folder, [{"step": step, "loss": 1.0, "tokens_per_s": 1000.0 * step, "step_ms": 50.0 / step} for step in range(1, 5)])
    (folder / "run.json").write_text(json.dumps({"unit": "token", "units_per_step": 50, "ranks": 2, "matmul_flops_per_step": 3e6,
                                                 "keys": {name: {"value": value} for name, value in keys.items()}}))
    events = []
    for step, length in enumerate((100, 10, 12, 50)):
        at = 1000 * step
        events += [event("matmul_nt_8x8", "part", at, length / 10, {"flop": 4000, "bytes": 8000}), event("matmul_nt_8x8", "part", at + 20, length / 10, {"flop": 4000, "bytes": 8000}),
                   event("matmul_4x4", "part", at + 40, length / 2, {"flop": 6000, "bytes": 100}), event("add_9", "part", at + 60, length / 100, {"flop": 90000, "bytes": 9}),
                   event(f"step {step}", "step", at, length)]
    if traced:
        (folder / "profile_0.json").write_text(json.dumps({"traceEvents": events}))
    return folder


def check_limit(folder):
    """What a job states; else what is published of the product that it names; else the fastest product of the trace, which is no sum."""
    fastest = 2 * 4000 / (2 * 3.1e-6)
    cases = {"stated": ({"devices.peak_flops": "4e8", "devices.hardware": "a100-sxm-80gb"}, True, 4e8, "400 MFLOP/s of each process: devices.peak_flops"),
             "published": ({"devices.hardware": "a100-sxm-80gb"}, True, 19.5e12, "19.5 TFLOP/s of each process: published of a100-sxm-80gb in float32"),
             "tf32": ({"devices.hardware": "a100-sxm-80gb", "precision.tf32": "true"}, True, 156e12, "156 TFLOP/s of each process: published of a100-sxm-80gb in TF32"),
             "bf16": ({"devices.hardware": "h100-sxm-80gb", "precision.mixed_precision": "bf16"}, True, 989.4e12, "989 TFLOP/s of each process: published of h100-sxm-80gb in 16 bits"),
             "traced": ({}, True, fastest, "1.29 GFLOP/s of each process: the fastest product of its profile, matmul_nt_8x8"), "unknown": ({}, False, None, None)}
    wrong = []
    for name, (keys, traced, limit, words) in cases.items():
        done, page = written(write_limited(folder / "limits" / name, keys, traced))
        if page is None:
            wrong.append(done.stderr)
            continue
        shares = None if limit is None else [100 * 3e6 * 20 * step / limit for step in range(1, 5)]
        found = page.data["runs"][0]["series"].get("limit_share", {"mean": None})["mean"]
        same = found is shares if shares is None else len(found) == 4 and all(abs(a - b) < 1e-5 * b for a, b in zip(found, shares))
        wrong += [] if same else [f"{name}: {found} is not {shares}"]
        wrong += [f"{name}: no '{words}'"] if words and words not in page.source else []
        wrong += [f"{name}: a limit"] if words is None and ("limit of" in page.source or "% of the limit" in page.source) else []
        wrong += [f"{name}: no rate"] if "150 MFLOP/s" not in page.source else []
    report("the share of the limit is that of the number that is named", wrong)
    _, page = written(folder / "limits" / "traced")
    rows = {next(row.all("th")).words(): [cell.words() for cell in row.all("td")][:5] for shown in page.root.all("table", class_="bars") for body in shown.all("tbody") for row in body.all("tr")}
    expected = {"matmul": ["3", "0.022", "70.0", "0.6", "0.7"], "add": ["1", "0.000", "1.0", "290.3", "0.0"]}
    report("kinds of kernels have their rates", [] if rows == expected else [rows])
    done = subprocess.run([GENERATOR, "plan", "one.yaml", "--json"], cwd=folder, check=True, capture_output=True, text=True)
    record = json.loads((folder / "one" / "run.json").read_text())
    report("a run records the products of its plan", [] if record["matmul_flops_per_step"] == json.loads(done.stdout)["matmul_flops_per_step"] else [record["matmul_flops_per_step"]])


# ---- The memory of a step ----

OFFSETS = """
#include <stddef.h>
#define main trainer_main
#include "memory.c"
#undef main
int main(void) {
%s  return 0;
}
"""


def offsets(folder, members):
    """Bytes from the start of the arena to each member, as the C compiler has them."""
    lines = "".join(f'  printf("%zu\\n", offsetof(struct arena, {member}));\n' for member in members)
    (folder / "offsets.c").write_text("#include <stdio.h>\n" + OFFSETS % lines)
    flags = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-O0", "-w", "-fopenmp", "-I", str(TREE / "include")]
    subprocess.run([*os.environ.get("CC", "cc").split(), *flags, "-o", "offsets", "offsets.c", TREE / "build/libaccel-runtime.a", "-ldnnl", "-ljansson", "-lm"],
                   cwd=folder, check=True, timeout=100)
    return [int(line) for line in subprocess.run(["./offsets"], cwd=folder, check=True, capture_output=True, text=True).stdout.split()]


def check_memory(folder):
    """Addresses against the compiler's, statements against those of the trace; nothing lies where something else does."""
    job = {**JOB, "model": {**JOB["model"], "config": {**JOB["model"]["config"], "n_layer": 2, "n_embd": 32, "n_head": 2}}, "optimizer": {"lr": 1e-3},
           "checkpoint": {"project_dir": "memory", "every": 4}, "profile": {"schedule": {"active": 1}, "output_trace_dir": "memory/traces"}}
    job["training"] = {"steps": 2, "eval_interval": 0}
    del job["hooks"]
    (folder / "memory.yaml").write_text(json.dumps(job))
    subprocess.run([GENERATOR, "build", "memory.yaml", "-o", "memory.out"], cwd=folder, check=True, timeout=300, capture_output=True)
    subprocess.run(["./memory.out"], cwd=folder, check=True, timeout=100, capture_output=True)
    subprocess.run([GENERATOR, "memory.yaml", "-o", "memory.c"], cwd=folder, check=True, timeout=100)
    done, page = written(folder / "memory", "--job", folder / "memory.yaml")
    if page is None:
        report("memory has a picture", [done.stderr])
        return
    memory = json.loads(next(page.root.all("script", id="memory-data")).text)
    boxes = memory["occupants"]
    plan = json.loads(subprocess.run([GENERATOR, "plan", "memory.yaml", "--json"], cwd=folder, check=True, capture_output=True, text=True).stdout)["arena_bytes"]
    known = {"weights": "weights", "optimizer": "moment_1", "checkpoint": "copy", "block[0]": "saved.predict_saved.block[0]", "block[1]": "saved.predict_saved.block[1]",
             "cross_entropy_lse": "saved.cross_entropy_lse", "transformer.wte.weight": "gradients.transformer_wte_weight", "transformer.h.1.mlp.c_proj.bias": "gradients.transformer_h[1].mlp.c_proj_bias"}
    places = {name: at for name, _, at, *_ in boxes}
    wrong = [f"{name}: at {places.get(name)}, not {at}" for (name, _), at in zip(known.items(), offsets(folder, known.values())) if places.get(name) != at]
    report("what is in memory has the addresses of the compiler", wrong + page.wrong + ([] if memory["bytes"] == plan["total"] else [memory["bytes"]]))
    last = memory["forward"] + memory["backward"] + 1
    wrong = [box for box in boxes if not 1 <= box[4] <= box[5] <= last or box[2] + box[3] > memory["bytes"]]
    wrong += [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a[2] < b[2] + b[3] and b[2] < a[2] + a[3] and a[4] <= b[5] and b[4] <= a[5]]
    report("each has bytes of its own at each time", wrong[:5])
    events = json.loads((folder / "memory" / "traces" / "profile_0.json").read_text())["traceEvents"]
    kernels = sum(event.get("cat") == "part" and event["name"] not in ("load_batch", "gradient_norm", "update", "clear", "between parts") for event in events)
    report("statements are those of the trace", [] if kernels == memory["forward"] + memory["backward"] else [f"{kernels} kernels, {memory['forward']} + {memory['backward']} statements"])
    used = max(sum(size for _, kind, _, size, first, end in boxes if first <= now <= end and kind == "activations") for now in range(1, last + 1))
    saved = {next(row.all("th")).words().strip(): [cell.words() for cell in row.all("td")] for figure in page.root.all("figure", class_="memory") for body in figure.all("tbody") for row in body.all("tr")}
    report("the most that is in use is that of some statement", [] if saved["activations"][2] in (f"{used / 1024:.1f} KiB", f"{used / 2 ** 20:.1f} MiB") else [used, saved])
    report("the job is that of the run", [] if "the job of memory." in page.source else ["it is not"])
    done, page = written(folder / "memory", "--job", folder / "one.yaml")
    report("another job is said to be another", [] if page and "the job of no run here" in page.source else [done.stderr])
    wrong = []
    for name, keys in {"zero": {"parallelism": {"dp_shard": 2, "zero_stage": 3}, "devices": {"per_node": 2, "threads": 1}}, "tp": {"parallelism": {"tp": 2}, "devices": {"per_node": 2, "threads": 1}},
                       "lomo": {"optimizer": {"name": "lomo", "lr": 1e-3}}, "bf16": {"precision": {"mixed_precision": "bf16"}}, "ema": {"training": {**job["training"], "ema": {"decay": 0.9}}},
                       "cuda": {"devices": {"kind": "cuda"}}, "steps": {"accumulation": {"num_steps": 2}}}.items():
        (folder / "other.yaml").write_text(json.dumps({**{key: value for key, value in job.items() if key not in ("profile", "tracking")}, **keys}))
        done, page = written(folder / "memory", "--job", folder / "other.yaml")
        if page is None:
            wrong.append(f"{name}: {done.stderr}")
            continue
        memory = json.loads(next(page.root.all("script", id="memory-data")).text)
        plan = json.loads(subprocess.run([GENERATOR, "plan", "other.yaml", "--json"], cwd=folder, check=True, capture_output=True, text=True).stdout)["arena_bytes"]
        boxes = memory["occupants"]
        wrong += [f"{name}: {memory['bytes']} bytes"] if memory["bytes"] != plan["total"] else []
        wrong += [f"{name}: {a} {b}" for i, a in enumerate(boxes) for b in boxes[:i] if a[2] < b[2] + b[3] and b[2] < a[2] + a[3] and a[4] <= b[5] and b[4] <= a[5]][:2]
        wrong += [f"{name}: no {kind}" for kind in ("weights", "gradients", "activations", "scratch") if plan[kind] > 0 and kind not in {box[1] for box in boxes}]
    report("so do those of other jobs", wrong)
    stages = {"parallelism": {"pp": 2}, "devices": {"per_node": 2, "threads": 1}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False}}
    (folder / "other.yaml").write_text(json.dumps({**{key: value for key, value in job.items() if key not in ("profile", "tracking")}, **stages}))
    done, page = written(folder / "memory", "--job", folder / "other.yaml")
    kept = [len([box for box in rank["occupants"] if box[0].startswith("micro-batch")]) for rank in json.loads(next(page.root.all("script", id="memory-data")).text)["ranks"]] if page else done.stderr
    report("stages of a pipeline have a picture each", [] if kept == [3, 3] and not page.wrong and done.stderr == "" else [kept, page and page.wrong, done.stderr])
    (folder / "bad.yaml").write_text("model: 5\n")
    done, _ = written(folder / "memory", "--job", folder / "bad.yaml")
    report("a wrong job has its messages", [] if done.returncode == 2 and "bad.yaml:1:8: error" in done.stderr else [done.returncode, done.stderr])


def table(page, caption):
    found = [table for table in page.root.all("table") if any(caption in head.text for head in table.all("caption"))]
    return {next(row.all("th")).words(): [cell.words() for cell in row.all("td")] for body in found for group in body.all("tbody") for row in group.all("tr")}


def check_norms(page, lines):
    """The rows against the lines, and the picture's cells against them."""
    wrong = []
    for run, figure in zip(page.data["runs"], page.root.all("figure", class_="heat")):
        of = lines[run["name"]]
        names = [name for name in of[-1] if name.startswith("grad_norm/")]
        rows = {name.removeprefix("grad_norm/"): [line[name] for line in of] for name in names}
        wrong += [f"rows {run['norms']} are not {rows}"] if run["norms"] != {"last": [line["step"] for line in of], "rows": rows} else []
        all_norms = [norm for row in rows.values() for norm in row if norm > 0]
        least, most = min(all_norms), max(all_norms)
        picture = next(svg for svg in figure.all("svg") if svg.attributes["viewbox"] == f"0 0 12 {len(rows)}")
        drawn = {(int(x) + i, int(y)): int(path.attributes["class"][1:]) for path in picture.all("path") for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)", path.attributes["d"]) for i in range(int(width))}
        for y, row in enumerate(rows.values()):
            for x, norm in enumerate(row):
                level = 9 * math.log(norm / least) / math.log(most / least) if norm > least else 0
                wrong += [f"cell {x}, {y}: level {drawn.get((x, y))}, not {level}"] if drawn.get((x, y)) not in {min(8, int(level - 1e-9)), min(8, int(level + 1e-9))} else []
    report("norms of the parameters are those of the lines", wrong[:5])


def check_profile(page, folder):
    """Kinds of kernels of a trace in which all steps count."""
    wrong = []
    for name, shown in zip(("one", "two"), page.root.all("table", class_="bars")):
        events = json.loads((folder / name / "traces" / "profile_0.json").read_text())["traceEvents"]
        steps = sum(event.get("cat") == "step" for event in events)
        kinds = collections.Counter()
        for event in events:
            if event.get("cat") == "part":
                kinds[re.sub(r"_(nt|tn|tt)$", "", re.sub(r"_\d.*", "", event["name"]))] += event["dur"] / 1e3 / steps
        rows = {next(row.all("th")).words(): [cell.words() for cell in row.all("td")] for body in shown.all("tbody") for row in body.all("tr")}
        times = [float(cells[1]) for cells in rows.values()]
        wrong += [f"{kind}: {rows.get(kind)} is not {time} ms" for kind, time in kinds.most_common(10) if abs(float(rows[kind][1]) - time) > 6e-4]
        wrong += [f"{times} do not add up to {sum(kinds.values())}"] if abs(sum(times) - sum(kinds.values())) > 6e-4 * len(times) else []
    report("kinds of kernels take the time of the trace", wrong + ([] if len(list(page.root.all("table", class_="bars"))) == 2 else ["no profile"]))


def check_texts(page):
    lists = [[(title.text, text.words()) for title, text in zip(of.all("dt"), of.all("pre"))] for of in page.root.all("dl", class_="texts")]
    titles = [title.text for title in page.root.all("h3")]
    expected = [[(f"step {step}", TEXT) for step in steps] for steps in ((4, 8, 12), (4, 6, 8, 12))]
    report("texts are those that hooks logged", [] if lists == expected and titles == ["one: a <sample>", "two: a <sample>"] else [titles, lists])


def check_runs(folder):
    done, page = written(folder / "one", folder / "two")
    if done.returncode != 0:
        report("runs of trainers", [done.stderr])
        return
    lines = {name: [json.loads(line) for line in open(folder / name / "metrics.jsonl", encoding="utf-8")] for name in ("one", "two")}
    report("the page of two runs is well-formed, and refers to nothing", page.wrong)
    report("its data are the lines of metrics.jsonl", [wrong for run in page.data["runs"] for wrong in compare_columns(run, lines[run["name"]])])
    units = [(run["unit"], run["units_per_step"]) for run in page.data["runs"]]
    report("a step has the job's tokens", [] if units == [("token", 2 * 16)] * 2 else units)
    clock = []
    for run in page.data["runs"]:
        seconds = [1e-3 * sum(line["step_ms"] for line in lines[run["name"]][:i + 1]) for i in range(12)]
        clock += [f"{a} s, not {b}" for a, b in zip(run["seconds"], seconds) if abs(a - b) > 2e-3]
    report("times are the sums of the steps'", clock)
    chart = page.charts()["Loss"]
    drawn = {("two" if "r1" in classes else "one", "eval_loss" if "second" in classes else "loss"): points for classes, points in chart.lines}
    expected = {(name, series): [(line["step"], line[series]) for line in of if series in line] for name, of in lines.items() for series in ("loss", "eval_loss")}
    ys = [y for pairs in expected.values() for _, y in pairs]
    wrong = [] if drawn.keys() == expected.keys() else [drawn.keys()]
    for key, pairs in expected.items():
        points = [point for part in drawn[key] for point in part]
        wrong += [f"{key}: {point} is not {pair}" for point, pair in zip(points, pairs) if not near(point[0], pair[0], 0, 12) or not near(point[1], pair[1], min(ys), max(ys))]
        wrong += [f"{key}: {len(points)} points"] if len(points) != len(pairs) else []
    report("curves go through the numbers", wrong)
    report("ticks are round, even and where their labels say", [f"{name}: {wrong}" for name, of in page.charts().items() for wrong in of.wrong_ticks()])
    check_norms(page, lines)
    check_profile(page, folder)
    check_texts(page)
    record = json.loads((folder / "one" / "run.json").read_text())
    differing = table(page, "Keys in which the runs differ")
    report("keys differ as the jobs do", [] if differing == {"optimizer.lr": ["0.001", "0.004"], "checkpoint.project_dir": ["one", "two"],
                                                                      "profile.output_trace_dir": ["one/traces", "two/traces"]} else [differing])
    machine = {next(row.all("th")).words(): [cell.words() for cell in row.all("td")] for section in page.root.all("section") if section.attributes.get("aria-labelledby") == "machine"
               for body in section.all("tbody") for row in body.all("tr")}
    known = {"processor": record["machine"].get("processor"), "threads of each": "1", "processes": "1", "logical processors": str(os.sysconf("SC_NPROCESSORS_ONLN")),
             "digest of the job": record["digest"][:12], "system": f"{os.uname().sysname} {os.uname().release}"}
    report("the machine is this one", [f"{key}: {machine.get(key)}" for key, value in known.items() if value is not None and machine.get(key, [None])[0] != value])
    (folder / "two" / "run.json").unlink()
    done, page = written(folder / "one", folder / "two")
    report("without run.json the newest checkpoint has the job", [] if table(page, "Keys in which the runs differ") == differing else [done.stderr])
    done, page = written(folder / "one")
    stated = table(page, "Keys that are not at their defaults")
    report("one run has a page of its own job", page.wrong + ([] if stated.get("training.steps") == ["12"] and "optimizer.lr" not in stated else [stated]))
    subprocess.run([GENERATOR, "one.yaml", "-o", "one.c"], cwd=folder, check=True, timeout=60)
    subprocess.run([GENERATOR, "audit", "one.c", "--format", "json", "--fail-on", "never", "-o", "one/audit.json"], cwd=folder, check=True, timeout=60)
    audit = json.loads((folder / "one" / "audit.json").read_text())
    done, page = written(folder / "one")
    verdict = "of the claims about one.c, {holds} hold, {broken} {verb} broken, {cannot_tell} cannot be decided."
    verdict = verdict.format(**audit["summary"], verb="is" if audit["summary"]["broken"] == 1 else "are")
    others = [claim["id"] for claim in audit["claims"] if claim["verdict"] != "holds"]
    machine = next(section for section in page.root.all("section") if section.attributes.get("aria-labelledby") == "machine")
    shown = [next(claim.all("code")).text for claim in machine.all("li")]
    report("an audit of the run's folder is there", [] if verdict in page.source and shown == others else [verdict, shown, others])
    again = (folder / "page.html").read_bytes()
    written(folder / "one")
    report("the same runs give the same bytes", [] if again == (folder / "page.html").read_bytes() else ["they differ"])


# ---- Long runs ----


def check_long(folder):
    """Columns against those that Python makes: by their own first and last steps, which must divide all lines among them."""
    draw = random.Random(3)
    lines = [{"step": 3 * i + (i > 5000), "loss": round(8 / math.sqrt(i) + draw.gauss(0, 0.1), 6), **({"eval_loss": round(9 / math.sqrt(i), 6)} if i % 500 == 0 else {})} for i in range(1, 20001)]
    lines[7000]["loss"] = None
    run = metrics(folder / "long", lines)
    done, page = written(run)
    data, wrong, at = page.data["runs"][0], [], 0
    series = data["series"]
    for k, (first, last, count) in enumerate(zip(data["first"], data["last"], data["lines"])):
        of = lines[at:at + count]
        at += count
        wrong += [f"column {k} is of {first} to {last}"] if (of[0]["step"], of[-1]["step"]) != (first, last) else []
        for name in ("loss", "eval_loss"):
            numbers = [line[name] for line in of if line.get(name) is not None]
            own = [series[name][part][k] for part in ("least", "mean", "most")] if "least" in series[name] else 3 * [series[name]["mean"][k]]
            right = [min(numbers), sum(numbers) / len(numbers), max(numbers)] if numbers else 3 * [None]
            wrong += [f"column {k}: {own} is not {right}"] if any((a is None) != (b is None) or (a is not None and abs(a - b) > 1e-9) for a, b in zip(own, right)) else []
    wrong += [f"{at} lines, not {len(lines)}"] if at != len(lines) else []
    report("a long run becomes columns with its least, mean and largest numbers", wrong[:5])
    size = (folder / "page.html").stat().st_size
    report("its page is small, and is still drawn to each extreme", [f"{size} bytes"] if size > 400_000 or len(data["last"]) > 1024 else [
        wrong for ((band,),) in [page.charts()["Loss"].bands] for wrong in compare_line(band[:len(data["last"])], list(zip(data["last"], series["loss"]["most"])))])
    report("a number that is not finite is noted", [] if "loss is not finite in 1 line." in page.source else ["it is not"])


# ---- Runs that are not whole ----


def check_damage(folder):
    run = metrics(folder / "killed", [{**LINE, "step": i, "loss": 5 - i / 10} for i in range(1, 9)] + ['{"step": 9, "lo'], end="")
    done, page = written(run)
    report("a line that a killed run left is noted", [] if page and "is not whole" in page.source and page.data["runs"][0]["last"] == list(range(1, 9)) else [done.stderr])
    steps = [1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 3, 4, 9]
    run = metrics(folder / "back", [{**LINE, "step": step, "loss": i} for i, step in enumerate(steps)])
    done, page = written(run)
    data = page.data["runs"][0]
    report("a run that goes back has each step once", [] if (data["last"], data["series"]["loss"]["mean"]) == ([1, 2, 3, 4, 9], [0, 1, 11, 12, 13]) and "9 lines" in page.source else [data])
    lines = ["[]", "nonsense", '{"loss": 1}', '{"step": -1, "loss": 1}', '{"step": 1.5}', '{"step": "2"}', '{"step": 1e400}', '{"step": 3, "loss": NaN, "a": [1, {"step": 9}], "b\\"NaN": Infinity}',
             '{"step": 4, "loss": 2} {', '{"step": 5, "loss": 2, "x": 1e400, "y": -Infinity, "z": 1' + 100 * "0" + "}", '{"step": 6, "loss": ' + 5_000_000 * " " + "1}", "", '{"step": 7, "loss": 3, "u": 0}']
    run = metrics(folder / "foreign", lines)
    done, page = written(run)
    data = page.data["runs"][0]
    wrong = [] if (data["last"], data["series"]["loss"]["mean"]) == ([3, 5, 7], [None, 2, 3]) and "9 lines" in page.source else [data["last"], data["series"]]
    report("lines of other kinds are left out, and counted", wrong + page.wrong)


def check_hostile(folder):
    words = ['</script><script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "<!--", "]]>", "&amp;", "\u2028", "{{ 7 * 7 }}", "\x7f\x01", "x" * 5000, "ж" * 100, "__proto__", "constructor"]
    run = folder / words[0].replace("/", "") / "a&b<i>"
    metrics(run, [{"step": step, "loss": 1 / step, **{word: step for word in words}} for step in (1, 2)])
    (run / "run.json").write_text(json.dumps({"digest": words[0], "generator": words[1], "keys": {word: {"value": word} for word in words}, "unit": words[0], "units_per_step": 5,
                                              "summary": words[1], "machine": {"processor": words[0], "system": [1]}, "threads": -1, "ranks": "x", "steps": 1e300}))
    done, page = written(run, output=folder / "hostile.html")
    if page is None:
        report("names are text, whatever they hold", [done.stderr])
        return
    scripts = [script for script in page.root.all("script")]
    own = [word for word in words if len(word) < 300 and "\x01" not in word]
    wrong = [f"{len(scripts)} scripts"] if len(scripts) != 2 else []
    wrong += [f"no series {word}" for word in own if word not in page.data["runs"][0]["series"]] + (["a template's text was run"] if "{{ 7 * 7 }}" not in page.source else [])
    report("names are text, whatever they hold", wrong + page.wrong)
    bad = metrics(folder / "bytes", [LINE])
    with open(bad / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 11, "loss": 1, "\xff\xfe": 2, "\\ud800": 3}\n{"step": 12, "loss": 2, "a\\u0000b": 3}\n')
    done, page = written(bad)
    report("bytes that are no UTF-8 leave the page a page", page.wrong if page else [done.stderr])
    for name, text in {"cut": '{"keys": {', "list": "[1]", "deep": "[" * 5000, "keys": '{"keys": {"optimizer": {"value": "1"}}, "digest": "0"}', "odd": '{"keys": 5, "machine": 7}'}.items():
        run = metrics(folder / name, [LINE])
        (run / "run.json").write_text(text)
        done, page = written(run)
        report(f"a run.json that is none ({name}) is noted", (page.wrong + ([] if 'class="notes"' in page.source else ["it is not"])) if page else [done.stderr])


def check_events(folder):
    """Files of events that are cut or none; texts of which a page shows some."""
    run = metrics(folder / "events", [LINE])
    path = run / "tensorboard" / "r" / "events.out.tfevents.1.accel-gen"
    path.parent.mkdir(parents=True)

    def field(number, content):
        return bytes([number << 3 | 2]) + varint(len(content)) + content

    def varint(number):
        return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)

    def record(step, text):
        value = field(1, b"t") + field(9, field(1, field(1, b"text"))) + field(8, field(8, text))
        event = b"\x10" + varint(step) + field(5, field(1, value))
        return len(event).to_bytes(8, "little") + 4 * b"\0" + event + 4 * b"\0"

    path.write_bytes(b"".join(record(step, b"text %d" % step) for step in range(1, 101)) + record(101, b"cut")[:-9])
    done, page = written(run)
    steps = [int(title.text.split()[1]) for title in page.root.all("dt")]
    texts = [text.words() for text in page.root.all("pre")]
    apart = {b - a for a, b in zip(steps, steps[1:-1])}
    wrong = [] if texts == [f"text {step}" for step in steps] and steps[0] == 1 and steps[-1] == 100 and len(apart) == 1 and 12 <= len(steps) <= 24 else [steps, texts]
    report("of many texts some are shown, as far from each other, with the last one", wrong + page.wrong)
    path.write_bytes(b"\xff" * 40)
    done, page = written(run)
    report("a file that has no events is noted", [] if page and "Not all texts" in page.source else [done.stderr])


def check_refusals(folder):
    (folder / "empty").mkdir()
    os.mkfifo(folder / "fifo.jsonl")
    (folder / "link").symlink_to("nowhere")
    cases = {"no such run": (folder / "none", "is not there"), "a folder without metrics": (folder / "empty", "is not there: a run writes it into its project folder"),
             "no lines": (metrics(folder / "zero", [], end=""), "has no lines"), "no line of a run": (metrics(folder / "other", ["{}", "x", ""]), "has no line that is an object with a step"),
             "a pipe": (folder / "fifo.jsonl", "is no file"), "a link to nothing": (folder / "link", "is not there"), "a folder instead of the file": (folder / "wrong", "Is a directory")}
    (folder / "wrong" / "metrics.jsonl").mkdir(parents=True)
    kept = folder / "kept.html"
    kept.write_text("kept")
    good = metrics(folder / "good", [LINE])
    for name, (run, message) in cases.items():
        done, _ = written(good, run, output=kept)
        wrong = [f"status {done.returncode}: {done.stderr}"] if done.returncode != 1 or message not in done.stderr else []
        report(f"{name}: a message, and the page that was there stays", wrong + ([] if kept.read_text() == "kept" else ["it is another"]))
    done, _ = written(*[good] * 17, output=kept)
    report("too many runs are refused", [] if done.returncode == 2 and "at most 16" in done.stderr else [done.stderr])
    done, page = written(*[good] * 16)
    report("sixteen runs of one name have names of their own", page.wrong + ([] if len({run["name"] for run in page.data["runs"]}) == 16 else ["they have not"]))
    done, _ = written(good, output=good / "metrics.jsonl")
    report("no page replaces what is read", [] if done.returncode == 1 and "which is read" in done.stderr and json.loads((good / "metrics.jsonl").read_text()) == LINE else [done.stderr])
    done = subprocess.run([GENERATOR, "report", good], capture_output=True, text=True, check=False)
    report("an output is needed", [] if done.returncode == 2 and "-o FILE" in done.stderr else [done.stderr])


def check_colours(folder):
    _, page = written(metrics(folder / "colours", [LINE]))
    wrong = []
    for name, colours in palettes(page.css).items():
        wrong += [f"{name}: {ink} on {paper}" for ink in ("ink", "quiet", "link", "warn") for paper in ("paper", "shade") if contrast(colours[ink], colours[paper]) < 4.5]
        wrong += [f"{name}: r{i}" for i in range(8) if contrast(colours[f"r{i}"], colours["paper"]) < 3]
    report("text has a contrast of 4.5 and curves of 3, in the light and in the dark", wrong)


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        train(folder)
        for check in (check_runs, check_limit, check_memory, check_long, check_damage, check_hostile, check_events, check_refusals, check_colours, check_last_lines):
            check(folder)
    finally:
        shutil.rmtree(folder)
    finish()


if __name__ == "__main__":
    main()
