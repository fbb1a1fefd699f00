"""Runs with model.quantize and their peers in PyTorch: what the tests of 4 and of 8 bits share."""

import contextlib
import pathlib
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F
from peer import GENERATOR, MODELS, QUICK, Order, Text, Trainer
from order import EVAL, splits
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from test_lora import plain
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

import ranks  # noqa: E402, F401

STEPS, LR, LENGTH = 20, 1e-2, 16


def tensors(trainer):
    return load_file(trainer.folder / "run" / "model.safetensors")


class Quantized(Text):
    """QUANTIZE has the keys that a test of a kind always has; its check_codes() compares what a run has with what bitsandbytes makes
    of the weights, leaves theirs quantized, and returns the names of what is."""

    def gpt2(self):
        config = {"n_layer": 2, "n_head": 2, "n_embd": 24, "vocab_size": 256, "n_positions": LENGTH}
        theirs = GPT2LMHeadModel(GPT2Config(**config, initializer_range=0.1, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                            tie_word_embeddings=True))
        return theirs, {"n_layer": 2, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": LENGTH}

    def llama(self, width=20, inner=28):
        """Blocks of 64 elements begin and end within rows of 20 and of 28."""
        config = {"num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                  "hidden_size": width, "intermediate_size": inner, "vocab_size": 256, "rms_norm_eps": 1e-5}
        rope = {"rope_theta": 10000.0, "rope_type": "default"}
        theirs = LlamaForCausalLM(LlamaConfig(**config, rope_parameters=rope, initializer_range=0.1, pad_token_id=None,
                                              max_position_embeddings=LENGTH, tie_word_embeddings=False))
        return theirs, config

    def start(self, source, made, quantize, lora=None, **groups):
        """A trainer that starts from theirs, with adapters whose B is not 0, and whose matrices are quantized."""
        self.theirs, config = made
        self.in_out = source == "gpt2.c"
        data, self.batches = self.text(LENGTH)
        model = {"source": str(MODELS / source), "config": config, "weights": "start.safetensors",
                 "quantize": {**self.QUANTIZE, **quantize}}
        start = self.theirs
        if lora:
            model["lora"] = {"merge": False, **lora}
            start = self.peer = get_peft_model(self.theirs, LoraConfig(
                r=lora["rank"], lora_alpha=lora["alpha"], target_modules=lora["targets"], lora_dropout=0.0,
                fan_in_fan_out=self.in_out))
            for name, parameter in self.peer.named_parameters():
                if "lora_B" in name:
                    torch.nn.init.normal_(parameter, std=0.1)
        else:
            model["freeze"] = ["*_proj.weight"]
        if self.in_out:
            model["weights_prefix"] = "transformer."
        trainer = Trainer({
            "model": model, "data": {key: value for key, value in data.items() if key != "files"},
            "optimizer": {"name": "adamw", "lr": LR, "weight_decay": 0.1, "eps": 1e-4},
            **groups, "training": {"steps": STEPS, "seed": 1, "eval_iters": "all", **groups.get("training", {})}})
        (trainer.folder / "corpus.txt").write_bytes(data["files"]["corpus.txt"])
        save_file({plain(name): p.detach().clone() for name, p in start.named_parameters()}, trainer.folder / "start.safetensors")
        return trainer

    def compare(self, source, made, quantize, lora, **groups):
        trainer = self.start(source, made, quantize, lora, **groups)
        trainer.build()
        metrics = trainer.run()
        names = self.check_codes(trainer, quantize)
        saved = load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")
        self.follow(metrics)
        for name, parameter in self.peer.named_parameters():
            if parameter.requires_grad:
                own = saved[name.replace(".default.", ".")]
                self.assertLess(((own - parameter).norm() / parameter.norm()).item(), 1e-3, name)
                parameter.data.copy_(own)  # for what is computed with it
        return trainer, names

    def losses(self, peer, under=contextlib.nullcontext):
        """PEFT's losses, over all steps."""
        optimizer = torch.optim.AdamW([p for p in peer.parameters() if p.requires_grad], lr=LR, weight_decay=0.1, eps=1e-4)
        for step in range(STEPS):
            tokens, targets = self.batches(step)
            with under():
                loss = F.cross_entropy(peer(tokens).logits.flatten(0, 1).float(), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    def follow(self, metrics):
        for step, (row, loss) in enumerate(zip(metrics, self.losses(self.peer), strict=True)):
            self.assertLess(abs(row["loss"] / loss - 1), 1e-5, f"loss of step {step + 1}")

    def program(self, trainer, kind):
        program = trainer.folder / kind
        subprocess.run([GENERATOR, "build", trainer.path, "--program", kind, "-o", program], check=True, env=QUICK)
        return program

    def logits_of_text(self, trainer):
        """The logits of a greedy text, which reads codes row by row, and the tokens that they are of."""
        prompt, count = b"codes", 6
        subprocess.run([self.program(trainer, "generate"), "--prompt", prompt.decode(), "--tokens", str(count), "--temperature", "0",
                        "--logits", "logits.f32"], cwd=trainer.folder, check=True, capture_output=True)
        logits = torch.from_numpy(np.fromfile(trainer.folder / "logits.f32", np.float32)).reshape(count, -1)
        return logits, lambda peer: peer.eval()(torch.tensor([[*prompt, *logits.argmax(1).tolist()][:-1]])).logits[0, len(prompt) - 1:].float()

    def evaluated(self, peer, trainer):
        """The loss of an evaluation by theirs."""
        corpus = list((trainer.folder / "corpus.txt").read_bytes())
        order = Order(1, EVAL, True, *splits(len(corpus), 0.1)[1], LENGTH, self.BATCH)
        rows = torch.tensor([corpus[order.start(i):order.start(i) + LENGTH + 1] for i in range(order.samples)])
        with torch.no_grad():
            losses = [F.cross_entropy(peer.eval()(batch[:, :-1]).logits.flatten(0, 1), batch[:, 1:].flatten()) * len(batch) for batch in rows.split(self.BATCH)]
        return sum(losses).item() / len(rows)

    def check_resumed(self, trainer, run=None):
        """A run that starts from its first checkpoint ends with the same bits."""
        whole = tensors(trainer)
        (run or trainer.run)("--resume", "run/checkpoints/checkpoint_1")
        again = tensors(trainer)
        self.assertEqual(whole.keys(), again.keys())
        for name, tensor in whole.items():
            self.assertTrue(torch.equal(tensor, again[name]), name)

    def check_layout(self, quantize, config):
        """A model that transformers quantized and saved: an evaluator and a run read its codes, and transformers opens what the run
        leaves, with the same codes and scales. Returns the trainer and what transformers saved."""
        trainer = self.start("llama.c", self.llama(64, 128), quantize)
        published = trainer.folder / "published"
        self.theirs.save_pretrained(trainer.folder / "floats")
        LlamaForCausalLM.from_pretrained(trainer.folder / "floats", quantization_config=config, dtype=torch.float32).save_pretrained(published)
        saved = load_file(published / "model.safetensors")
        trainer.job["model"]["weights"] = "published"
        trainer.job["training"]["steps"] = 2
        trainer.write()
        loss = float(subprocess.check_output([self.program(trainer, "evaluate")], cwd=trainer.folder).split(b"loss ")[1].split()[0])
        trainer.build()
        trainer.run()
        run, codes = tensors(trainer), [name for name, tensor in saved.items() if tensor.dtype in (torch.uint8, torch.int8) and name.endswith("weight")]
        self.assertEqual(len(codes), 3 * 7)
        for name, tensor in saved.items():
            of_codes = any(name.startswith(code) or name == code.removesuffix("weight") + "SCB" for code in codes)
            if of_codes and "quant_state" not in name and not name.endswith("weight_format"):
                self.assertTrue(torch.equal(tensor, run[name]), name)
        opened = LlamaForCausalLM.from_pretrained(trainer.folder / "run", dtype=torch.float32)
        self.assertEqual(opened.config.quantization_config.quantization_method(), config.quantization_method())
        again = opened.state_dict()
        for name in codes:
            self.assertTrue(torch.equal(again[name], saved[name]), name)
        return trainer, saved, opened, loss
