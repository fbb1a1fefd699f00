"""What the templates render is, formatted, what clang-format would write, at every width of number."""

import subprocess
import sys

import numpy as np

import cases
import kernels as kit


def main():
    if not kit.has("clang-format"):
        print("clang-format is not installed")
        return 77
    failures = 0
    for kind in cases.KINDS:
        rng = np.random.default_rng(11)
        chosen = list(cases.fixed(kind)) + [cases.fuzzed(kind, rng) for _ in range(3)]
        made = [cases.build(kind, arguments, f"{kind}_{i}", rng).kernel for i, arguments in enumerate(chosen)]
        # One text, as most of the time goes into starting clang-format.
        wrong = difference(kit.HEADERS + "\n".join(kit.kernel_text(kernel) for kernel in made), kind)
        failures += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {kind}" + (f"\n{wrong}" if wrong else ""))
    return 1 if failures else 0


def difference(text, name):
    text = kit.laid_out(text)
    style = f"--style=file:{kit.ROOT / '.clang-format'}"
    result = subprocess.run(["clang-format", style], input=text, capture_output=True, text=True, check=True)
    if result.stdout == text:
        return ""
    pairs = zip(text.split("\n"), result.stdout.split("\n"))
    return next((f"  {name}\n  < {a}\n  > {b}" for a, b in pairs if a != b), f"  {name}: length")


if __name__ == "__main__":
    sys.exit(main())
