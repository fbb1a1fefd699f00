"""model.quantize.quant_type against torchao, gguf-py and PEFT: codes and scales are theirs to the bit, of q4_k what gguf-py reads;
losses of adapters, an evaluation and a text's logits are those of the dequantized weights, also by activations in Q8_0, a stopped run
resumes bit for bit, merged adapters leave floats, and what has no meaning is refused."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import gguf
import numpy as np
import torch
from quantized import LENGTH, Quantized, tensors
from rotation import in_turn, rotating
from safetensors.torch import load_file
from test_lora import plain
from torchao.quantization import Int8WeightOnlyConfig, PerGroup, quantize_
from torchao.quantization.utils import get_groupwise_affine_qparams, groupwise_affine_quantize_tensor_from_qparams
from transformers import LlamaConfig, LlamaForCausalLM

load_tests = rotating(2)
GGUF = {"q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0, "q4_k": gguf.GGMLQuantizationType.Q4_K}


def of_torchao(weight, kind, group):
    """Its codes and scales as a run has them, and the weights that they stand for."""
    if kind == "int8_weight_only":
        layer = torch.nn.Linear(*reversed(weight.shape), bias=False)
        layer.weight.data = weight.clone()
        quantize_(layer, Int8WeightOnlyConfig(granularity=PerGroup(group)))
        return layer.weight.qdata, layer.weight.scale, layer.weight.dequantize()
    scale, zero = get_groupwise_affine_qparams(weight, 4, group, torch.float32)
    codes = groupwise_affine_quantize_tensor_from_qparams(weight, scale, zero, 4, group)
    codes = codes if codes.shape == weight.shape else torch.stack((codes >> 4, codes & 15), 2).flatten(1)
    scale, zero = (x.reshape(len(weight), -1) for x in (scale, zero))
    whole = (codes.float() - 8) * scale.repeat_interleave(group, 1) + zero.repeat_interleave(group, 1)
    halves = codes.reshape(-1, 2, 16)
    return (halves[:, 0] | halves[:, 1] << 4).to(torch.uint8).reshape(len(weight), -1), torch.stack((scale, zero), 2), whole


def in_blocks(module, inputs):
    """What a linear layer takes, as gguf-py quantizes it."""
    rows = inputs[0].numpy().reshape(-1, inputs[0].shape[-1])
    return torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(rows, GGUF["q8_0"]), GGUF["q8_0"])).reshape(inputs[0].shape)


class EvenSteps(Quantized):
    QUANTIZE = {}

    def llama(self, width, inner):
        """Rows of all its matrices are whole blocks."""
        config = {"num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": width // 2,
                  "hidden_size": width, "intermediate_size": inner, "vocab_size": 256, "rms_norm_eps": 1e-5}
        rope = {"rope_theta": 10000.0, "rope_type": "default"}
        return LlamaForCausalLM(LlamaConfig(**config, rope_parameters=rope, initializer_range=0.1, pad_token_id=None,
                                            max_position_embeddings=LENGTH, tie_word_embeddings=False)), config

    def check_codes(self, trainer, quantize):
        run, names, kind = tensors(trainer), [], quantize["quant_type"]
        for name, parameter in self.peer.named_parameters():
            own = plain(name)
            if own not in run or run[own].dtype not in (torch.uint8, torch.int8):
                continue
            weight = parameter.detach()
            if kind in GGUF:
                read = gguf.quants.dequantize(run[own].reshape(len(weight), -1).numpy(), GGUF[kind])
                if kind != "q4_k":
                    wanted = gguf.quants.quantize(weight.numpy(), GGUF[kind])
                    self.assertTrue(np.array_equal(run[own].reshape(len(weight), -1).numpy(), wanted), f"codes of {name}")
                else:  # half a step of 15 of what 32 elements span, and what a step and an offset of 63 lose
                    self.assertLess(np.abs(read - weight.numpy()).max(), 2 * weight.abs().max() / 30 * 1.3, name)
                whole = torch.from_numpy(read)
            else:
                codes, scales, whole = of_torchao(weight, kind, quantize.get("group_size", 128) or weight.shape[1])
                scale = own + ("_int8_scale" if kind == "int8_weight_only" else "_int4_scale_and_zero")
                self.assertTrue(torch.equal(run[own], codes), f"codes of {name}")
                self.assertTrue(torch.equal(run[scale], scales.reshape(run[scale].shape)), f"scales of {name}")
            parameter.data.copy_(whole)
            names.append(own)
        return names

    def test_llama(self):
        for quantize in in_turn(({"quant_type": "q8_0"}, {"quant_type": "q4_0"}, {"quant_type": "q4_k"}, {"quant_type": "int4_weight_only"},
                                 {"quant_type": "int8_weight_only", "group_size": 64}, {"quant_type": "int8_weight_only", "group_size": 0},
                                 {"quant_type": "int4_weight_only", "group_size": 32}), 7):
            with self.subTest(**quantize):
                self.draw(1)
                width = 256 if quantize["quant_type"] == "q4_k" else 128
                trainer, names = self.compare("llama.c", self.llama(width, 2 * width), quantize, {"rank": 3, "alpha": 6, "targets": ["q_proj", "down_proj"]},
                                              checkpoint={"every": 8, "resume": "auto"})
                self.assertEqual(len(names), 3 * 7, "all layers but the head")
                loss = float(subprocess.check_output([self.program(trainer, "evaluate")], cwd=trainer.folder).split(b"loss ")[1].split()[0])
                self.assertLess(abs(loss / self.evaluated(self.peer, trainer) - 1), 1e-5, "an evaluation")
                logits, wanted = self.logits_of_text(trainer)
                with torch.no_grad():
                    wanted = wanted(self.peer)
                self.assertLess(((logits - wanted).norm() / wanted.norm()).item(), 1e-5, "logits of a text")
                (trainer.folder / "start.safetensors").unlink()  # codes come from the checkpoint
                self.check_resumed(trainer)
                trainer.generate()
                self.assertIn(" 0 broken", trainer.command("audit", "trainer.c"))

    def test_activations(self):
        """An evaluation and a text multiply activations in Q8_0, and training as they are. A number in the middle between two codes may
        have the other one, as what comes before it is rounded otherwise: with one such the logits differ by a third of what they would
        without codes, else by 1e-5 of that."""
        kind = in_turn(("q8_0", "q4_0"), 2)[0]
        self.draw(1)
        trainer, names = self.compare("llama.c", self.llama(128, 256), {"quant_type": kind, "activations": "q8_0"},
                                      {"rank": 3, "alpha": 6, "targets": ["q_proj", "down_proj"]})
        loss = float(subprocess.check_output([self.program(trainer, "evaluate")], cwd=trainer.folder).split(b"loss ")[1].split()[0])
        logits, of_tokens = self.logits_of_text(trainer)
        with torch.no_grad():
            floats = of_tokens(self.peer)
            for name, module in self.peer.named_modules():
                if isinstance(module, torch.nn.Linear) and plain(f"{name}.weight") in names:
                    module.register_forward_pre_hook(in_blocks)
            wanted, wanted_loss = of_tokens(self.peer), self.evaluated(self.peer, trainer)
        self.assertLess((logits - wanted).norm(), 0.6 * (floats - wanted).norm(), "logits of a text")
        self.assertLess(abs(loss / wanted_loss - 1), 2e-4, "an evaluation")
        trainer.generate()
        self.assertIn(" 0 broken", trainer.command("audit", "trainer.c"))

    def test_merged(self):
        """A run with merged adapters leaves floats, W + s B A of the W that codes stand for."""
        lora = {"rank": 2, "alpha": 4, "targets": ["q_proj"], "merge": True}
        trainer = self.start("llama.c", self.llama(64, 128), {"quant_type": "q4_0"}, lora)
        trainer.build()
        trainer.run()
        adapters = load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")
        start, run = load_file(trainer.folder / "start.safetensors"), tensors(trainer)
        for name, tensor in run.items():
            wanted = start[name]
            if "_proj" in name:
                wanted = torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(wanted.numpy(), GGUF["q4_0"]), GGUF["q4_0"]))
            module = f"base_model.model.{name.removesuffix('.weight')}.lora_"
            if module + "A.weight" in adapters:
                wanted = wanted + (2.0 * adapters[module + "B.weight"].double() @ adapters[module + "A.weight"].double()).float()
            self.assertTrue(torch.equal(tensor, wanted), name)

    def test_refusals(self):
        trainer = self.start("llama.c", self.llama(64, 96), {"quant_type": "q8_0"}, {"rank": 2, "alpha": 4, "targets": ["q_proj"]})
        for quantize, message in [
            ({"quant_type": "q4_k"}, "has rows of 64 elements, and codes of q4_k are of 256 in a row"),
            ({"quant_type": "int4_weight_only", "group_size": 64}, "has rows of 96 elements, and codes of int4_weight_only are of 64 in a row"),
            ({"quant_type": "int8_weight_only", "group_size": 40}, "'model.quantize.group_size' must be a multiple of 32"),
            ({"quant_type": "q8_0", "group_size": 32}, "'group_size' does not go with"),
            ({"quant_type": "int8_weight_only", "activations": "q8_0"}, "'activations' does not go with"),
            ({"quant_type": "q8_0", "load_in_4bit": True}, "'load_in_4bit' must be 'false'"),
            ({"quant_type": "q8_0", "bnb_4bit_quant_type": "nf4"}, "'bnb_4bit_quant_type' does not go with"),
        ]:
            job = json.loads(json.dumps(trainer.job))
            job["model"]["quantize"] = quantize
            path = pathlib.Path(tempfile.mkdtemp()) / "job.yaml"
            path.write_text(json.dumps(job))
            self.assertIn(message, trainer.command("plan", path, status=2))


if __name__ == "__main__":
    unittest.main()
