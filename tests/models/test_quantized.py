"""model.quantize against bitsandbytes, PEFT and transformers: codes and scales are bitsandbytes' to the bit, QLoRA's losses,
an evaluation and a text's logits are those of the dequantized weights, in 16 bits as near as PyTorch's own, a stopped run
resumes bit for bit, and no program holds more than its plan says."""

import contextlib
import copy
import functools
import json
import pathlib
import subprocess
import tempfile
import unittest

import bitsandbytes.functional as bnb
import numpy as np
import torch
import torch.nn.functional as F
from bitsandbytes.nn import Linear4bit
from peer import SEED
from quantized import Quantized, ranks, tensors
from rotation import in_turn, rotating
from safetensors.torch import load_file
from test_lora import plain
from transformers import BitsAndBytesConfig, LlamaForCausalLM

load_tests = rotating(2)


def nearest(x, levels, size):
    """bitsandbytes' quantize_blockwise as its backends/default defines it; that of its library for processors rounds a number
    through a table of 65,536 first."""
    middle, codes, scales = (levels[:-1] + levels[1:]) / 2, [], []
    for block in x.split(size):
        scale = block.abs().max()
        normal = block * (1 / scale) if len(block) == size else block / scale
        codes.append(torch.bucketize(normal.clamp(-1, 1), middle).to(torch.uint8))
        scales.append(scale)
    return torch.cat(codes), torch.stack(scales)


def dequantized(codes, levels, scales, shape):
    """By blocks of 64. bitsandbytes' own code for processors takes scales of other blocks where a row is not whole blocks."""
    elements = levels[torch.cat([codes >> 4, codes & 15], 1).flatten().long()][:shape.numel()]
    return (elements * scales.repeat_interleave(64)[:shape.numel()]).reshape(shape)


