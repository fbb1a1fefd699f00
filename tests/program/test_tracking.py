"""Files of trackers, opened by the tools themselves: every number of metrics.jsonl at its step, what hooks log, the job's keys;
of runs that end, are killed at any moment, and are resumed, also from before their last line."""

import csv
import io
import json
import math
import os
import random
import re
import shutil
import subprocess
import unittest
import warnings
from unittest import mock

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["WANDB_MODE"] = "offline"
os.environ["COMET_DISABLE_AUTO_LOGGING"] = "1"
warnings.simplefilter("ignore")

import numpy as np
import yaml
from clearml.backend_api.services import tasks
from clearml.backend_interface.metrics.interface import Metrics
from comet_ml.offline import OfflineSender, unzip_offline_archive
from harness import TIMES, Trainer
from matrix import mlp
from mlflow import MlflowClient
from PIL import Image
from rotation import rotating
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.plugins.hparams import metadata as hparams
from trackio import sqlite_storage
from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal.datastore import DataStore

ALL = ("csv", "tensorboard", "wandb", "mlflow", "dvclive", "trackio", "comet_ml", "clearml")
SMALL = ALL[:5]  # whose files begin with less than 8 KiB
HOOKS = r"""#include <accel/hooks.h>
#include <accel/tracking.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
static bool is_step(const char *name, const struct accel_progress *at) {
  const char *text = getenv(name);
  return text != NULL && atoi(text) == at->step;
}
void on_step(struct accel_run *run, const struct accel_progress *at) {
  struct rlimit room;
  if ((is_step("FULL_AT", at) || is_step("ROOM_AT", at)) && getrlimit(RLIMIT_FSIZE, &room) == 0) {
    room.rlim_cur = is_step("FULL_AT", at) ? 8192 : room.rlim_max;
    setrlimit(RLIMIT_FSIZE, &room);
  }
  if (is_step("FAIL_AT", at)) accel_log_image(run, "none", NULL, 0, 0, 1);
  const unsigned char pixels[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, (unsigned char)at->step, 7, 9};
  char text[64];
  int64_t count = 0;
  const float *bias = accel_weight_of(run, "output.bias", &count), odd[5] = {1, NAN, 3, -INFINITY, 1};
  snprintf(text, sizeof text, "step %d: \"quoted\", \xc3\xa4", (int)at->step);
  accel_log(run, "bias", (double)bias[0]);
  if (at->step > 3) accel_log(run, "odd, \"name\"", 0.5 * (double)at->step);
  if (at->step % 4 != 0) return;
  accel_log_text(run, "sample/text", text);
  accel_log_image(run, "sample/image", pixels, 2, 2, 3);
  accel_log_histogram(run, "weights/bias", bias, (size_t)count);
  accel_log_histogram(run, "odd", odd, 5);
}
"""


def prepare(test, hooks="on_step", log_with=("all",), steps=12, checkpoint=None, **groups):
    tracking = {"log_with": list(log_with), "every": 1, "project": "digits", "run_name": "first one", "tags": ["a b", "c"]}
    case = mlp("tracking", training={"steps": steps, "eval_interval": 5, "eval_iters": "all"}, checkpoint={"every": 4, "resume": "auto", **(checkpoint or {})},
               tracking=tracking, hooks={"source": "hooks.c", hooks: hooks}, **groups)
    trainer = Trainer(case.job)
    test.addCleanup(shutil.rmtree, trainer.folder)
    case.write_data(trainer.folder)
    (trainer.folder / "hooks.c").write_text(HOOKS)
    trainer.build()
    return trainer


def metrics(folder):
    """Of each step its numbers; a step has one line."""
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
    return {row.pop("step"): row for row in rows}


