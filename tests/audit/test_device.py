"""Both halves of programs for GPUs: all claims hold for every job of the matrix that goes with devices.kind cuda, and for several
GPUs. Of the matrix every fourth job is taken, which by SEED; with --all, as `ninja soak` has it, every one. TAP."""

import json
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests" / "parallel")]

from rotation import in_turn  # noqa: E402
from device_races import exchange  # noqa: E402
from harness import GENERATOR  # noqa: E402
from matrix import CASES  # noqa: E402
from ranks import job_of  # noqa: E402
from test_matrix import check  # noqa: E402

EXPERTS = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "hidden_size": 24, "num_experts": 3,
           "num_experts_per_tok": 2, "moe_intermediate_size": 72, "vocab_size": 256}
# Matmuls whose rows are known on the device alone: program, precision, capacity.
GROUPED = [("generate", {}, 0), ("generate", {"mixed_precision": "bf16"}, 0), ("train", {"tf32": True}, 1.0)]
RANKS = [{}, {"training": {"on_nonfinite": "skip", "eval_interval": 5}}, {"parallelism": {"zero_stage": 2}}]
STEPS = {"num_steps": 4, "sync_with_dataloader": False}
CHUNKS = {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}
# Tokens of a rank's part of the vocabulary in an evaluation, which not every event has; chunks of a sequence that go round.
WIDE = {"n_layer": 2, "n_head": 8, "n_embd": 32, "vocab_size": 256, "block_size": 32}
RANKS += [{"parallelism": {"tp": 2}, "training": {"eval_interval": 2, "eval_iters": "all"}, "config": WIDE},
          {"parallelism": {"cp": 2, "cp_comm": "ring"}, "config": WIDE}]
RANKS += [{"parallelism": {"pp": 2, **mesh}, "accumulation": STEPS, "config": {"n_layer": 4, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8, "dropout": 0.1}}
          for mesh in ({"zero_stage": 3}, {"pp_schedule": "zero_bubble"}, CHUNKS)]
# The kernels of attention to the chunks that were gathered take half the audit's limit, unless calls that are alike are followed once.
RANKS += [{"parallelism": {"pp": 2, "cp": 2}, "accumulation": STEPS, "config": {**WIDE, "n_layer": 8}}]


def on_device(job):
    return {**job, "devices": {**job.get("devices", {}), "kind": "cuda"}}


def experts(precision, capacity):
    return {"model": {"source": str(TREE / "examples" / "models" / "qwen_moe.c"), "config": {**EXPERTS, "capacity_factor": capacity}},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2, "sequence_length": 9},
            "training": {"steps": 2}, "precision": precision}


def generate(job, folder, program):
    """Writes program.c and program.cu; False when the job does not go with GPUs yet."""
    (folder / "job.yaml").write_text(json.dumps(on_device(job)))
    result = subprocess.run([GENERATOR, "job.yaml", "-o", "program.c", "--program", program], cwd=folder,
                            capture_output=True, text=True)
    assert result.returncode in (0, 2), result.stderr
    return result.returncode == 0


def audit(folder):
    result = subprocess.run([GENERATOR, "audit", "program.c"], cwd=folder, capture_output=True, text=True)
    return None if result.returncode == 0 else result.stdout + result.stderr


def hooks_problem(folder):
    """Functions of a file of the user's, called between steps, break nothing: what they do cannot be decided."""
    folder.mkdir()
    job = TREE / "examples" / "jobs" / "hooks.yaml"
    subprocess.run([GENERATOR, job, "--set", "devices.kind=cuda", "-o", "program.c"], cwd=folder, check=True)
    result = subprocess.run([GENERATOR, "audit", "program.c", "--fail-on", "broken"], cwd=folder, capture_output=True, text=True)
    open_claims = [line.split()[2] for line in result.stdout.splitlines() if line.startswith("  cannot tell")]
    good = result.returncode == 0 and open_claims == ["runtime-alone", "device-half"]
    return None if good else result.stdout + result.stderr


