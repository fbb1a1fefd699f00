"""examples/models/resnet.c against its class of transformers, in training: batch norm sees the batch, and what it keeps of it
comes out the same; and convnext.c, swin.c and clip.c against theirs. Half of
the tests a run (rotation.py)."""

import io
import unittest

import numpy as np
import torch
from peer import MODELS, TRAIN, Images, Order, Trainer, drawn
from rotation import rotating
from safetensors.torch import load_file
from transformers import (CLIPConfig, CLIPModel, ConvNextConfig, ConvNextForImageClassification, ResNetConfig, ResNetForImageClassification, SwinConfig,
                          SwinForImageClassification)


class ResNet(Images):
    BATCH = 10

    def compare(self, layer_type, sizes, depths, size, **more):
        channels, classes = self.random.randint(1, 3), 4
        same = {"num_channels": channels, "embedding_size": self.random.choice([8, 12])}
        theirs = ResNetForImageClassification(ResNetConfig(**same, **more, layer_type=layer_type.lower(), hidden_sizes=sizes, depths=depths,
                                                           num_labels=classes))
        ours = {**same, **more, "layer_type": layer_type, "image_size": size, "num_labels": classes, "stages": len(sizes)}
        for i, (width, depth) in enumerate(zip(sizes, depths)):
            ours |= {f"hidden_sizes.{i}": width, f"depths.{i}": depth}
        self.classifier("resnet.c", theirs, ours, channels, size, classes, training=True)

    @drawn
    def test_basic(self):
        self.compare("BASIC", [8, 16], [1, 4], 16)  # a loop that begins with the second layer

    @drawn
    def test_bottleneck(self):
        self.compare("BOTTLENECK", [16, 32], [2, 1], 20, downsample_in_bottleneck=self.random.choice([True, False]))


def numpy_file(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


class Starts(unittest.TestCase):
    def test_constant(self):
        """A parameter that starts at a number."""
        trainer = Trainer({"model": {"source": str(MODELS / "convnext.c"), "config": {
            "image_size": 32, "num_labels": 2, "layer_scale_init_value": 0.3, **listed(hidden_sizes=[4] * 4, depths=[1] * 4)}},
            "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 3 * 32 * 32, "batch_size": 1, "eval_fraction": 0},
            "optimizer": {"name": "sgd", "lr": 1e-3, "weight_decay": 0,
                          "param_groups": [{"match": "*", "lr_scale": 0}]}, "training": {"steps": 1}})
        (trainer.folder / "rows.csv").write_text(",".join(["0.5"] * 3 * 32 * 32) + ",1\n")
        trainer.build()
        trainer.run()
        scales = [x for name, x in load_file(trainer.folder / "run" / "model.safetensors").items() if name.endswith("layer_scale_parameter")]
        self.assertEqual({float(x) for row in scales for x in row}, {float(np.float32(0.3))})


def listed(**lists):
    """{"depths.0": 2, ...} of {"depths": [2, ...]}."""
    return {f"{name}.{i}": value for name, values in lists.items() for i, value in enumerate(values)}


class ConvNext(Images):
    @drawn
    def test_convnext(self):
        lists = {"hidden_sizes": [self.random.randint(4, 16) for _ in range(4)], "depths": [self.random.randint(1, 3) for _ in range(4)]}
        channels, classes, patch = self.random.randint(1, 3), 4, self.random.randint(1, 2)
        theirs = ConvNextForImageClassification(ConvNextConfig(num_channels=channels, patch_size=patch, image_size=16 * patch, num_labels=classes, **lists,
                                                               layer_scale_init_value=0.5, initializer_range=0.1))
        ours = {"num_channels": channels, "patch_size": patch, "image_size": 16 * patch, "num_labels": classes, "layer_scale_init_value": 0.5, **listed(**lists)}
        self.classifier("convnext.c", theirs, ours, channels, 16 * patch, classes)


class Swin(Images):
    def compare(self, size, window, depths):
        """Tables of distances that are not zero, as they start."""
        heads = [self.random.randint(1, 3) for _ in depths]
        channels, classes, patch = self.random.randint(1, 3), 4, self.random.randint(1, 2)
        width = 6 * self.random.randint(1, 3)
        same = {"num_channels": channels, "patch_size": patch, "image_size": size * patch, "embed_dim": width, "window_size": window,
                "mlp_ratio": self.random.choice([2.0, 4.0])}
        theirs = SwinForImageClassification(SwinConfig(**same, depths=depths, num_heads=heads, num_labels=classes, initializer_range=0.1,
                                                       drop_path_rate=0.0))
        for name, parameter in theirs.named_parameters():
            if name.endswith("bias_table"):
                parameter.data.normal_(std=0.5)
        ours = {**same, "num_labels": classes, "num_layers": len(depths), **listed(depths=depths, num_heads=heads)}
        self.classifier("swin.c", theirs, ours, channels, size * patch, classes)

    @drawn
    def test_swin(self):
        self.compare(8, self.random.choice([2, 4]), [2, 2])

    def test_swin_padded(self):
        """Images that are no multiple of windows, one that is a window, an odd number of patches to merge."""
        self.compare(7, 2, [2, 2, 1])


class Clip(Images):
    @drawn
    def test_clip(self):
        """Images and texts, which end with a token that pads them, too, or with their largest."""
        def tower():
            heads = self.random.randint(1, 3)
            return {"num_hidden_layers": self.random.randint(1, 3), "num_attention_heads": heads, "hidden_size": 4 * heads,
                    "intermediate_size": self.random.randint(5, 30), "hidden_act": self.random.choice(["gelu", "quick_gelu"])}

        length, patch, count, end = self.random.randint(4, 12), self.random.randint(2, 4), 30, self.random.choice([2, 40])
        text = {**tower(), "vocab_size": 50, "max_position_embeddings": length + 2, "eos_token_id": end}
        vision = {**tower(), "image_size": 3 * patch, "patch_size": patch, "num_channels": 2}
        rng = np.random.default_rng(self.random.randrange(2**32))
        images = rng.standard_normal((count, 2, 3 * patch, 3 * patch)).astype(np.float32)
        tokens, last = rng.integers(3, 40, (count, length)), rng.integers(1, length, count)
        tokens[np.arange(length) >= last[:, None]] = 40
        theirs = CLIPModel(CLIPConfig(text_config={**text, "initializer_range": 0.2}, vision_config={**vision, "initializer_range": 0.2},
                                      projection_dim=6))
        ours = {"projection_dim": 6, "text_activation": f"ACTIVATION_{text.pop('hidden_act').upper()}",
                "vision_activation": f"ACTIVATION_{vision.pop('hidden_act').upper()}",
                **{f"text_config.{key}": value for key, value in text.items()}, **{f"vision_config.{key}": value for key, value in vision.items()}}
        order = Order(1, TRAIN, True, 0, count)
        at = lambda n: [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
        data = {"train": {"path": "images.npy", "format": "npy"}, "batch_size": self.BATCH, "eval_fraction": 0,
                "inputs": {"pixel_values": {"shape": [2, 3 * patch, 3 * patch]},
                           "input_ids": {"path": "tokens.npy", "shape": [length], "dtype": "int32", "below": 50}},
                "files": {"images.npy": numpy_file(images), "tokens.npy": numpy_file(tokens.astype(np.int32))}}
        self.check("clip.c", theirs, ours, data, lambda n: (torch.tensor(images[at(n)]), torch.tensor(tokens[at(n)])),
                   lambda model, pixels, ids: model(input_ids=ids, pixel_values=pixels, return_loss=True).loss)


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
