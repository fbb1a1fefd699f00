"""model.lora against PEFT: the same adapters on the same model give the same losses and adapters, what is saved loads as a
PeftModel, and the merged model is that one."""

import json
import pathlib
import shutil
import tempfile
import unittest

import torch
import torch.nn.functional as F
from peer import MODELS, Text, Trainer
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

STEPS, LR = 20, 1e-2


def plain(name):
    """PEFT's name of a parameter, as the model's own with the adapter's after it."""
    name = name.removeprefix("base_model.model.").replace(".default.", ".").replace(".base_layer.", ".")
    return name.replace(".modules_to_save", "")


class Lora(Text):
    def gpt2(self):
        config = {"n_layer": 2, "n_head": 2, "n_embd": 24, "vocab_size": 256, "n_positions": 16}
        theirs = GPT2LMHeadModel(GPT2Config(**config, initializer_range=0.1, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                            tie_word_embeddings=True))
        return theirs, {"n_layer": 2, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 16}

    def llama(self):
        config = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                  "hidden_size": 20, "intermediate_size": 28, "vocab_size": 256, "rms_norm_eps": 1e-5}
        rope = {"rope_theta": 10000.0, "rope_type": "default"}
        theirs = LlamaForCausalLM(LlamaConfig(**config, rope_parameters=rope, initializer_range=0.1, pad_token_id=None,
                                              max_position_embeddings=16, tie_word_embeddings=False))
        return theirs, config

    def train(self, source, config, start, lora, **model):
        """A trainer that has run, from these tensors."""
        self.data, self.batches = self.text(16)
        trainer = Trainer({
            "model": {"source": str(MODELS / source), "config": config, "weights": "start.safetensors", "lora": lora, **model},
            "data": {key: value for key, value in self.data.items() if key != "files"},
            "optimizer": {"name": "adamw", "lr": LR, "weight_decay": 0.1, "eps": 1e-4},
            "training": {"steps": STEPS, "seed": 1},
        })
        (trainer.folder / "corpus.txt").write_bytes(self.data["files"]["corpus.txt"])
        save_file(start, trainer.folder / "start.safetensors")
        trainer.build()
        self.metrics = trainer.run()
        return trainer

    def compare(self, source, made, lora, **more):
        """Ours starts from theirs, in which B is not 0 either."""
        theirs, config = made
        base = pathlib.Path(tempfile.mkdtemp(prefix="accel-lora-"))
        theirs.save_pretrained(base)
        peer = get_peft_model(theirs, LoraConfig(
            r=lora["rank"], lora_alpha=lora["alpha"], target_modules=lora["targets"], use_rslora=lora.get("use_rslora", False),
            modules_to_save=lora.get("modules_to_save"), lora_dropout=0.0, fan_in_fan_out=source == "gpt2.c"))
        for name, parameter in peer.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.1)
        start = {plain(name): p.detach().clone() for name, p in peer.named_parameters() if ".original_module." not in name}
        trainer = self.train(source, config, start, lora, **more)
        self.follow(peer)
        self.check_adapter(trainer, base, peer, type(theirs))
        self.check_merged(trainer, base, type(theirs), lora)

    def follow(self, peer):
        trained = [p for p in peer.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=LR, weight_decay=0.1, eps=1e-4)
        for step, row in enumerate(self.metrics):
            tokens, targets = self.batches(step)
            loss = F.cross_entropy(peer(tokens).logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")

    def check_adapter(self, trainer, base, peer, kind):
        """What is saved is a PeftModel, whose parameters are those of the one that was trained next to it."""
        loaded = PeftModel.from_pretrained(kind.from_pretrained(base), trainer.folder / "run" / "adapter")
        wanted = dict(peer.named_parameters())
        trained = {name for name, p in wanted.items() if p.requires_grad}
        own = dict(loaded.named_parameters())
        for name in trained:
            change = (own[name] - wanted[name]).norm() / wanted[name].norm()
            self.assertLess(change.item(), 1e-3, f"{name} after {STEPS} steps")
        saved = load_file(trainer.folder / "run" / "adapter" / "adapter_model.safetensors")
        self.assertEqual(len(saved), len(trained))
        self.loaded = loaded

    def check_merged(self, trainer, base, kind, lora):
        tokens, _ = self.batches(0)
        wanted = self.loaded.eval()(tokens).logits
        run = trainer.folder / "run"
        shutil.copy(base / "config.json", run)
        ours, info = kind.from_pretrained(run, output_loading_info=True)
        if lora.get("merge", True):
            self.assertFalse(info["unexpected_keys"])
            got = ours.eval()(tokens).logits
            self.assertLess(((got - wanted).norm() / wanted.norm()).item(), 1e-5, "the merged model's logits")
        else:
            names = {name for name in info["unexpected_keys"]}
            self.assertTrue(names and all(".lora_" in name for name in names), names)

    def test_gpt2(self):
        self.compare("gpt2.c", self.gpt2(), {"rank": 4, "alpha": 8, "targets": ["c_attn", "mlp.c_proj"]},
                     weights_prefix="transformer.")

    def test_llama(self):
        self.compare("llama.c", self.llama(), {"rank": 3, "alpha": 6, "targets": ["q_proj", "v_proj", "down_proj"],
                                               "use_rslora": True, "modules_to_save": ["lm_head"]})

    def test_some_layers_not_merged(self):
        self.compare("llama.c", self.llama(), {"rank": 2, "alpha": 4, "targets": ["model.layers.1.self_attn.o_proj"], "merge": False})

    def test_fresh_adapters_change_nothing(self):
        """B starts at 0; dropout is of the adapters alone."""
        theirs, config = self.llama()
        start = {name: p.detach().clone() for name, p in theirs.named_parameters()}
        trainer = self.train("llama.c", config, start, {"targets": ["*_proj"], "dropout": 0.5, "merge": False})
        tokens, targets = self.batches(0)
        loss = F.cross_entropy(theirs(tokens).logits.flatten(0, 1), targets.flatten()).item()
        self.assertLess(abs(self.metrics[0]["loss"] / loss - 1), 1e-5)
        after = load_file(trainer.folder / "run" / "model.safetensors")
        for name, tensor in start.items():
            self.assertTrue(torch.equal(after[name], tensor), f"{name} is frozen")
        parts = [name for name in after if ".lora_" in name]
        self.assertEqual(len(parts), 2 * 7 * 2)
        self.assertTrue(all(after[name].abs().max() > 0 for name in parts))
        self.assertEqual(json.loads((trainer.folder / "run" / "adapter" / "adapter_config.json").read_text())["lora_dropout"], 0.5)


if __name__ == "__main__":
    unittest.main()
