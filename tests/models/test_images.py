"""examples/models/resnet.c against its class of transformers, in training: batch norm sees the batch, and what it keeps of it
comes out the same."""

import unittest

from peer import Images, drawn
from transformers import ResNetConfig, ResNetForImageClassification


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


if __name__ == "__main__":
    unittest.main()
