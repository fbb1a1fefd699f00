"""examples/models/resnet.c against its class of transformers, in training: batch norm sees the batch, and what it keeps of it
comes out the same; and convnext.c and swin.c against theirs."""

import unittest

from peer import Images, drawn
from transformers import (ConvNextConfig, ConvNextForImageClassification, ResNetConfig, ResNetForImageClassification, SwinConfig,
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
        ours = {"num_channels": channels, "patch_size": patch, "image_size": 16 * patch, "num_labels": classes, **listed(**lists)}
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


if __name__ == "__main__":
    unittest.main()