def topology_problem(folder):
    """The kernel that adds up the shards of a sum by tree is called by its name, and followed with the bytes that the sum has."""
    folder.mkdir()
    generate(job_of(4, 3, 4, parallelism={"reproducible": "topology"}), folder, "train")
    why = audit(folder)
    text = (folder / "program.cu").read_text()
    assert "shards[r * step + i]" in text
    (folder / "program.cu").write_text(text.replace("shards[r * step + i]", "shards[r * step + i + 1]"))
    beyond = audit(folder)
    return why or (None if beyond is not None and "  holds        in-bounds" not in beyond else f"with an edited kernel: {beyond}")


def digits_problem(folder):
    """An index that permutes the digits of a thread's number is of one thread, unless a digit is lost or two fall together."""
    folder.mkdir()
    generate(job_of(8, 4, 4, parallelism={"tp": 2, "cp": 4, "cp_comm": "ring"}, config={**WIDE, "n_layer": 1}), folder, "train")
    why, text = audit(folder), (folder / "program.cu").read_text()
    index = "y[i / 128 * 128 + i / 32 % 4 * 4 + i / 4 % 8 * 16 + i % 4]"
    assert index in text
    for before, after in (("% 8 * 16", "% 8 * 8"), ("i / 32 % 4", "i / 32 % 2"), ("i % 4]", "i % 2]"), ("i / 4 % 8", "i / 4 % 4"), ("i / 32 % 4 *", "i / 16 % 4 *")):
        (folder / "program.cu").write_text(text.replace(index, index.replace(before, after)))
        found = audit(folder)
        if found is None or "  holds        no-race " in found:
            return f"with {after}: {found}"
    return why


def offload_problem(folder, own="host_states->all_weights", **training):
    """States that stay on the host have bounds of their own, within the host's arena."""
    folder.mkdir()
    generate(job_of(2, 3, 4, parallelism={"zero_stage": 3, "offload": {"optimizer": "cpu", "param": "cpu"}},
                    training={"eval_interval": 2, "eval_iters": 2, **training}), folder, "train")
    why, text = audit(folder), (folder / "program.c").read_text()
    own += " + ranges[i].own"
    assert own in text
    (folder / "program.c").write_text(text.replace(own, own + " + 64"))
    beyond = audit(folder)
    return why or (None if beyond is not None and "  holds        in-bounds" not in beyond else f"with an edited copy: {beyond}")


def images_problem(folder):
    """Batch normalisation, whose blocks share out a channel or have one each, also of planes that no warp ends with, and pooling."""
    folder.mkdir()
    planes = ["--set", "model.config.image_size=28", "--set", "data.features=784", "--set", "data.batch_size=6"]
    large = ["--set", "data.batch_size=256"]
    own = ["--set", "devices.convolution=own", "--set", "precision.mixed_precision=bf16"]
    for more in ([], large, [*large, *own], planes):
        subprocess.run([GENERATOR, TREE / "examples" / "jobs" / "resnet.yaml", "--set", "devices.kind=cuda", *more, "-o", "program.c"],
                       cwd=folder, check=True)
        why = audit(folder)
        if why:
            return why
    return None


def batches_problem(folder):
    """A batch of an evaluator gets a constant and a multiple of the loop's counter, and nothing else."""
    folder.mkdir()
    generate(next(case.job for case in CASES if case.name == "gpt2"), folder, "evaluate")
    why, text = audit(folder), (folder / "program.c").read_text()
    for before, after in (("i * 3)", "i * i)"), ("i * 3)", "3)")):
        assert before in text
        (folder / "program.c").write_text(text.replace(before, after))
        found = audit(folder)
        if "another number than the loop's counter" not in (found or ""):
            return f"with {after}: {found}"
    return why


