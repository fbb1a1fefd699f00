"""model.quantize in 8 bits against bitsandbytes' Linear8bitLt, PEFT and transformers: codes and scales are bitsandbytes' to the bit,
losses are PEFT's, evaluations and the logits of a text those of LLM.int8(), and a stopped run resumes bit for bit."""

import contextlib
import copy
import functools
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import bitsandbytes.functional as bnb
import numpy as np
import torch
from bitsandbytes.nn import Linear8bitLt
from peer import SEED
from quantized import Quantized, ranks, tensors
from rotation import in_turn, rotating
from safetensors.torch import load_file
from test_lora import plain
from transformers import BitsAndBytesConfig, LlamaForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "runtime"))

from support import preloaded  # noqa: E402

logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # that it rounds inputs to float16
load_tests = rotating(3)
KERNELS = pathlib.Path(__file__).resolve().parents[1] / "ops" / "kernels" / "test_kernels.py"


class Bits8(Quantized):
    # Some numbers of a small model's activations exceed the threshold, and most do not.
    QUANTIZE = {"load_in_8bit": True, "llm_int8_threshold": 2.5}

    def check_codes(self, trainer, quantize):
        run, names = tensors(trainer), []
        threshold = {**self.QUANTIZE, **quantize}["llm_int8_threshold"]
        for name, module in list(self.peer.named_modules()):
            own = plain(name + ".weight").removeprefix("transformer.") if self.in_out else plain(name + ".weight")
            if hasattr(module, "base_layer") or own not in run or run[own].dtype != torch.int8:
                continue
            weight = module.weight.detach().T.contiguous() if self.in_out else module.weight.detach()
            layer = Linear8bitLt(weight.shape[1], weight.shape[0], bias=module.bias is not None, has_fp16_weights=False, threshold=threshold)
            layer.load_state_dict({"weight": weight, **({"bias": module.bias.detach()} if module.bias is not None else {})})
            layer = layer.to("cpu").requires_grad_(False)
            self.assertTrue(torch.equal(run[own], layer.weight.CB), f"codes of {name}")
            self.assertTrue(torch.equal(run[own.removesuffix("weight") + "SCB"], layer.weight.SCB), f"scales of {name}")
            parent, _, last = name.rpartition(".")
            setattr(self.peer.get_submodule(parent), last, layer)
            names.append(own)
        return names

    def outliers(self, tokens):
        """How many columns of inputs of its layers have outliers, of how many."""
        found = []
        hooks = [module.register_forward_pre_hook(lambda m, x: found.append((x[0].half().abs() >= m.state.threshold).flatten(0, -2).any(0)))
                 for module in self.peer.modules() if isinstance(module, Linear8bitLt)]
        with torch.no_grad():
            self.peer.eval()(tokens)
        for hook in hooks:
            hook.remove()
        return sum(int(columns.sum()) for columns in found), sum(len(columns) for columns in found)

    def check_outliers(self):
        found, of = self.outliers(self.batches(0)[0])
        print(f"{found} of {of} columns have outliers")
        self.assertTrue(0 < found < of / 2)

    def check_text(self, trainer):
        """Against a text of theirs, which reads the prompt at once and then token by token. A number that is rounded to another code
        moves a result by less than 1% of it; few are."""
        logits, _ = self.logits_of_text(trainer)
        chosen, cache, rows = torch.tensor([[*b"codes"]]), None, []
        with torch.no_grad():
            for own in logits:
                out = self.peer.eval()(chosen, past_key_values=cache, use_cache=True)
                cache, chosen = out.past_key_values, own.argmax().reshape(1, 1)
                rows.append(out.logits[0, -1])
        theirs = torch.stack(rows)
        away = ((logits - theirs).norm() / theirs.norm()).item()
        print(f"logits of a text: {away:.1e}")
        self.assertLess(away, 2e-3, "logits of a text")

    def evaluation(self, trainer, **environment):
        output = subprocess.check_output([self.program(trainer, "evaluate")], cwd=trainer.folder, env={**os.environ, **environment})
        return float(output.split(b"loss ")[1].split()[0])

    def check_evaluation(self, trainer, **environment):
        own, theirs = self.evaluation(trainer, **environment), self.evaluated(self.peer, trainer)
        print(f"an evaluation: {abs(own / theirs - 1):.1e}")
        self.assertLess(abs(own / theirs - 1), 1e-4, "an evaluation")
        return own

    def test_llama(self):
        """Training multiplies by the weights that codes stand for, as Linear8bitLt does on processors, and evaluates in int8."""
        trainer, names = self.compare("llama.c", self.llama(64, 128), {}, {"rank": 3, "alpha": 6, "targets": ["q_proj", "v_proj", "down_proj"]},
                                      training={"eval_interval": 20})
        self.assertEqual(len(names), 3 * 7, "all layers but the head")
        self.assertNotIn("lm_head.weight", names)
        self.check_outliers()
        loss = self.check_evaluation(trainer)
        rows = [json.loads(line) for line in (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertLess(abs([row["eval_loss"] for row in rows if "eval_loss" in row][-1] / loss - 1), 1e-6, "an evaluation of the run")
        self.check_text(trainer)
        self.check_short_of_memory(trainer)

    def check_short_of_memory(self, trainer):
        """oneDNN's product leaves its result as it was where it finds no memory: programs end before they show a number made of it."""
        logits = (trainer.folder / "logits.f32").read_bytes()
        for words in (("evaluate",), ("generate", "--prompt", "codes", "--tokens", "6", "--temperature", "0", "--logits", "short.f32")):
            for at in (1, 40):
                ended = subprocess.run([trainer.folder / words[0], *words[1:]], cwd=trainer.folder, capture_output=True, text=True,
                                       env={**os.environ, "LD_PRELOAD": str(preloaded("short_sgemm")), "SGEMM_FAILS_AT": str(at)})
                self.assertEqual(ended.returncode, 1, ended.stdout)
                self.assertIn("error: oneDNN could not multiply matrices (status 1)", ended.stderr)
                self.assertIn("out of memory", ended.stderr)
                self.assertNotIn("loss", ended.stdout)
        written = (trainer.folder / "short.f32").read_bytes()
        self.assertLess(len(written), len(logits))
        self.assertEqual(written, logits[: len(written)])

    def test_gpt2_without_outliers(self):
        """Its matrices are [in][out] in files and have biases; no column is an outlier."""
        trainer, names = self.compare("gpt2.c", self.gpt2(), {"llm_int8_threshold": 0.0}, {"rank": 4, "alpha": 8, "targets": ["c_attn", "mlp.c_proj"]})
        self.assertEqual(len(names), 2 * 4)
        self.check_evaluation(trainer)
        self.check_text(trainer)

    def test_without_exact_instructions(self):
        """Where the processor's instructions for int8 saturate, which products of the largest codes do, codes are multiplied as floats."""
        found = subprocess.run([sys.executable, KERNELS, "--how", "gcc", "--all", "llm_int8_matmul"], capture_output=True, text=True,
                               env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"})
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertIn("ok llm_int8_matmul gcc", found.stdout)

    def test_bits16(self):
        """Under autocast, and of a model in bfloat16: losses and evaluations are as far from float32's as PyTorch's in that type, twice at
        most; the audit holds, and a stopped run resumes to the same bits."""
        for precision in in_turn(({"mixed_precision": "bf16"}, {"param_dtype": "bf16"}, {"mixed_precision": "fp16"}), 3):
            with self.subTest(**precision):
                self.check_bits16(precision)

    def check_bits16(self, precision):
        self.draw(SEED)
        trainer = self.start("llama.c", self.llama(64, 128), {}, {"rank": 2, "alpha": 4, "targets": ["q_proj", "down_proj"]},
                             checkpoint={"every": 8, "resume": "auto"}, precision=precision)
        trainer.build()
        own = np.array([row["loss"] for row in trainer.run()])
        self.check_codes(trainer, {})
        dtype = torch.float16 if "fp16" in precision.values() else torch.bfloat16
        stored = "param_dtype" in precision
        under = contextlib.nullcontext if stored else functools.partial(torch.autocast, "cpu", dtype=dtype)
        narrow = copy.deepcopy(self.peer)
        if stored:
            for name, parameter in narrow.named_parameters():
                parameter.data = parameter.data.to(dtype) if parameter.is_floating_point() else parameter.data
        wide, half = (np.array(list(losses)) for losses in (self.losses(self.peer), self.losses(narrow, under)))
        away, peers = (np.sqrt(np.square(losses / wide - 1).mean()) for losses in (own, half))
        print(f"{precision}: losses {away:.1e} from float32's, PyTorch's {peers:.1e}")
        self.assertLess(away, 2 * peers)
        self.check_resumed(trainer)
        trainer.generate()
        self.assertIn(" 0 broken", trainer.command("audit", "trainer.c"))

    def test_ranks(self):
        """Two ranks with half of each batch, which divide the optimizer's states, have PEFT's losses and resume to the same bits."""
        self.BATCH = 4
        trainer = self.start("llama.c", self.llama(), {}, {"rank": 2, "alpha": 4, "targets": ["q_proj", "up_proj"]},
                             checkpoint={"every": 8, "resume": "auto"}, devices={"per_node": 2}, parallelism={"zero_stage": 1})
        trainer.job["data"]["batch_size"] = 2
        trainer.write()
        program = trainer.build()

        def run(*flags):
            ended = ranks.start(program, 2, *flags, cwd=trainer.folder)
            self.assertEqual(ended.returncode, 0, ended.stderr)

        run()
        rows = (json.loads(line) for line in (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines())
        rows = [row for row in rows if "loss" in row]
        self.check_resumed(trainer, run)
        self.check_codes(trainer, {})
        self.follow(rows)

    def test_merged(self):
        """A run with merged adapters leaves floats, W + s B A of the W that codes stand for, in which an evaluator multiplies."""
        lora = {"rank": 2, "alpha": 4, "targets": ["q_proj", "down_proj"], "merge": True}
        trainer = self.start("llama.c", self.llama(), {}, lora)
        trainer.build()
        trainer.run()
        adapters = load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")
        merged = LlamaForCausalLM.from_pretrained(trainer.folder / "run", dtype="auto")
        start = load_file(trainer.folder / "start.safetensors")
        for name, parameter in merged.named_parameters():
            wanted = start[name]
            if "_proj" in name:
                wanted = bnb.int8_vectorwise_dequant(*bnb.int8_vectorwise_quant(wanted.half())[:2])
            module = f"base_model.model.{name.removesuffix('.weight')}.lora_"
            if module + "A.weight" in adapters:
                wanted = wanted + (2.0 * adapters[module + "B.weight"].double() @ adapters[module + "A.weight"].double()).float()
            self.assertTrue(torch.equal(parameter.detach(), wanted), name)
        self.assertLess(abs(self.evaluation(trainer) / self.evaluated(merged, trainer) - 1), 1e-5, "an evaluation")

    def test_layout(self):
        """Of codes of one kind transformers' names are the same."""
        trainer, saved, opened, loss = self.check_layout({}, BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=2.5))
        self.assertEqual(opened.config.quantization_config.llm_int8_threshold, 2.5)
        for name, module in opened.named_modules():
            if isinstance(module, Linear8bitLt):
                self.assertTrue(torch.equal(module.weight.SCB, saved[name + ".SCB"]), name)
        theirs = LlamaForCausalLM.from_pretrained(trainer.folder / "published", dtype=torch.float32)
        self.assertLess(abs(loss / self.evaluated(theirs, trainer) - 1), 1e-4, "an evaluation")

    def test_refusals(self):
        trainer = self.start("llama.c", self.llama(), {}, {"rank": 2, "alpha": 4, "targets": ["q_proj"]})
        for groups, message in [
            ({"devices": {"kind": "cuda"}}, "'devices.kind' does not go with model.quantize: GPUs have no product with codes"),
            ({"quantize": {"load_in_4bit": True}}, "'load_in_4bit' must be 'false', not true, with model.quantize.load_in_8bit true"),
            ({"quantize": {"bnb_4bit_quant_type": "nf4"}}, "'bnb_4bit_quant_type' does not go with model.quantize.load_in_8bit true"),
            ({"quantize": {"load_in_8bit": False}}, "'llm_int8_threshold' does not go with"),
            ({"quantize": {"llm_int8_threshold": -1}}, "'llm_int8_threshold' must be at least 0"),
        ]:
            job = json.loads(json.dumps(trainer.job))
            job["model"]["quantize"].update(groups.pop("quantize", {}))
            path = pathlib.Path(tempfile.mkdtemp()) / "job.yaml"
            path.write_text(json.dumps({**job, **groups}))
            self.assertIn(message, trainer.command("plan", path, status=2))


if __name__ == "__main__":
    unittest.main()
