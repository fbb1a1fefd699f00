"""What `accel-gen env` says of the machine, against psutil, Python's platform and the tools themselves, and of GPUs whose tools are
stand-ins. TAP."""

import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import psutil

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))

from tap import GENERATOR, finish, report  # noqa: E402

NVIDIA = """#!/bin/sh
[ "$1" = --query-gpu=name,memory.total,compute_cap,driver_version ] || exit 9
echo 'NVIDIA H100 80GB HBM3, 81559 MiB, 9.0, 570.1'
echo 'NVIDIA L4, 23034 MiB, 8.9, 570.1'
"""
AMD = """#!/bin/sh
printf 'Agent 1\\n  Name:                    AMD EPYC\\n  Marketing Name:          AMD EPYC 9004\\n'
printf 'Agent 2\\n  Name:                    gfx942\\n  Marketing Name:          AMD Instinct MI300X\\n'
"""
GPUS = [{"name": "NVIDIA H100 80GB HBM3", "memory": "81559 MiB", "compute_capability": "9.0", "driver": "570.1"},
        {"name": "NVIDIA L4", "memory": "23034 MiB", "compute_capability": "8.9", "driver": "570.1"},
        {"name": "AMD Instinct MI300X", "architecture": "gfx942"}]


def env(*words, **variables):
    done = subprocess.run([GENERATOR, "env", *words], capture_output=True, text=True, env=os.environ | variables, timeout=100, check=True)
    return done.stdout + done.stderr


def first_line(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.split("\n")[0]


def processors(ranges):
    return {i for part in ranges.split(",") for i in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}


def machine(facts):
    flags = set()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            flags = set(line.split(":")[1].split())
    expected = {("system", "machine"): platform.machine(), ("system", "kernel"): f"{platform.system()} {platform.release()}",
                ("processor", "threads"): psutil.cpu_count(), ("processor", "cores"): psutil.cpu_count(logical=False),
                ("memory", "total_bytes"): psutil.virtual_memory().total, ("tools", "CC"): first_line(os.environ.get("CC", "cc"), "--version"),
                ("tools", "pkg-config"): first_line("pkg-config", "--version"), ("libraries_of_programs", "hwloc"): first_line("pkg-config", "--modversion", "hwloc"),
                ("libraries_of_programs", "runtime"): facts["accel_gen"]["version"],
                ("libraries_of_programs", "runtime for XLA"): facts["accel_gen"]["version"]}
    wrong = [f"{group} {key}: {facts[group].get(key)}, not {value}" for (group, key), value in expected.items() if value and facts[group].get(key) != value]
    wrong += [] if processors(facts["processor"]["allowed_processors"]) == os.sched_getaffinity(0) else [facts["processor"]["allowed_processors"]]
    named = set(facts["processor"].get("instruction_sets", "").split())
    wrong += [f"instruction sets: {named - flags}"] if not named <= flags or {"avx2", "fma", "avx512f"} & flags - named else []
    return wrong + ([] if "oneDNN" in facts["libraries_of_programs"] and "yaml-0" in facts["libraries_of_the_command"] else ["libraries"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("nvidia-smi", NVIDIA), ("rocminfo", AMD)):
            path = pathlib.Path(folder) / name
            path.write_text(text)
            path.chmod(0o755)
        variables = {"PATH": f"{folder}:{os.environ['PATH']}", "ACCEL_X": "1", "NCCL_DEBUG": "INFO", "SECRET": "2",
                     "PJRT_PLUGIN_LIBRARY_PATH": "/nowhere/plugin.so"}
        facts, text = json.loads(env("--json", **variables)), env(**variables)
        report("the machine as others see it", machine(facts))
        report("GPUs by their drivers' tools", [facts["gpus"]] if facts["gpus"] != GPUS else [])
        plugin = facts["libraries_of_programs"].get("plugin of XLA", "")
        report("why a plugin of XLA cannot be loaded", [] if "/nowhere/plugin.so" in plugin else [plugin])
        known = facts["variables"]
        report("variables that matter, and no others", [known] if "SECRET" in known or not {"ACCEL_X": "1", "NCCL_DEBUG": "INFO", "PJRT_PLUGIN_LIBRARY_PATH": "/nowhere/plugin.so"}.items() <= known.items() else [])
        lines = ("  0                    NVIDIA H100 80GB HBM3, memory 81559 MiB", f"  threads              {psutil.cpu_count()}", "  ACCEL_X              1")
        report("the same as text", [line for line in lines if f"\n{line}" not in text])
    finish()


if __name__ == "__main__":
    main()