class Bits4(Quantized):
    QUANTIZE = {"load_in_4bit": True}

    def check_codes(self, trainer, quantize):
        """Compares what the run has with bitsandbytes' codes, puts the dequantized weights into theirs, and returns the names of
        what is quantized."""
        kind, nested = quantize.get("bnb_4bit_quant_type", "fp4"), quantize.get("bnb_4bit_use_double_quant", False)
        run, levels, names = tensors(trainer), bnb.create_dynamic_map(signed=True), []
        for name, parameter in self.peer.named_parameters():
            own = plain(name).removeprefix("transformer.") if self.in_out else plain(name)
            if own not in run or run[own].dtype != torch.uint8:
                continue
            weight = parameter.detach().T.contiguous() if self.in_out else parameter.detach()
            codes, state = bnb.quantize_4bit(weight, quant_type=kind, blocksize=64)
            self.assertTrue(torch.equal(run[own], codes), f"codes of {name}")
            layout = json.loads(bytes(run[f"{own}.quant_state.bitsandbytes__{kind}"].tolist()))
            self.assertEqual(layout["shape"], list(weight.shape))
            if nested:
                offset = torch.tensor(layout["nested_offset"], dtype=torch.float32)
                self.assertLess(abs(offset.item() / state.absmax.mean().item() - 1), 1e-6, f"offset of {name}")
                scales, outer = nearest(state.absmax - offset, levels, 256)
                self.assertTrue(torch.equal(run[f"{own}.absmax"], scales), f"scales of {name}")
                self.assertTrue(torch.equal(run[f"{own}.nested_absmax"], outer), f"scales of the scales of {name}")
                scales = levels[scales.long()] * outer.repeat_interleave(256)[:len(scales)] + offset
            else:
                self.assertTrue(torch.equal(run[f"{own}.absmax"], state.absmax), f"scales of {name}")
                scales = state.absmax
            whole = dequantized(codes, state.code, scales, weight.shape)
            parameter.data.copy_(whole.T if self.in_out else whole)
            names.append(own)
        return names

    def check_text(self, trainer):
        """Against those of all positions at once."""
        logits, wanted = self.logits_of_text(trainer)
        with torch.no_grad():
            wanted = wanted(self.peer)
        self.assertLess(((logits - wanted).norm() / wanted.norm()).item(), 1e-5, "logits of a text")

    def test_llama_nf4_double(self):
        quantize = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
        trainer, names = self.compare("llama.c", self.llama(), quantize,
                                            {"rank": 3, "alpha": 6, "targets": ["q_proj", "v_proj", "down_proj"]})
        self.assertEqual(len(names), 3 * 7, "all layers but the head")
        self.assertNotIn("lm_head.weight", names)
        loss = float(subprocess.check_output([self.program(trainer, "evaluate")], cwd=trainer.folder).split(b"loss ")[1].split()[0])
        self.assertLess(abs(loss / self.evaluated(self.peer, trainer) - 1), 1e-5, "an evaluation")

    def test_gpt2_fp4(self):
        """Its matrices are [in][out] in files; the tied table is no linear layer."""
        trainer, names = self.compare("gpt2.c", self.gpt2(), {}, {"rank": 4, "alpha": 8, "targets": ["c_attn", "mlp.c_proj"]})
        self.assertEqual(len(names), 2 * 4)
        self.assertNotIn("wte.weight", names)

    def test_rows_of_whole_blocks(self):
        """Where rows are whole blocks, a text's products read codes row by row; some modules are left as they are."""
        quantize = {"bnb_4bit_quant_type": "nf4", "skip_modules": ["lm_head", "layers.0.mlp.up_proj"],
                    "keep_in_fp32_modules": ["k_proj"]}
        trainer, names = self.compare("llama.c", self.llama(64, 128), quantize, {"rank": 2, "alpha": 4, "targets": ["o_proj"]})
        self.assertEqual(len(names), 3 * 7 - 1 - 3)
        self.check_text(trainer)

    def test_resumes(self):
        trainer = self.start("llama.c", self.llama(), {"bnb_4bit_use_double_quant": True}, {"rank": 2, "alpha": 4, "targets": ["q_proj", "up_proj"]},
                             checkpoint={"every": 8, "resume": "auto"})
        trainer.build(cflags=None)
        trainer.run()
        (trainer.folder / "start.safetensors").unlink()  # codes come from the checkpoint
        self.check_resumed(trainer)
        self.assertIn("step 16", trainer.output)

    def multiply_in(self, dtype, names):
        """As bitsandbytes' Linear4bit with that compute_dtype."""
        rounded = copy.deepcopy(self.peer)
        for name, module in rounded.named_modules():
            if isinstance(module, torch.nn.Linear) and plain(name + ".weight") in names:
                module.forward = lambda x, weight=module.weight: F.linear(x.to(dtype), weight.to(dtype)).to(x.dtype)
        return rounded

    def test_bits16(self):
        """Under autocast, and where products with codes alone have 16 bits: losses and logits are as far from float32's as
        PyTorch's in that type, twice at most; the audit holds, and a stopped run resumes to the same bits."""
        for word, dtype, autocast in in_turn((("bf16", torch.bfloat16, True), ("bf16", torch.bfloat16, False), ("fp16", torch.float16, False)), 3):
            with self.subTest(dtype=word, autocast=autocast):
                self.check_bits16(word, dtype, autocast)

    def check_bits16(self, word, dtype, autocast):
        self.draw(1)
        quantize = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
        groups = {"precision": {"mixed_precision": word}} if autocast else {}
        trainer = self.start("llama.c", self.llama(64, 128), quantize if autocast else {**quantize, "bnb_4bit_compute_dtype": word},
                             {"rank": 2, "alpha": 4, "targets": ["q_proj", "down_proj"]}, checkpoint={"every": 8, "resume": "auto"}, **groups)
        trainer.build()
        own = np.array([row["loss"] for row in trainer.run()])
        names = self.check_codes(trainer, quantize)
        under = functools.partial(torch.autocast, "cpu", dtype=dtype) if autocast else contextlib.nullcontext
        narrow = copy.deepcopy(self.peer) if autocast else self.multiply_in(dtype, names)
        wide, half = (np.array(list(losses)) for losses in (self.losses(self.peer), self.losses(narrow, under)))
        away, peers = (np.sqrt(np.square(losses / wide - 1).mean()) for losses in (own, half))
        print(f"{word}{' by autocast' * autocast}: losses {away:.1e} from float32's, PyTorch's {peers:.1e}")
        self.assertLess(away, 2 * peers)
        self.check_resumed(trainer)
        trainer.generate()
        self.assertIn(" 0 broken", trainer.command("audit", "trainer.c"))
        adapters = load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")
        for peer in (self.peer, narrow):
            for name, parameter in peer.named_parameters():
                if parameter.requires_grad:
                    parameter.data.copy_(adapters[name.replace(".default.", ".")])
        logits, of = self.logits_of_text(trainer)
        with torch.no_grad():
            wanted = of(self.peer)
            with under():
                rounded = of(narrow)
        self.assertLess((logits - wanted).norm(), 2 * (rounded - wanted).norm(), "logits of a text")

    def test_ranks(self):
        """Two ranks with half of each batch have PEFT's losses, where each has all states of the optimizer and where they
        divide these; the audit holds over both, and their run resumes to the same bits."""
        self.BATCH = 4
        for stage in in_turn((0, 1), 2):
            with self.subTest(zero_stage=stage):
                self.draw(SEED)
                quantize = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
                trainer = self.start("llama.c", self.llama(), quantize, {"rank": 2, "alpha": 4, "targets": ["q_proj", "up_proj"]},
                                     checkpoint={"every": 8, "resume": "auto"}, devices={"per_node": 2}, parallelism={"zero_stage": stage})
                trainer.job["data"]["batch_size"] = 2
                trainer.write()
                program = trainer.build()
                for flags in ((), ("--resume", "run/checkpoints/checkpoint_1")):
                    ended = ranks.start(program, 2, *flags, cwd=trainer.folder)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    run = tensors(trainer)
                    whole = run if not flags else whole
                for name, tensor in whole.items():
                    self.assertTrue(torch.equal(tensor, run[name]), name)
                rows = (json.loads(line) for line in (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines())
                self.check_codes(trainer, quantize)
                self.follow([row for row in rows if "loss" in row])
                trainer.generate()
                self.assertIn(" 0 broken", trainer.command("audit", "trainer.c"))

    def test_merged(self):
        """A run with merged adapters leaves W + s B A of the dequantized W, in 16 bits, which transformers opens by what the run writes,
        and an evaluator reads; without adapters merged what is no code has 16 bits, and scales stay in float32."""
        self.draw(SEED)
        made = self.llama(64, 128)
        lora = {"rank": 2, "alpha": 4, "targets": ["q_proj", "down_proj"], "merge": True}
        trainer = self.start("llama.c", made, {"bnb_4bit_quant_type": "nf4"}, lora, checkpoint={"dtype": "bf16"})
        trainer.build()
        trainer.run()
        adapters = load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")
        merged = LlamaForCausalLM.from_pretrained(trainer.folder / "run", dtype="auto")
        start = load_file(trainer.folder / "start.safetensors")
        self.assertEqual({p.dtype for p in merged.parameters()}, {torch.bfloat16})
        for name, parameter in merged.named_parameters():
            wanted = start[name]
            if "_proj" in name:
                codes, state = bnb.quantize_4bit(wanted, quant_type="nf4", blocksize=64)
                wanted = dequantized(codes, state.code, state.absmax, wanted.shape)
            module = f"base_model.model.{name.removesuffix('.weight')}.lora_"
            if module + "A.weight" in adapters:
                wanted = wanted + (2.0 * adapters[module + "B.weight"].double() @ adapters[module + "A.weight"].double()).float()
            self.assertTrue(torch.equal(parameter.detach(), wanted.bfloat16()), name)
        loss = float(subprocess.check_output([self.program(trainer, "evaluate")], cwd=trainer.folder).split(b"loss ")[1].split()[0])
        self.assertLess(abs(loss / self.evaluated(merged.float(), trainer) - 1), 1e-5, "an evaluation")
        trainer.job["model"]["lora"]["merge"] = False
        trainer.write()
        trainer.build()
        trainer.run()
        run = tensors(trainer)
        self.assertEqual({tensor.dtype for name, tensor in run.items() if name.endswith(".absmax")}, {torch.float32})
        self.assertEqual({tensor.dtype for name, tensor in run.items() if "lora" in name or "norm" in name}, {torch.bfloat16})

    def test_without_adapters(self):
        """A frozen part is in codes, the rest is trained; without a file the floats come from the seed."""
        trainer = self.start("llama.c", self.llama(), {"bnb_4bit_quant_type": "nf4"})
        del trainer.job["model"]["weights"]
        trainer.write()
        trainer.build()
        trainer.run()
        run = tensors(trainer)
        self.assertEqual(sum(tensor.dtype == torch.uint8 for tensor in run.values()), 3 * 7)
        self.assertTrue(all(0.01 < tensor.min() < tensor.max() < 1 for name, tensor in run.items() if name.endswith(".absmax")))

    def test_codes_of_the_other_kind(self):
        """An evaluator for FP4 does not read a run's NF4."""
        trainer = self.start("llama.c", self.llama(), {"bnb_4bit_quant_type": "nf4"}, {"rank": 2, "alpha": 4, "targets": ["q_proj"]})
        trainer.build()
        trainer.run()
        trainer.job["model"]["quantize"]["bnb_4bit_quant_type"] = "fp4"
        trainer.write()
        done = subprocess.run([self.program(trainer, "evaluate")], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"no tensor for the parameters .*q_proj\.weight_fp4_absmax")

    def test_layout(self):
        """With double quantization and without; codes of one are refused where the job says the other."""
        for kind, nested in in_turn((("nf4", True), ("fp4", False), ("nf4", False)), 3):
            with self.subTest(kind=kind, nested=nested):
                self.draw(SEED)
                config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=kind, bnb_4bit_use_double_quant=nested,
                                            bnb_4bit_compute_dtype=torch.float32)
                quantize = {"bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested}
                trainer, saved, opened, loss = self.check_layout(quantize, config)
                for name, module in opened.named_modules():
                    if isinstance(module, Linear4bit):
                        state = module.weight.quant_state
                        scales = bnb.dequantize_blockwise(state.absmax, state.state2) + state.offset if nested else state.absmax
                        self.assertEqual(state.shape, self.theirs.get_submodule(name).weight.shape)
                        self.theirs.get_submodule(name).weight.data.copy_(
                            dequantized(saved[name + ".weight"], state.code, scales, state.shape))
                self.assertLess(abs(loss / self.evaluated(self.theirs, trainer) - 1), 1e-5, "an evaluation")
                trainer.job["model"]["quantize"]["bnb_4bit_use_double_quant"] = not nested
                trainer.write()
                program = trainer.build()
                done = subprocess.run([program], cwd=trainer.folder, capture_output=True, text=True)
                self.assertRegex(done.stderr, f"set model.quantize.bnb_4bit_use_double_quant: {str(nested).lower()}|no tensor for the parameters")

    def test_refusals(self):
        trainer = self.start("llama.c", self.llama(), {}, {"rank": 2, "alpha": 4, "targets": ["q_proj"]})
        for change, message in [
            ({"quantize": {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bf16"}}, "'model.quantize.bnb_4bit_compute_dtype' is bf16"),
            ({"quantize": {"load_in_4bit": True}}, "'parallelism.tp' does not go with model.quantize"),
            ({"quantize": {"load_in_4bit": True, "keep_in_fp32_modules": ["k_proj"]}}, "'model.quantize.keep_in_fp32_modules' does not go with"),
            ({"lora": None}, "is trained, and a weight of codes is not"),
            ({"quantize": {"load_in_4bit": True, "skip_modules": ["nothing"]}}, "'nothing' names no module"),
            ({"quantize": {"load_in_4bit": True, "skip_modules": ["*"]}}, "no linear layer of the model is left to quantize"),
        ]:
            job = json.loads(json.dumps(trainer.job))
            job["model"].update(change)
            if "skip_modules" not in change.get("quantize", {"skip_modules": 0}):
                job.update({"precision": {"param_dtype": "fp16"}, "devices": {"per_node": 2}, "parallelism": {"tp": 2}})
            if change.get("lora", True) is None:
                del job["model"]["lora"]
            path = pathlib.Path(tempfile.mkdtemp()) / "job.yaml"
            path.write_text(json.dumps(job))
            self.assertIn(message, trainer.command("plan", path, status=2))


if __name__ == "__main__":
    unittest.main()