def unmaterialised_problem(folder):
    """A device function whose choice has parts that libclang knows no type of is read like any other."""
    folder.mkdir()
    generate({**CASES[0].job}, folder, CASES[0].program)
    text = (folder / "program.cu").read_text()
    assert "namespace device {\n" in text
    own = """template <typename T> struct twin { T a, b; };
__device__ twin<float> make_twin(float a) { return {a, a}; }
__device__ float choose_twin(int c) { twin<float> made = c ? make_twin(1.0f) : twin<float>(); return made.a; }
"""
    (folder / "program.cu").write_text(text.replace("namespace device {\n", "namespace device {\n" + own, 1))
    result = subprocess.run([GENERATOR, "audit", "program.c"], cwd=folder, capture_output=True, text=True)
    good = result.returncode == 0 and " 0 broken" in result.stdout
    return None if good else f"status {result.returncode}\n" + result.stdout + result.stderr


def barrier_problem(folder):
    """Threads that write to a block's memory, and read what others wrote after a barrier, do not race."""
    folder.mkdir()
    generate(next(case.job for case in CASES if case.name == "gpt2"), folder, "train")
    text = (folder / "program.cu").read_text()
    edited = exchange("__syncthreads();\n  ")(text, None)
    assert edited is not None
    (folder / "program.cu").write_text(edited)
    return audit(folder)


def rows_problem(folder):
    """Rows of a norm that end within a warp are each one block's own, until the bound of a column lets it reach the next row."""
    folder.mkdir()
    config = {"n_layer": 1, "n_head": 2, "n_embd": 160, "vocab_size": 256, "block_size": 32}
    generate(job_of(1, 3, 32, config=config), folder, "train")
    why = audit(folder)
    text = (folder / "program.cu").read_text()
    bound = "      if (c >= 160) break;\n      accel_pack<float, width> to;\n"
    if why or bound not in text:
        return why or "the norm's kernel is another one"
    (folder / "program.cu").write_text(text.replace(bound, bound.replace("160", "161")))
    why = audit(folder)
    return None if any("no-race " in line and "another block" in line for line in (why or "holds").splitlines()) else why or "holds"


def main():
    failed = taken = 0
    chosen = in_turn(CASES, 8)
    jobs = [(case.name, case.job, case.program) for case in chosen]
    jobs += [(f"4 ranks, {number}", job_of(4, 3, 4, **groups), "train") for number, groups in in_turn(enumerate(RANKS), 2)]
    jobs += [(f"experts, {program} {precision}", experts(precision, capacity), program) for program, precision, capacity in GROUPED]
    with tempfile.TemporaryDirectory(prefix="accel-device-") as name:
        folder = pathlib.Path(name)
        for name, job, program in jobs:
            if not generate(job, folder, program):
                continue
            taken += 1
            failed += check(name, audit(folder))
        failed += check("most of the matrix", None if taken > 40 * len(chosen) // len(CASES) else f"{taken} programs")
        (folder / "program.cu").unlink()
        why = audit(folder)
        failed += check("with hooks", hooks_problem(folder / "hooks"))
        failed += check("sums in one order", topology_problem(folder / "topology"))
        failed += check("digits of a number", digits_problem(folder / "digits"))
        failed += check("states on the host", offload_problem(folder / "offload"))
        averages = {"ema": {"decay": 0.9, "evaluate": True}}
        failed += check("averages on the host", offload_problem(folder / "averages", "own_weights", **averages))
        failed += check("images", images_problem(folder / "images"))
        failed += check("batches of an evaluator", batches_problem(folder / "batches"))
        failed += check("rows that end within a warp", rows_problem(folder / "rows"))
        failed += check("threads that meet", barrier_problem(folder / "barrier"))
        failed += check("parts without a type", unmaterialised_problem(folder / "unmaterialised"))
        failed += check("without the kernels' file", None if why and "there is no program.cu" in why else why or "holds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
