"""Run logs in TensorBoard, read back by TensorBoard, and TensorBoard's scalars as a run log."""
import json
import math
import pathlib
import tempfile
import unittest
from unittest import mock

from support import need_tool, program, request

need_tool("tensorboard")
import ganymede  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard.compat.proto.event_pb2 import Event  # noqa: E402
from tensorboard.compat.proto.summary_pb2 import Summary  # noqa: E402
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: E402

HEAD = {"schema": "ganymede.run-log/1", "model": "dcgan-64", "gpus": 1, "batch": 64, "steps": 100, "unix_s": 1000.0}


class Board(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.files = 0
        self.log, self.board = self.folder / "run.jsonl", self.folder / "board"

    def write_log(self, *lines, rest=""):
        self.log.write_text("".join(json.dumps(line) + "\n" for line in (HEAD, *lines)) + rest)

    def scalars(self):
        events = EventAccumulator(str(self.board), size_guidance={"scalars": 0})
        events.Reload()
        return {tag: [(one.step, one.wall_time, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}

    def add_scalars(self, tag, values):
        """As SummaryWriter.add_scalar of PyTorch writes them; values are (step, Unix time, value)."""
        self.files += 1
        with mock.patch("time.time", return_value=1000.0):  # a run begins when its writer does
            writer = EventFileWriter(str(self.board), filename_suffix=f".{self.files}")
        for step, now, value in values:
            writer.add_event(Event(wall_time=now, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
        writer.close()

    def test_a_log_becomes_scalars(self):
        self.write_log({"step": 10, "unix_s": 1004.0, "losses": {"generator": 1.5, "discriminator": None}},
                       {"pause": "evaluation", "seconds": 2.0, "step": 10, "unix_s": 1006.0},
                       {"quality": {"fid": 48.5, "reference": "x 256"}, "step": 10, "unix_s": 1006.0},
                       {"step": 20, "unix_s": 1010.0, "losses": {"generator": 1.25, "discriminator": 0.5}})
        ganymede.tensorboard.write(self.log, self.board)
        found = self.scalars()
        self.assertEqual(found["loss/generator"], [(10, 1004.0, 1.5), (20, 1010.0, 1.25)])
        self.assertTrue(math.isnan(found["loss/discriminator"][0][2]))
        self.assertEqual(found["pause/evaluation"], [(10, 1006.0, 2.0)])
        self.assertEqual(found["quality/fid"], [(10, 1006.0, 48.5)])
        # 10 steps of 64 images in 4 s; then 6 s, of which the pause took 2.
        self.assertEqual(found["images_per_second"], [(10, 1004.0, 160.0), (20, 1010.0, 160.0)])

    def test_a_growing_log_is_written_again(self):
        first = {"step": 10, "unix_s": 1004.0, "losses": {"generator": 1.5}}
        self.add_scalars("mine", [(1, 1000.0, 3.0)])
        self.write_log(first, rest='{"step": 20, "uni')
        ganymede.tensorboard.write(self.log, self.board)
        self.write_log(first, {"step": 20, "unix_s": 1009.0, "losses": {"generator": 1.0}})
        ganymede.tensorboard.write(self.log, self.board)
        found = self.scalars()
        self.assertEqual([step for step, _, _ in found["loss/generator"]], [10, 20])
        self.assertEqual(found["mine"], [(1, 1000.0, 3.0)])

    def test_a_training_of_the_program(self):
        program("train", "--model", "mlp-gan", "--steps", 3, "--batch", 4, "--metrics", self.log)
        ganymede.tensorboard.write(self.log, self.board)
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        expected = [(line["step"], line["losses"]["generator"]) for line in lines if "losses" in line]
        self.assertGreater(len(expected), 0)
        for (step, _, value), (of, loss) in zip(self.scalars()["loss/generator"], expected):
            self.assertEqual(step, of)
            self.assertAlmostEqual(value, loss, places=6)

    def test_scalars_are_followed_beside_a_plan(self):
        plan = ganymede.plan(request())
        self.add_scalars("Loss/D", [(step, 1000 + 2.0 * step, 0.5) for step in range(1, 41)])
        self.add_scalars("epoch", [(1, 1050.0, 1.0)])
        ganymede.tensorboard.read(self.board, self.log, steps=100, batch=64)
        now = ganymede.watch(plan, self.log)
        self.assertEqual((now.state, now.steps_done, now.steps), ("running", 40, 100))
        self.assertLess(abs(now.step_seconds / 2.0 - 1), 0.02)
        self.assertEqual(json.loads(self.log.read_text().splitlines()[1])["losses"], {"Loss/D": 0.5, "epoch": 1.0})
        self.add_scalars("Loss/D", [(100, 1200.0, math.nan)])
        ganymede.tensorboard.read(self.board, self.log, steps=100, batch=64, tag="Loss/D")
        self.assertEqual(ganymede.watch(plan, self.log).state, "finished")

    def test_what_is_wrong_is_said(self):
        self.board.mkdir()
        self.add_scalars("loss", [(500, 1000.0, 1.0)])
        self.log.write_text('{"schema": "ganymede.plan/1"}\n')
        for call, text in ((lambda: ganymede.tensorboard.write(self.log, self.board), "run.jsonl: line 1: expected a ganymede"),
                           (lambda: ganymede.tensorboard.read(self.folder, self.log, steps=9, batch=1), "found no scalar"),
                           (lambda: ganymede.tensorboard.read(self.board, self.log, steps=9, batch=1, tag="g"),
                            "found no scalar g, expected one of loss"),
                           (lambda: ganymede.tensorboard.read(self.board, self.log, steps=9, batch=1), "found step 500"),
                           (lambda: ganymede.tensorboard.read(self.board, self.log, steps=0, batch=1), "steps=0")):
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertIn(text, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
