"""parallelism.tp_plan: how ranks divide parameters, in place of what the graph says, compared with one process."""

import re
import subprocess
import unittest

from ranks import GENERATOR, Ranks, job_of
from test_tensor import CONFIG, EVALUATED, LLAMA, Divided


def plan(*pairs):
    return [{"match": match, "style": style} for match, style in pairs]


# LlamaConfig.base_model_tp_plan of transformers 5, with the plan of the rest of LlamaForCausalLM.
BASE = plan(*((f"layers.*.self_attn.{name}_proj", "colwise") for name in "qkv"), ("layers.*.self_attn.o_proj", "rowwise"),
            ("layers.*.mlp.gate_proj", "colwise"), ("layers.*.mlp.up_proj", "colwise"), ("layers.*.mlp.down_proj", "rowwise"),
            ("embed_tokens", "embedding_rowwise"), ("lm_head", "colwise_gather_output"))


class Plans(Divided):
    def kinds(self, several):
        return [c["kind"] for c in several.plan()["collectives"]]

    def test_base_model_plan(self):
        """As transformers writes it: what the graph says, but for logits, which ranks gather."""
        several = self.compared(2, 2, model="llama", config=LLAMA, data={"sequence_length": 16}, parallelism={"tp_plan": BASE})
        self.assertEqual((several.plan()["split"]["parameters"], self.kinds(several).count("all-gather")), (16, 1))

    def test_products_apart(self):
        """Each product divided by itself: its input is whole, or ranks gather its columns. Heads are whole."""
        apart = plan(("*.c_attn", "rowwise_split_input"), ("h.*.mlp.c_fc", "colwise_rep"), ("*.mlp.c_proj", "rowwise_rep"), ("wte", "replicate"))
        several = self.compared(4, 4, training=EVALUATED, parallelism={"tp_plan": apart})
        split = {name for name, line in re.findall(r"parameter 0:(\S+) (.*)", several.command("plan", "job.yaml", "--dump", "partition"))
                 if " split " in line}
        self.assertEqual(split, {"c_attn.weight", "c_fc.weight", "c_proj.weight"})

    def test_positions(self):
        kept = plan(("*.ln_?", "sequence_parallel"), ("ln_f", "sequence"), ("*.mlp.*", "replicate"))
        several = self.compared(2, 2, parallelism={"tp_plan": kept, "megatron": {"sequence_parallelism": True}})
        output = several.command("plan", "job.yaml")
        self.assertIn("c_fc.weight, of matmul in gpt2.c:58: parallelism.tp_plan says so", output)
        self.assertRegex(output, r"placement +tp: 7 of 28 parameters in parts")


class Refused(unittest.TestCase):
    def refused(self, output, *pairs, **parallelism):
        """What the command says at the pattern, which is in line 2."""
        job = Ranks(2, job_of(2, 3, 5, config=CONFIG, parallelism={"tp": 2, "tp_plan": plan(*pairs), **parallelism}))
        text = job.path.read_text()
        at = text.index('{"match"')
        job.path.write_text(text[:at] + "\n" + text[at:])
        result = subprocess.run([GENERATOR, "plan", "job.yaml"], cwd=job.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"^job\.yaml:2:\d+: error: ")
        for words in output:
            self.assertIn(words, result.stderr)

    def test_patterns(self):
        self.refused(["matches the name of no parameter"], ("*.nothing", "colwise"))
        self.refused(["belong to patterns before it"], ("*.c_fc", "colwise"), ("*.mlp.c_fc", "rowwise"))
        self.refused(["'h.0.ln_1.weight' and 'h.1.ln_1.weight' would be placed differently"], ("h.0.*", "replicate"))

    def test_placements(self):
        """Each with what stands in the way, and where."""
        self.refused(["as 'rowwise'", "'layer_norm' would need a tensor whole that they shard", "write 'rowwise_split_input'"], ("*.c_fc", "rowwise"))
        self.refused(["[32][96], as 'colwise'", "gpt2.c:40:14: note: 'slice'"], ("*.c_attn", "colwise"), ("*.attn.c_proj", "replicate"))
        self.refused(["'wte.weight', [256][32], as 'colwise'", "'embedding' would need"], ("wte", "colwise"))
        self.refused(["has all positions on each rank", "set parallelism.megatron.sequence_parallelism: true"], ("ln_f", "sequence"))


if __name__ == "__main__":
    unittest.main()
