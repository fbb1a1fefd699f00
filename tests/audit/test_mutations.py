"""Single edits of emitted trainers: the audit notices each one, by the claim that names it. The last lines are a table of
kinds. TAP."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from mutations import KINDS, mutate

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests" / "parallel")]

from harness import GENERATOR  # noqa: E402
from matrix import CASES  # noqa: E402
from ranks import job_of  # noqa: E402

PROGRAMS = ["gpt2", "nanogpt_no_bias", "gpt2_wide", "gru", "mlp_accumulation", "gpt2_dropout_accumulation", "mlp"]
RANKS = [{"config": {"n_layer": 3, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12, "dropout": 0.1}},
         {"training": {"on_nonfinite": "skip", "eval_interval": 5}, "parallelism": {"ddp": {"bucket_cap_mb": 0.01, "comm_hook": "bf16"}}}]
EACH = 6
CLAIM = re.compile(r"^  (holds|broken|cannot tell) +(\S+)", re.M)


def write_programs(folder):
    cases = {case.name: case for case in CASES}
    texts = []
    for job in [cases[name].job for name in PROGRAMS] + [job_of(4, 3, 4, **groups) for groups in RANKS]:
        (folder / "job.yaml").write_text(json.dumps(job))
        subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
        texts.append((folder / "program.c").read_text())
    return texts


def edits(texts):
    """(kind, number, text): EACH of every kind, over the programs in turn; a program without a place for one is
    passed over."""
    for kind in KINDS:
        found, seen, seed = 0, set(), 0
        while found < EACH and seed < 20 * len(texts):
            text = mutate(kind, texts[seed % len(texts)], seed)
            seed += 1
            if text is None or text in seen:
                continue
            seen.add(text)
            found += 1
            yield kind, found, text


def check(folder, kind, number, text):
    """Why the edit was not noticed as it should be; None when it was."""
    path = folder / f"{kind.replace(' ', '_')}_{number}.c"
    path.write_text(text)
    result = subprocess.run([GENERATOR, "audit", path], capture_output=True, text=True)
    wrong = {claim for verdict, claim in CLAIM.findall(result.stdout) if verdict != "holds"}
    if result.returncode == 1 and wrong & set(KINDS[kind][0].split()):
        return None
    return f"{path.name}: status {result.returncode}, noticed by {sorted(wrong)}\n{result.stderr}"


def tell(claims, all_edits, results, least):
    """Prints what was noticed, an edit a line, and a table of kinds. The exit status."""
    table = {kind: [0, 0] for kind in claims}
    for (kind, number, _), why in zip(all_edits, results):
        table[kind][0] += why is None
        table[kind][1] += 1
        print(f"{'not ok' if why else 'ok'} {kind} {number}")
        for line in (why or "").splitlines():
            print(f"  {line}")
    enough = len(all_edits) >= least and all(total > 0 for _, total in table.values())
    print(f"{'ok' if enough else 'not ok'} at least {least} edits, some of each kind")
    for kind, (noticed, total) in table.items():
        print(f"# {noticed:3d} of {total:3d}  {kind}: {claims[kind]}")
    print(f"# {sum(n for n, _ in table.values())} of {len(all_edits)} edits of {len(table)} kinds noticed")
    return 0 if enough and not any(results) else 1


def main():
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        folder = pathlib.Path(name)
        all_edits = list(edits(write_programs(folder)))
        with ThreadPoolExecutor(max_workers=2) as pool:
            results = list(pool.map(lambda edit: check(folder, *edit), all_edits))
    return tell({kind: claims for kind, (claims, _) in KINDS.items()}, all_edits, results, 200)


if __name__ == "__main__":
    sys.exit(main())
