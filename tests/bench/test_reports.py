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

    def test_prediction(self):
        step = {"predicted_step": {"seconds": 0.011, "estimated": 0.002}}
        with mock.patch.object(tables, "plan", lambda job, table, folder: step):
            predicted = tables.prediction([], "table", 10.0)
            self.assertAlmostEqual(predicted["off"], 0.1)
            self.assertIn("11 ms (2.0 of it by the rates of other kernels); measured 10, off by +10.0 %",
                          tables.prediction_text(predicted, 10.0))
        with mock.patch.object(tables, "plan", lambda job, table, folder: {}):
            self.assertIsNone(tables.prediction([], "table", 10.0))


class Roofline(unittest.TestCase):
    def test_kinds(self):
        for kernel, kind in (("matmul_12x64x128x512_2", "matmul"), ("layer_norm_backward_3x4x8", "layer_norm_backward"),
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
