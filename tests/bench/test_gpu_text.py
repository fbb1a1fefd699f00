"""What gpu_text.py reads off a program and machine code, against counts by hand. TAP."""

import pathlib
import subprocess
import sys
import tempfile

import gpu_text

TREE = pathlib.Path(__file__).resolve().parents[2]
SASS = """
        /*0000*/                   LDG.E.128 R8, desc[UR4][R2.64] ;
.L_x_1:
        /*0010*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E.64 R6, desc[UR4][R2.64+0x8] ;
        /*0030*/                   FADD R4, R4, R7 ;
        /*0040*/              @!P0 LDG.E.U16 R5, desc[UR4][R2.64+0x10] ;
        /*0050*/                   FADD R4, R4, R5 ;
        /*0060*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0070*/              @P1  BRA `(.L_x_1) ;
        /*0080*/                   STG.E.128 desc[UR4][R2.64], R8 ;
.L_x_2:
        /*0090*/                   BRA `(.L_x_2) ;
"""
HOST = """static void layer(void) {
  norm(x, 4096);
  for (int i = 2; i >= 0; i--)
    norm(x,
         inner());
}

static void last_micro_step(void) {
  for (size_t first = 0; first < 10; first += 4) {
    layer();
  }
  update(x);
}
"""
LAUNCHER = """  if (accel_packs<4>(y, x))
    accel_launch(device::norm<4>, dim3(3, 5), 256, y, x);
  else
    accel_launch(device::norm<1>, 99, 256, y, x);
  accel_launch(accel_columns<false, float>, (unsigned)count, 1024, y);
"""


def jobs():
    """Launches of GPT-2's norms, and the operations of its step, as a person counts them."""
    layers, columns, rows, vocabulary, length = 3, 64, 4 * 32, 256, 32
    settings = [f"model.config.n_layer={layers}", f"model.config.n_embd={columns}", "model.config.n_head=2", f"model.config.vocab_size={vocabulary}",
                "precision.mixed_precision=bf16", f"data.sequence_length={length}", "devices.kind=cuda"]
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "trainer.c"
        texts = {}
        for more in ([], ["profile.with_flops=true", "profile.schedule.active=1"]):
            words = [word for setting in [*settings, *more] for word in ("--set", setting)]
            subprocess.run([gpu_text.GENERATOR, TREE / "examples" / "jobs" / "gpt2.yaml", *words, "-o", path], check=True)
            texts[len(more)] = path.read_text()
        device = path.with_suffix(".cu").read_text()
    lines, matmuls = gpu_text.lines_of(texts[0], device, gpu_text.parts_of(texts[2]))
    launches = {line.kernel.split("_bf16")[0]: line.launches for line in lines}
    yield "norms", launches["add_layer_norm"], 2 * layers + 1
    yield "norms' gradients", launches["layer_norm_plus_bits16_backward"], 2 * layers
    # Three matmuls of 12 C^2 a layer and of the last one, and causal attention: 2 matmuls forward, 5 backward, of half the square.
    matrices = 3 * 2 * rows * columns * (12 * columns * layers + vocabulary)
    attention = 7 * layers * rows * length * columns
    work = sum(flops * count for flops, _, count in matmuls)
    yield "operations within 3 %", abs(work / (matrices + attention) - 1) < 0.03, True


def main():
    lines, loops = gpu_text.instructions_of(SASS)
    code = gpu_text.code_of(None, SASS)
    found = gpu_text.collections.Counter()
    gpu_text.count_calls(gpu_text.functions(HOST), "last_micro_step", 1, found)
    usage = gpu_text.machine_code.Usage
    cases = [
        ("instructions", (len(lines), loops), (10, [(1, 8)])),
        ("loads", dict(code.loads), {16: 1, 8: 1, 4: 1, 2: 1}),
        ("stores", dict(code.stores), {4: 1, 16: 1}),
        ("bytes of an iteration over its waits", code.in_flight, 7.0),
        ("calls", dict(found), {"norm": 12, "inner": 9, "layer": 3, "update": 1}),
        ("launches", gpu_text.launches(LAUNCHER), [("norm<4>", 15, 256), ("accel_columns", None, 1024)]),
        # CUDA C++ Programming Guide: 65,536 registers, given to a warp by 256; 2,048 threads; 227 KiB.
        ("blocks by registers", gpu_text.resident(usage(61, 0, 0), 256), 4),
        ("blocks by threads", gpu_text.resident(usage(32, 0, 0), 256), 8),
        ("blocks by shared memory", gpu_text.resident(usage(32, 0, 45 * 1024), 128), 4),
        *jobs(),
    ]
    wrong = [f"{what}: {is_} instead of {wanted}" for what, is_, wanted in cases if is_ != wanted]
    for what, is_, wanted in cases:
        print(f"{'ok' if is_ == wanted else 'not ok'} {what}")
    print("\n".join(wrong))
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
