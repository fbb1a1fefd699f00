"""Sources that would take a reader's time, memory or stack: each is refused within the limits, by models and by audits."""

import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
SEED = TREE / "tests" / "audit" / "corpus_program" / "trainer.c"

MODEL = """#include <accel/model.h>
{before}
tensor model(scope s, tensor tokens, tensor targets) {{
  tensor x = embedding(at(s, "e"), tokens, 256, 8);
  {inside}
  return cross_entropy(linear(at(s, "h"), x, 256), targets);
}}
"""


def twice(function, calls, last=40):
    """`last` functions, each of which calls the one before twice."""
    return "".join(function.format(i, calls.format(i - 1)) for i in range(1, last + 1))


class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=TREE / "build" / "tests")
        self.work = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def run_on(self, command, text, seconds=None):
        """The command's status, its messages, and what it took. `seconds`: it runs under that limit of its own."""
        (self.work / "source.c").write_text(text)
        lower = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, 60)) if seconds else None
        with open(self.work / "messages", "w+") as messages:
            process = subprocess.Popen([GENERATOR, *command, "source.c"], cwd=self.work, stdout=subprocess.DEVNULL,
                                       stderr=messages, preexec_fn=lower)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            messages.seek(0)
            return process.returncode, messages.read(), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def refused(self, message, text, command=("model", "check"), seconds=None, most=1100):
        status, output, took, megabytes = self.run_on(command, text, seconds)
        self.assertEqual(status, 2, output)
        self.assertRegex(output, "(?m)" + message)
        self.assertNotIn("libclang", output)
        self.assertLess(took, 20)  # of a processor, which another thread of its core may halve
        self.assertLess(megabytes, most)

    def accepted(self, text, seconds):
        status, output, took, _ = self.run_on(("model", "check"), text)
        self.assertEqual(status, 0, output)
        self.assertLess(took, seconds)

    def model(self, before="", inside=""):
        return MODEL.format(before=before, inside=inside)

    def test_a_file_without_an_end(self):
        self.refused(r"^source\.c: error: the C parser needs more than 1024 MiB of memory for this file$",
                     self.model('#include "/dev/zero"'))
        self.refused("more than 1 seconds", self.model('const char z[] = {\n#embed "/dev/urandom"\n};'), seconds=1)

    def test_a_pipe_without_a_writer(self):
        os.mkfifo(self.work / "pipe.h")
        text = self.model('#include "pipe.h"')
        status, output, took, _ = self.run_on(("model", "check"), text)
        self.assertEqual((status, took < 2), (2, True), output)
        self.assertRegex(output, r"^source\.c: error: this file, or one that it includes, is a pipe or a device that gives nothing")

    def test_a_reader_that_waits_for_a_processor(self):
        """A fork that does nothing for longer than a pipe may, but does not sleep either, is not ended: as under load, here it is stopped."""
        (self.work / "source.c").write_text(self.model(f"static const int z = {'+'.join(['1'] * 50000)};"))
        process = subprocess.Popen([GENERATOR, "model", "check", "source.c"], cwd=self.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not children.read_text():
            time.sleep(0.002)
        self.assertIsNone(process.poll())
        fork = int(children.read_text())
        os.kill(fork, signal.SIGSTOP)
        time.sleep(7)
        os.kill(fork, signal.SIGCONT)
        messages = process.communicate()[1].decode()
        self.assertEqual(process.returncode, 0, messages)

    def test_text_that_grows(self):
        bomb = "#define A0 1,1,1,1,1,1,1,1,1,1\n"
        for i in range(1, 7):
            bomb += f"#define A{i} " + ",".join([f"A{i - 1}"] * 10) + "\n"
        self.refused("more than 1 seconds", self.model(bomb + "static const int z[] = {A6};"), seconds=1)
        (self.work / "many.h").write_text("".join(f"extern int declared_{i:07};\n" for i in range(400000)))
        self.refused("more than 1 seconds", self.model('#include "many.h"'), seconds=1)

    def test_types_that_grow(self):
        types = "struct b0 { int a[10]; };\n" + twice("struct b{0} {{ {1} }};\n", "struct b{0} a, b;", 29)
        self.refused("more than 1 seconds", self.model(types, "struct b29 z; z.a.a.a.a.a.b = z.a.a.a.a.a.a;"), seconds=1)

    def test_depth(self):
        deep = "an expression of this file is nested too deep for the C parser"
        self.refused(deep, self.model(f"static const int z = {'~' * 20000}1;"))
        self.refused(deep, self.model(f"static const int z = {'+'.join(['1'] * 2000000)};"))
        self.refused("bracket nesting level", self.model(f"static const int z = {'(' * 200000}1{')' * 200000};"))
        self.accepted(self.model(f"static const int z = {'~' * 2000}1;"), 2)
        self.accepted(self.model(f"static const int z = {'+'.join(['1'] * 50000)};"), 2)

    def test_calls_that_grow(self):
        end = r"source\.c:\d+:\d+: error: the model is still not read after 4000000 steps"
        numbers = "static int f0(int x) { return x + 1; }\n" + twice(
            "static int f{0}(int x) {{ return {1}; }}\n", "f{0}(x) + f{0}(x)")
        self.refused(end, self.model(numbers, "x = scale(x, f40(1));"))
        for inline in ("", "inline "):
            tensors = "static tensor f0(tensor x) { return scale(x, 1.0); }\n" + twice(
                "static " + inline + "tensor f{0}(tensor x) {{ return {1}; }}\n", "add(f{0}(x), f{0}(x))")
            self.refused(end, self.model(tensors, "x = f40(x);"))

    def test_many_operations(self):
        self.accepted(self.model(inside="x = scale(x, 1.0);\n" * 10000), 3)
        self.accepted(self.model("static tensor f0(tensor x) { return scale(x, 1.0); }\n" + twice(
            "static tensor f{0}(tensor x) {{ return {1}; }}\n", "add(f{0}(x), f{0}(x))", 13), "x = f13(x);"), 3)

    # ---- Programs ----

    def program(self, functions, call):
        text = "#include <string.h>\n" + SEED.read_text()
        self.assertEqual(text.count("  kernel(arena->y, arena->x);\n"), 1)
        text = text.replace("  kernel(arena->y, arena->x);\n", f"  kernel(arena->y, arena->x);\n  {call}\n")
        return text.replace("static void backward", functions + "static void backward")

    def test_programs(self):
        audit = ("audit",)
        body = "static void f0(float y[static 32]) { for (int i = 0; i < 32; i++) y[i] += 1.0f; }\n"
        self.assertEqual(self.run_on(audit, self.program(body, "f0(arena->y);"))[0], 0)
        grown = body + twice("static void f{0}(float y[static 32]) {{ {1} }}\n", "f{0}(y); f{0}(y);")
        end = r"^source\.c: error: following it does not end within 40000000 statements$"
        self.refused(end, self.program(grown, "f40(arena->y);"), audit, most=200)
        self.refused("1024 MiB of memory", '#include "/dev/zero"\n' + SEED.read_text(), audit)
        self.refused("it is not text: byte 12 of it is 0", "int x = 1;\n\0" + SEED.read_text(), audit)
        self.refused("nested too deep", self.program(f"static const int z = {'~' * 2000}1;\n", ""), audit)


if __name__ == "__main__":
    unittest.main()
