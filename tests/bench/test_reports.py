"""Rows of a report are kept for a run with the same head and no other; the rows of a roofline add up to the step; kinds of kernels are
their names without shapes."""

import json
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

import peers
import roofline
import tables


class Reports(unittest.TestCase):
    def test_resume(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(peers, "versions", lambda: {"accel-gen": "abc"}):
            path = pathlib.Path(folder, "report.json")
            options = types.SimpleNamespace(json=str(path), resume=True, threads=2, rounds=3)
            report = peers.report_of(options, peers="ours")
            self.assertEqual(report["jobs"], {})
            report["jobs"]["tiny"] = {"ours": {"min_ms": 1.5}}
            peers.write_report(options.json, report)
            self.assertEqual([file.name for file in path.parent.iterdir()], ["report.json"])
            self.assertEqual(peers.report_of(options, peers="ours"), report)
            self.assertEqual(peers.report_of(options, peers="ours,eager")["jobs"], {})
            for change in ({"rounds": 2}, {"threads": 1}, {"resume": False}):
                self.assertEqual(peers.report_of(types.SimpleNamespace(**{**vars(options), **change}), peers="ours")["jobs"], {})
            path.write_text(json.dumps({**report, "versions": {"accel-gen": "def"}}))
            self.assertEqual(peers.report_of(options, peers="ours")["jobs"], {})

    def test_limit(self):
        """Medians over medians of the same round, and all over the fastest limit of all rounds."""
        ours = peers.summary(types.SimpleNamespace(skipped=1), [types.SimpleNamespace(steps=steps, first=1, peak=1) for steps in
                                                                ([99, 10, 12, 14], [99, 20, 30, 40])])
        ratios = peers.against_limit(ours, [{"fastest": 8, "median": 10}, {"fastest": 9, "median": 20}])
        self.assertEqual(ratios["median_by_round"], [1.2, 1.5])
        for what, ratio in (("min", 10 / 8), ("median", 1.35), ("median_over_fastest", 21 / 8)):
            self.assertAlmostEqual(ratios[what], ratio)

    def test_prediction(self):
        step = {"predicted_step": {"seconds": 0.011, "estimated": 0.002}}
        with mock.patch.object(tables, "plan", lambda job, table, folder: step):
            ours = {"median_ms": 10.0, "min_ms": 8.8}
            predicted = tables.prediction([], "table", ours)
            self.assertAlmostEqual(predicted["off"], 0.1)
            self.assertAlmostEqual(predicted["off_fastest"], 0.25)
            self.assertIn("11 ms (2.0 of it by the rates of other kernels); off by +10.0 % from the median of 10, by +25.0 % from the fastest, 8.8",
                          tables.prediction_text(predicted, ours))
        with mock.patch.object(tables, "plan", lambda job, table, folder: {}):
            self.assertIsNone(tables.prediction([], "table", ours))


class Roofline(unittest.TestCase):
    def test_kinds(self):
        for kernel, kind in (("matmul_nt_12x64x128x512", "matmul"), ("matmul_12x64x128_2", "matmul"),
                             ("matmul_sum_tn_bf16_9x9", "matmul_sum_bf16"), ("layer_norm_backward_3x4x8", "layer_norm_backward"),
                             ("add_gelu_tanh_3x4x32", "add_gelu_tanh"), ("sum_7", "sum"), ("gradient_norm", "gradient_norm"),
                             ("between parts", "between parts")):
            self.assertEqual(roofline.kind_of(kernel), kind)

    def test_rows(self):
        """Of five steps those in the middle: neither the shortest nor the longest."""
        events = [{"cat": None, "name": "process_name"}]
        for at in (1, 2, 3, 4, 50):
            events += [{"cat": "part", "name": f"matmul_{n}x4", "dur": 1000 * at, "args": {"flop": 8e6, "bytes": 2e6}} for n in (2, 3)]
            events += [{"cat": "part", "name": "between parts", "dur": 500}, {"cat": "step", "name": "step 1", "dur": 2000 * at + 500}]
        rows, step = roofline.rows_of(roofline.steps_of(events), roofline.kind_of)
        self.assertAlmostEqual(step, 6.5)
        self.assertAlmostEqual(sum(row["ms"] for row in rows.values()), step)
        self.assertEqual(set(rows), {"matmul", "between parts"})
        for what, value in (("calls", 2), ("ms", 6), ("flops", 16e6), ("bytes", 4e6)):
            self.assertAlmostEqual(rows["matmul"][what], value)


if __name__ == "__main__":
    sys.exit(unittest.main())