def read_csv(folder):
    text = (folder / "run" / "metrics.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text), strict=True)) if text else []
    assert all(None not in row and None not in row.values() for row in rows)  # as wide as the header
    assert [int(row["step"]) for row in rows] == sorted({int(row["step"]) for row in rows})
    return {int(row.pop("step")): {name: float(value) for name, value in row.items() if value} for row in rows}


def event_file(folder):
    files = list((folder / "run" / "tensorboard").rglob("*tfevents*"))
    assert len(files) == 1 and files[0].parent.name == "first one", files
    return files[0]


def open_tensorboard(folder):
    events = event_accumulator.EventAccumulator(str(event_file(folder).parent), size_guidance={key: 0 for key in event_accumulator.DEFAULT_SIZE_GUIDANCE})
    return events.Reload()


def read_tensorboard(folder):
    events = open_tensorboard(folder)
    found = {}
    for tag in events.Tags()["scalars"]:
        for event in events.Scalars(tag):
            assert tag not in found.setdefault(event.step, {}), (tag, event.step)
            found[event.step][tag] = event.value
    return found


def run_id(folder):
    """Of the newest run: those that were killed before their first checkpoint have others, and folders of their own."""
    return json.loads((folder / "run" / "tracking.json").read_text())["id"]


def wandb_records(folder):
    path, = (folder / "run" / "wandb").glob(f"offline-run-*/run-{run_id(folder)[:8]}.wandb")
    store, records = DataStore(), []
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        records.append(wandb_internal_pb2.Record.FromString(data))
    store.close()
    assert [record.num for record in records] == list(range(1, len(records) + 1))
    return records


def wandb_rows(folder):
    rows = [{item.nested_key[0]: json.loads(item.value_json) for item in record.history.item} | {"step": record.history.step.num}
            for record in wandb_records(folder) if record.HasField("history")]
    assert all(row["step"] == row["_step"] for row in rows)
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
    return {row.pop("step"): row for row in rows}


def read_wandb(folder):
    return {step: {name: value for name, value in row.items() if isinstance(value, (int, float)) and name[0] != "_"}
            for step, row in wandb_rows(folder).items()}


def plain(name):
    return re.sub(r"[^A-Za-z0-9_.\- ]", "_", name.replace("/", "."))


def mlflow_run(folder):
    client = MlflowClient(tracking_uri=str(folder / "run" / "mlruns"))
    experiment = client.get_experiment_by_name("digits")
    runs = client.search_runs([experiment.experiment_id])
    return client, next(run for run in runs if run.info.run_id == run_id(folder))


def read_mlflow(folder):
    client, run = mlflow_run(folder)
    found = {}
    for name in run.data.metrics:
        for metric in client.get_metric_history(run.info.run_id, name):
            assert name not in found.setdefault(metric.step, {}), (name, metric.step)
            found[metric.step][name] = metric.value
    return found


def read_dvclive(folder):
    found = {}
    live = folder / "run" / "dvclive" / "first one"
    for path in (live / "plots" / "metrics").glob("*.tsv"):
        with open(path) as file:
            for row in csv.DictReader(file, delimiter="\t", strict=True):
                assert path.stem not in found.setdefault(int(row["step"]), {}), path
                found[int(row["step"])][path.stem] = float(row[path.stem])
    if found and (live / "metrics.json").exists():  # between a resume and its first line it may not be there
        newest = json.loads((live / "metrics.json").read_text())
        assert newest.pop("step") in found  # written after the tables: of a run that was killed in between, it has what was the newest before
    assert yaml.safe_load((live / "params.yaml").read_text())["optimizer.name"] == "adamw"
    return found


def trackio_rows(folder):
    """Of each step what Trackio shows of it, in its own order."""
    sqlite_storage.TRACKIO_DIR = folder / "run" / "trackio"
    rows = sqlite_storage.SQLiteStorage.get_logs("digits", "first one", run_id=run_id(folder))
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
    return {row.pop("step"): row for row in rows}


def read_trackio(folder):
    return {step: {name: value for name, value in row.items() if isinstance(value, (int, float))} for step, row in trackio_rows(folder).items()}


def comet_sent(folder):
    """What `comet upload` would send of the archive: its calls, by name, with what it was given."""
    sent, unzipped = mock.Mock(), unzip_offline_archive(str(folder / "run" / "comet" / f"{run_id(folder)}.zip"))
    try:
        sender = OfflineSender("key", unzipped, raise_validation_error_for_tests=True, connection=sent.connection, rest_api_client=sent.client)
        sender.customer_error_reported = sender.customer_error_reported and sent.failed()
        sender._send_messages()
    finally:
        shutil.rmtree(unzipped)
    sent.client.update_experiment_error_status.assert_not_called()
    return sent, sender


def read_comet(folder):
    found = {}
    for call in comet_sent(folder)[0].connection.log_metrics_batch.call_args_list:
        for item in call.kwargs["items"]:
            metric = item.message.metric
            row = found.setdefault(metric["step"], {})
            assert metric["metricName"] not in row, metric
            row[metric["metricName"]] = metric["metricValue"]
    return found


def clearml_session(folder):
    return folder / "run" / "clearml" / f"offline-{run_id(folder)}"


def clearml_sent(folder):
    """The events that an import of the session reports."""
    session = mock.Mock()
    Metrics.report_offline_session(mock.Mock(id="new"), clearml_session(folder), remote_url="none", session=session,
                                   only_with_id=json.loads((clearml_session(folder) / "task.json").read_text())["id"])
    return [event for call in session.send.call_args_list for event in call.args[0].requests]


def read_clearml(folder):
    found = {}
    for event in clearml_sent(folder):
        if event["type"] == "training_stats_scalar":
            name = event["variant"] if event["metric"] == event["variant"] else f"{event['metric']}/{event['variant']}"
            assert name not in found.setdefault(event["iter"], {}) and event["task"] == "new", event
            found[event["iter"]][name] = event["value"]
    return found


READERS = {"csv": read_csv, "tensorboard": read_tensorboard, "wandb": read_wandb, "mlflow": read_mlflow, "dvclive": read_dvclive,
           "trackio": read_trackio, "comet_ml": read_comet, "clearml": read_clearml}
PLAIN = ("mlflow", "dvclive")  # whose names are those of files


class Tracking(unittest.TestCase):
    def compare(self, folder, tools=ALL):
        """Every tool has what metrics.jsonl has, and no more."""
        expected = metrics(folder)
        for tool in tools:
            with self.subTest(tool):
                found = READERS[tool](folder)
                self.assertEqual(sorted(found), sorted(expected))
                if tool == "dvclive":
                    newest = json.loads((folder / "run" / "dvclive" / "first one" / "metrics.json").read_text())
                    self.assertEqual(newest["step"], max(expected))
                for step, row in expected.items():
                    row = {plain(name): value for name, value in row.items()} if tool in PLAIN else row
                    self.assertEqual(sorted(found[step]), sorted(row), step)
                    for name, value in row.items():
                        self.assertTrue(math.isclose(found[step][name], value, rel_tol=1e-6, abs_tol=0.051 * (name in TIMES)), (step, name, value, found[step]))
        return expected

    def test_open(self):
        trainer = prepare(self)
        trainer.run()
        rows = self.compare(trainer.folder)
        self.assertEqual(len(rows), 12)
        self.assertIn("odd, \"name\"", rows[4])
        self.check_tensorboard(open_tensorboard(trainer.folder))
        self.check_wandb(trainer)
        self.check_mlflow(trainer)
        self.check_trackio(trainer.folder)
        self.check_comet(trainer.folder)
        self.check_clearml(trainer.folder)

    def check_wandb(self, trainer):
        records = wandb_records(trainer.folder)
        run = records[1].run
        config = {item.key: json.loads(item.value_json) for item in run.config.update}
        self.assertEqual((run.project, run.display_name, list(run.tags)), ("digits", "first one", ["a b", "c"]))
        self.assertEqual((config["training.steps"], config["optimizer.name"], config["data.shuffle"]), (12, "adamw", True))
        self.assertEqual((records[-1].HasField("exit"), records[-1].exit.exit_code), (True, 0))
        rows = wandb_rows(trainer.folder)
        self.assertEqual(rows[8]["sample/text"], 'step 8: "quoted", ä')
        self.assertEqual((sum(rows[4]["odd"]["values"]), rows[4]["odd"]["bins"][0], rows[4]["odd"]["bins"][-1]), (3, 1, 3))

    def check_trackio(self, folder):
        rows = trackio_rows(folder)
        store = sqlite_storage.SQLiteStorage
        self.assertEqual([(run["name"], run["id"]) for run in store.get_run_records("digits")], [("first one", run_id(folder))])
        config = store.get_run_config("digits", "first one", run_id=run_id(folder))
        self.assertEqual((config["training.steps"], config["optimizer.name"], config["data.shuffle"]), (12, "adamw", True))
        self.assertEqual(rows[8]["sample/text"], {"_type": "trackio.markdown", "_value": 'step 8: "quoted", ä'})
        odd = rows[4]["odd"]
        self.assertEqual((odd["_type"], sum(odd["values"]), odd["bins"][0], odd["bins"][-1], len(odd["bins"])), ("trackio.histogram", 3, 1, 3, 65))
        image = rows[12]["sample/image"]
        pixels = np.asarray(Image.open(folder / "run" / "trackio" / "media" / image["file_path"]))
        self.assertEqual((image["_type"], pixels.tolist()), ("trackio.image", [[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [12, 7, 9]]]))
        self.assertEqual(rows[12]["timestamp"][10:11] + rows[12]["timestamp"][-6:], "T+00:00")
        store.migrate_all_projects()  # as `trackio show` begins: nothing is lost
        self.assertEqual(trackio_rows(folder), rows)

    def check_comet(self, folder):
        sent, sender = comet_sent(folder)
        self.assertEqual((sender.metadata["project_name"], sender.experiment_id, sender.tags), ("digits", run_id(folder), ["a b", "c"]))
        self.assertGreater(sender.stop_time, sender.start_time)
        self.assertFalse(sender.customer_error_reported)
        sent.client.log_experiment_other.assert_called_once_with(experiment_key=run_id(folder), key="Name", value="first one")
        items = [item.message for call in sent.connection.log_parameters_batch.call_args_list for item in call.kwargs["items"]]
        config = {message.param["paramName"]: message.param["paramValue"] for message in items}
        self.assertEqual((config["training.steps"], config["optimizer.name"], config["data.shuffle"]), (12, "adamw", True))

    def check_clearml(self, folder):
        task = json.loads((clearml_session(folder) / "task.json").read_text())
        fields = tasks.EditRequest._get_data_props()
        edit = tasks.EditRequest(task="new", **{name: value for name, value in task.items() if name in fields and name not in ("id", "project")})
        self.assertEqual((edit.name, edit.tags, edit.type.value, task["project_name"]), ("first one", ["a b", "c"], "training", "digits"))
        config = {name: item["value"] for name, item in task["hyperparams"]["job"].items()}
        self.assertEqual((config["training.steps"], config["optimizer.name"], config["data.shuffle"]), ("12", "adamw", "true"))
        plots = [(event["iter"], json.loads(event["plot_str"])) for event in clearml_sent(folder) if event["type"] == "plot" and event["metric"] == "odd"]
        self.assertEqual([step for step, _ in plots], [4, 8, 12])
        bars = plots[0][1]["data"][0]
        self.assertEqual((bars["type"], sum(bars["y"]), len(bars["x"]), round(bars["x"][0], 6)), ("bar", 3, 64, round(1 + 1 / 64, 6)))

    def test_importers(self):
        """Tools that import what others read are written for those."""
        trainer = prepare(self, log_with=["swanlab", "aim"])
        self.assertIn("{&accel_sink_wandb, &accel_sink_mlflow}", trainer.generate())

    def check_mlflow(self, trainer):
        _, run = mlflow_run(trainer.folder)
        self.assertEqual((run.info.run_name, run.info.status, run.data.tags["tags"]), ("first one", "FINISHED", "a b, c"))
        self.assertEqual((run.data.params["training.steps"], run.data.params["optimizer.name"]), ("12", "adamw"))
        self.assertGreater(run.info.end_time, run.info.start_time)

    def check_tensorboard(self, events):
        biases = events.Histograms("weights/bias")
        self.assertEqual([event.step for event in biases], [4, 8, 12])
        odd = events.Histograms("odd")[0].histogram_value
        self.assertEqual((odd.min, odd.max, odd.num, odd.sum, odd.sum_squares), (1, 3, 3, 5, 11))
        self.assertEqual(odd.bucket_limit[-1], 3)
        counts, _ = np.histogram([1, 3, 1], 64)
        self.assertEqual(list(odd.bucket), list(counts))
        self.assertEqual([(event.step, event.tensor_proto.string_val[0].decode()) for event in events.Tensors("sample/text")],
                         [(step, f'step {step}: "quoted", ä') for step in (4, 8, 12)])
        for event in events.Images("sample/image"):
            pixels = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
            self.assertEqual(pixels.tolist(), [[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [event.step, 7, 9]]])
        self.assertEqual(len(events.Images("sample/image")), 3)
        tags = events.PluginTagToContent("hparams")
        start = hparams.parse_session_start_info_plugin_data(tags["_hparams_/session_start_info"])
        values = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
        self.assertEqual((values["training.steps"], values["optimizer.name"], values["data.shuffle"]), (12, "adamw", True))
        end = hparams.parse_session_end_info_plugin_data(tags["_hparams_/session_end_info"])
        self.assertEqual((end.status, end.end_time_secs > start.start_time_secs), (1, True))

    def test_a_second_run_begins_anew(self):
        trainer = prepare(self, log_with=ALL)
        trainer.run()
        shutil.rmtree(trainer.folder / "run" / "checkpoints")
        for tool in ("wandb", "mlruns"):  # each run has a folder of its own there
            shutil.rmtree(trainer.folder / "run" / tool)
        trainer.run("--steps", "6")
        self.assertEqual(max(self.compare(trainer.folder)), 6)

    def test_a_run_goes_on(self):
        """Its end, and what it logged after the checkpoint, are gone from the files of the run that resumes it."""
        trainer = prepare(self)
        trainer.run("--steps", "6")
        newest = max((trainer.folder / "run" / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1]))
        shutil.rmtree(newest)
        self.assertIn(6, self.compare(trainer.folder))
        trainer.run()
        self.assertIn("step 4\n", trainer.output)
        self.assertEqual(len(self.compare(trainer.folder)), 12)

    def test_killed(self):
        """At any moment: what was written opens, and the run that resumes has each step once."""
        trainer = prepare(self, steps=40)
        draw = random.Random(int(os.environ.get("SEED", 1)))
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        killed = 0
        for _ in range(12):
            process = subprocess.Popen([trainer.folder / "trainer"], cwd=trainer.folder, stdout=subprocess.DEVNULL, env=environment)
            try:
                process.wait(draw.uniform(0.02, 0.15))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
            process.wait()
            if not (trainer.folder / "run" / "metrics.jsonl").exists():
                continue
            for tool in ALL:
                found = READERS[tool](trainer.folder) if self.is_there(trainer, tool) else {}
                self.assertEqual(sorted(found), list(range(1, len(found) + 1)), tool)
        self.assertGreater(killed, 0)
        trainer.run()
        self.assertEqual(len(self.compare(trainer.folder)), 40)

    def test_folders_that_cannot_be_written(self):
        """One message before the first step, and no file of a tool that could not begin."""
        trainer = prepare(self, log_with=["tensorboard"])
        (trainer.folder / "run").mkdir()
        (trainer.folder / "run" / "tensorboard").write_text("a file")
        ended = subprocess.run([trainer.folder / "trainer"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"\Aerror: \S+/run/tensorboard: .*\n")
        self.assertNotIn("loss", ended.stdout)

    def test_a_full_disk_ends_the_run(self):
        """With a message; what was written opens, and the run that resumes when there is room has each step once."""
        trainer = prepare(self, steps=60, log_with=SMALL)
        limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "sh", trainer.folder / "trainer"]
        ended = subprocess.run(limited, cwd=trainer.folder, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"cannot be written: File too large")
        for tool in SMALL:
            found = READERS[tool](trainer.folder)
            self.assertEqual(sorted(found), list(range(1, len(found) + 1)), tool)
        trainer.run()
        self.assertEqual(len(self.compare(trainer.folder, SMALL)), 60)

    def test_a_full_disk_that_gets_room(self):
        """The run warns and trains on; what waited is written when there is room, and then each step is there once."""
        trainer = prepare(self, steps=60, log_with=ALL, checkpoint={"on_save_error": "continue"})
        ended = self.start(trainer, FULL_AT="1", ROOM_AT="50")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, r"warning: \S+/metrics.jsonl: cannot be written: File too large; the run continues")
        self.assertEqual(len(self.compare(trainer.folder)), 60)
        events = open_tensorboard(trainer.folder)
        self.assertEqual([event.step for event in events.Images("sample/image")], list(range(4, 61, 4)))

    def test_an_error_ends_the_run(self):
        """The tools say so; the run that resumes takes it back."""
        trainer = prepare(self)
        ended = self.start(trainer, FAIL_AT="7")
        self.assertEqual((ended.returncode, "0 x 0 pixels" in ended.stderr), (1, True), ended.stderr)
        self.assertEqual(list(self.compare(trainer.folder)), list(range(1, 7)))
        self.assertEqual(self.ends(trainer.folder), ("FAILED", 1, 2))
        trainer.run()
        self.assertEqual(len(self.compare(trainer.folder)), 12)
        self.assertEqual(self.ends(trainer.folder), ("FINISHED", 0, 1))

    def ends(self, folder):
        """What MLflow, W&B and TensorBoard have of the run's end, which is there once."""
        events = event_file(folder).read_bytes()
        self.assertEqual(events.count(b"_hparams_/session_end_info"), 1)
        end = hparams.parse_session_end_info_plugin_data(open_tensorboard(folder).PluginTagToContent("hparams")["_hparams_/session_end_info"])
        exits = [record.exit.exit_code for record in wandb_records(folder) if record.HasField("exit")]
        self.assertEqual(len(exits), 1)
        return mlflow_run(folder)[1].info.status, exits[0], end.status

    def start(self, trainer, **environment):
        return subprocess.run([trainer.folder / "trainer"], cwd=trainer.folder, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "OMP_NUM_THREADS": "1", **environment})

    def interrupted(self):
        """A run that resumes from step 4, and a copy of its folder; of each of its files the path."""
        trainer = prepare(self, log_with=ALL)
        trainer.run("--steps", "6")
        run = trainer.folder / "run"
        shutil.rmtree(max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("_")[1])))
        shutil.copytree(run, trainer.folder / "copy")
        files = [run / "metrics.jsonl", run / "metrics.csv", event_file(trainer.folder), *run.glob("wandb/*/run-*.wandb"),
                 *run.glob("mlruns/*/*/metrics/loss"), *run.glob("dvclive/*/plots/metrics/loss.tsv")]
        self.assertEqual(len(files), 6)
        return trainer, files

    def restore(self, trainer):
        shutil.rmtree(trainer.folder / "run")
        shutil.copytree(trainer.folder / "copy", trainer.folder / "run")
        (trainer.folder / "run" / "mlruns" / ".trash").mkdir(exist_ok=True)  # MLflow made it once, and wants to find it again

    def refuse(self, trainer, path, message):
        """One message, no step, and the file stays as it is; without it the run goes on."""
        content = path.read_bytes() if path.is_file() else None
        with self.subTest(path.name, message=message):
            ended = self.start(trainer)
            self.assertEqual((ended.returncode, "loss" in ended.stdout), (1, False), ended.stderr)
            self.assertRegex(ended.stderr, rf"\Aerror: {re.escape(str(path))}: {message}.*\n    help: .*\n\Z")
            self.assertEqual(content, path.read_bytes() if path.is_file() else None)
            path.unlink()
            trainer.run()
            self.assertEqual(max(metrics(trainer.folder)), 12)
        self.restore(trainer)

    def test_damaged_files(self):
        """What is after the damage would be lost, so the run ends before it cuts the file."""
        trainer, (_, table, events, wandb, _, _) = self.interrupted()
        run = trainer.folder / "run"
        database, archive = run / "trackio" / "digits.db", run / "comet" / f"{run_id(trainer.folder)}.zip"
        for path, at in ((events, 100), (events, 8), (wandb, 500), (wandb, 3), (table, 0), (database, 1), (archive, 500), (archive, -6)):
            content = bytearray(path.read_bytes())
            content[at] ^= 0x55
            path.write_bytes(content)
            self.refuse(trainer, path, r"is damaged( at byte \d+)?: ")
        identity = trainer.folder / "run" / "tracking.json"
        ident = run_id(trainer.folder)
        for text in ("", "{", '{"id": "../../../../../../../../../../aaaa", "began": 1.5}', f'{{"id": "{ident}", "began": 1e300}}',
                     f'{{"id": "{ident}", "began": -1.5}}', f'{{"id": "{ident}"}}', " " * 5000 + identity.read_text()):
            identity.write_text(text)
            self.refuse(trainer, identity, "is damaged")

    def test_files_that_are_not_whole(self):
        """What a process or a machine leaves that ends while it writes is cut off, and no more."""
        trainer, files = self.interrupted()
        for tail in (b"\0" * 9000, b"\x30\0\0", None):
            for path in files:
                whole = path.read_bytes()
                path.write_bytes(whole[:-3] if tail is None else whole + tail)
            trainer.run()
            self.assertEqual(len(self.compare(trainer.folder)), 12)
            self.restore(trainer)

    def test_pipes_and_links(self):
        """A run does not wait for a pipe. It continues a file that was moved away through a link to it, and replaces others by name."""
        trainer, files = self.interrupted()
        other, away = trainer.folder / "other", trainer.folder / "away"
        for path in [*files, trainer.folder / "run" / "tracking.json", trainer.folder / "run" / "trackio" / "digits.db"]:
            path.unlink()
            os.mkfifo(path)
            self.refuse(trainer, path, r"cannot be read: not a regular file")
        away.mkdir()
        for number, path in enumerate(files):
            path.rename(away / str(number))
            path.symlink_to(away / str(number))
        other.write_text("mine")
        for name in ("metrics.json.partial", "params.yaml.partial"):
            (trainer.folder / "run" / "dvclive" / "first one" / name).symlink_to(other)
        trainer.run()
        self.assertEqual(len(self.compare(trainer.folder)), 12)
        self.assertEqual([path for path in files if not path.is_symlink()], [])
        self.assertEqual(other.read_text(), "mine")

    def is_there(self, trainer, tool):
        if not (trainer.folder / "run" / "tracking.json").exists():
            return False
        ident = run_id(trainer.folder)
        names = {"csv": "metrics.csv", "tensorboard": "*tfevents*", "wandb": f"run-{ident[:8]}.wandb", "mlflow": f"mlruns/*/{ident}/meta.yaml",
                 "dvclive": "params.yaml", "trackio": "digits.db",
                 "comet_ml": f"comet/{ident}.zip", "clearml": f"offline-{ident}/metrics.jsonl"}
        return any(path.is_file() for path in (trainer.folder / "run").rglob(names[tool]))


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
