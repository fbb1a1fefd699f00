"""Models in bfloat16 against PyTorch's autocast over the same weights, and against its modules with weights of bfloat16: the loss, and the gradients as what one step of
plain descent moves. Two computations in 16 bits differ by their roundings; the way to tell that they round alike is that
ours is no farther from theirs than a few times what theirs is from float32."""

import json
import shutil
import unittest

import torch
from peer import MODELS, Images, Text, Trainer
from safetensors.torch import load_file
from test_diffusion import Denoiser, normal, whole
from test_recurrent import Memory
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM, ResNetConfig, ResNetForImageClassification
from unet import noised


class Low(Images, Text):
    def moved(self, source, theirs, config, data, precision):
        """The loss and what each weight moved by at a rate of 1."""
        trainer = Trainer({
            "model": {"source": str(MODELS / source), "weights": "start.safetensors", "config": config},
            "data": {key: value for key, value in data.items() if key != "files"},
            "optimizer": {"name": "sgd", "lr": 1.0, "weight_decay": 0}, "training": {"steps": 1, "seed": 1},
            "precision": precision})
        for name, content in data["files"].items():
            (trainer.folder / name).write_bytes(content)
        theirs.save_pretrained(trainer.folder)
        shutil.move(trainer.folder / "model.safetensors", trainer.folder / "start.safetensors")
        trainer.build()
        loss = trainer.run()[0]["loss"]
        start, after = load_file(trainer.folder / "start.safetensors"), load_file(trainer.folder / "run/model.safetensors")
        return loss, {name: start[name].double() - after[name].double() for name in start if start[name].is_floating_point()}

    def compare(self, source, theirs, config, data, tensors, loss_of, recurrent=False, stored=False):
        """`stored`: weights and what is computed are bfloat16, param_dtype; else autocast chooses."""
        theirs.train()
        ours, moved = self.moved(source, theirs, config, data, {"param_dtype" if stored else "mixed_precision": "bf16"})
        sides = []
        for half in (True, False):
            theirs.zero_grad()
            # Without oneDNN, which has no LSTM of bfloat16 for a processor without AVX-512, PyTorch has one of its own.
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half and not stored), torch.backends.mkldnn.flags(enabled=not recurrent):
                weights = {name: p.bfloat16() if half else p for name, p in theirs.named_parameters()}
                loss = loss_of(lambda *given: torch.func.functional_call(theirs, weights, given) if stored else theirs(*given), *tensors)
            loss.backward()
            sides.append((loss.item(), {name: p.grad.double().clone() for name, p in theirs.named_parameters() if p.grad is not None}))
        (half, gradients), (full, exact) = sides
        self.assertLess(abs(ours - half), 4 * abs(half - full) + 2e-3 * abs(full), json.dumps([ours, half, full]))
        names = [name for name in gradients if name in moved]  # experts are stacked in theirs, single in files
        self.assertGreater(len(names), 5)
        norm = sum(exact[name].norm() ** 2 for name in names) ** 0.5
        distance = sum((moved[name] - gradients[name]).norm() ** 2 for name in names) ** 0.5 / norm
        rounding = sum((exact[name] - gradients[name]).norm() ** 2 for name in names) ** 0.5 / norm
        peer = "those of weights in bfloat16" if stored else "autocast's"
        print(f"{source}: gradients {distance:.2g} from {peer}, which are {rounding:.2g} from float32's", flush=True)
        self.assertLess(distance, 3 * rounding + 1e-3)

    def test_resnet(self):
        same = {"num_channels": 3, "embedding_size": 8}
        theirs = ResNetForImageClassification(ResNetConfig(**same, layer_type="basic", hidden_sizes=[8, 16], depths=[1, 1], num_labels=4))
        data, batches = self.images(3, 16, 4)
        ours = {**same, "layer_type": "BASIC", "image_size": 16, "num_labels": 4, "stages": 2, "hidden_sizes.0": 8, "hidden_sizes.1": 16,
                "depths.0": 1, "depths.1": 1}
        self.compare("resnet.c", theirs, ours, data, batches(0), lambda model, x, y: torch.nn.functional.cross_entropy(model(x).logits, y))

    def test_unet(self):
        same = {"in_channels": 2, "layers_per_block": 1, "norm_num_groups": 4, "attention_head_dim": 8, "num_class_embeds": 0}
        theirs = Denoiser(**same, block_out_channels=[16, 16], attend=[False, True])
        ours = {**same, "sample_size": 8, "blocks": 2, "block_out_channels.0": 16, "block_out_channels.1": 16, "attend.0": False,
                "attend.1": True}
        data, batches = self.images(2, 8, 4)
        x, labels = batches(0)
        self.compare("unet.c", theirs, ours, data, (x, labels, whole(len(x), 0, 0, 1000), normal(x.shape, 1, 0)),
                     lambda model, x, labels, steps, noise: torch.nn.functional.mse_loss(model(noised(x, noise, steps), steps, labels).float(), noise))

    def test_lstm(self):
        for stored in (False, True):
            with self.subTest(stored=stored):
                self.lstm(stored)

    def lstm(self, stored):
        same = {"num_layers": 2, "n_embd": 16, "hidden_size": 24, "vocab_size": 256}
        data, batches = self.text(12)
        self.compare("lstm.c", Memory(**same), same, data, batches(0), lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens).flatten(0, 1).float(), targets.flatten()), recurrent=True, stored=stored)

    def test_experts(self):
        for stored in (False, True):
            with self.subTest(stored=stored):
                self.experts(stored)

    def experts(self, stored):
        same = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "hidden_size": 32, "vocab_size": 256,
                "num_experts": 3, "num_experts_per_tok": 3, "moe_intermediate_size": 16, "intermediate_size": 8, "rms_norm_eps": 1e-5}
        theirs = Qwen3MoeForCausalLM(Qwen3MoeConfig(**same, rope_parameters={"rope_theta": 10000.0, "rope_type": "default"}, mlp_only_layers=[],
                                                    norm_topk_prob=True, initializer_range=0.1, pad_token_id=None))
        theirs.config._experts_implementation = "eager"
        data, batches = self.text(12)
        self.compare("qwen_moe.c", theirs, same, data, batches(0), lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens).logits.flatten(0, 1).float(), targets.flatten()), stored=stored)


if __name__ == "__main__":
    unittest.main()
