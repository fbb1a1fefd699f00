"""The picture of a report is whole XML: a row a job, each mark where its ratio is, between the ends of its spread, and header and names as
they are, whatever is in them."""

import sys
import unittest
import xml.etree.ElementTree as tree

import plot

SVG = "{http://www.w3.org/2000/svg}"


def result(medians, mins):
    return {"median_ms": sorted(medians)[len(medians) // 2], "min_ms": min(mins), "round_medians_ms": medians, "round_mins_ms": mins}


REPORT = {
    "machine": "A <machine> & more", "threads": 2, "rounds": 3, "versions": {"oneDNN": "2.6.3", "torch": "2.15"},
    "jobs": {
        "tiny": {"ours": result([10, 12, 11], [9, 10, 9.5]), "eager": result([20, 30, 22], [18, 25, 20]),
                 "ratio": {"min": 0.5, "median": 0.5, "median_by_round": [0.5, 0.4, 0.5]}, "limit": {"median_by_round": [1.25, 2, 1.6]}},
        "alone": {"ours": result([10], [9])},
        "slower": {"ours": result([30], [28]), "eager": result([20], [18]),
                   "ratio": {"min": 28 / 18, "median": 1.5, "median_by_round": [1.5]}},
    },
}


class Plot(unittest.TestCase):
    def setUp(self):
        self.root = tree.fromstring(plot.picture(REPORT))
        self.words = [node.text for node in self.root.iter(SVG + "text")]

    def test_header(self):
        self.assertIn("A <machine> & more, 2 threads, 3 interleaved rounds", self.words)
        self.assertIn("oneDNN 2.6.3, torch 2.15", self.words)
        for name in REPORT["jobs"]:
            self.assertIn(name, self.words)

    def test_marks(self):
        self.assertEqual(plot.marks(REPORT["jobs"]["tiny"])["median"], (0.5, 0.4, 0.5))
        self.assertEqual(plot.marks(REPORT["jobs"]["tiny"])["minimum"], (0.5, 0.4, 0.5))
        self.assertEqual(plot.marks(REPORT["jobs"]["tiny"])["limit"], (1 / 1.6, 1 / 2, 1 / 1.25))
        self.assertEqual(plot.marks(REPORT["jobs"]["alone"]), {})

    def test_positions(self):
        circles = [node for node in self.root.iter(SVG + "circle") if float(node.get("cy")) < float(self.root.get("height")) - 40]
        bars = [node for node in self.root.iter(SVG + "line") if node.get("stroke-width")]
        self.assertEqual(len(circles), 5)
        one = next(float(node.get("x1")) for node in self.root.iter(SVG + "line") if node.get("stroke") == "#c22")
        for circle, bar in zip(circles, bars):
            x = float(circle.get("cx"))
            self.assertTrue(float(bar.get("x1")) <= x <= float(bar.get("x2")))
            self.assertEqual(circle.get("cy"), bar.get("y1"))
        after = [float(circle.get("cx")) > one for circle in circles]
        self.assertEqual(after, [False, False, False, True, True])
        self.assertTrue(all(0 <= float(c.get("cx")) <= plot.WIDTH for c in circles))


if __name__ == "__main__":
    sys.exit(unittest.main())
