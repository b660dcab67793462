"""Records the steps of a training loop as a step trace."""
from __future__ import annotations

import contextlib
import datetime
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .._watch import RunLog
from . import _device, _trace
from ._import import Progress, RecordError, load_torch, require_cuda, torch_version
from ._kernels import Kernel
from ._marks import Marks
from ._steps import Hooks, check_models
from ._trace import Recorded, Step

COUNTED_STEPS = 2  # first steps, whose work is counted: the second has all memory of the optimizers
DDP_STEPS = 4  # within which DistributedDataParallel divides gradients anew, in the order in which they are ready
FOLLOWED_STEPS = 8  # in which every gradient is followed, then only the last of each bucket
MAX_WARMUP = 10
PLAIN_STEPS = 100  # timed after the recording, to see what it has cost
OVERHEAD = 0.02  # of a step's time, from which on it is said
STARVED_S = 50e-6  # a GPU that is less behind its host than that at a part's end has waited for launches


class Clock:
    """The host's clock."""

    def __init__(self) -> None:
        self.now: Callable[[], Any] = time.perf_counter

    def seconds(self, begin: Any, end: Any) -> float:
        return float(end - begin)

    def passed(self, mark: Any) -> bool:
        return True

    def lags(self, marks: List[Any], host_marks: List[float]) -> List[float]:
        """By how many seconds each mark came later than the host made it; nothing for the host's own clock."""
        return []

    def free(self, marks: List[Any]) -> None:
        """Marks that are not needed any more."""


class CudaClock(Clock):
    """The device's clock, by events on the current stream. Nothing waits for them while steps run."""

    def __init__(self, torch: Any) -> None:
        self._torch, self._pool = torch, []  # type: ignore[var-annotated]
        self.now = self._event
        torch.cuda.synchronize()
        self.base, self.base_host_s = self._event(), time.perf_counter()

    def _event(self) -> Any:
        event = self._pool.pop() if self._pool else self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) / 1e3

    def passed(self, mark: Any) -> bool:
        return bool(mark.query())

    def lags(self, marks: List[Any], host_marks: List[float]) -> List[float]:
        return [self.base_host_s + self.seconds(self.base, mark) - host for mark, host in zip(marks, host_marks)]

    def free(self, marks: List[Any]) -> None:
        self._pool.extend(marks)


def set_host_times(steps: List[Step], work: Dict[int, List[Kernel]], device: Dict[str, Any]) -> None:
    """Where a GPU has caught up with its host at a part's end, the host's launches bound the part: what it lasts beyond
    its work at the device's rates is the host's time."""
    rate = float(device["fp32"].replace("flop/s", ""))
    bandwidth = float(device["memory_bandwidth"].replace("B/s", ""))
    for step in steps:
        for i, lag in enumerate(step.lag_s):
            busy = sum(max(kernel.flops / rate, (kernel.read + kernel.written) / bandwidth)
                       for kernel in work.get(step.keys[i], []))
            step.host_s[i] = max(0.0, step.seconds(i) - busy) if lag < STARVED_S else 0.0


class Recorder:
    """Records between `with` and its end; step() ends a step of the training. Made by record()."""

    def __init__(self, models: Dict[str, Any], batch: int, output: Any = "step-trace.json", model: Optional[str] = None,
                 steps: int = 300, seed: int = 0, device: Optional[str] = None, log: Any = None,
                 total_steps: Optional[int] = None, first_step: int = 0) -> None:
        self._torch = torch = load_torch()
        self._progress = Progress()
        self._models = check_models(torch, models, self._progress)
        if (log is None) != (total_steps is None):
            raise RecordError("log and total_steps belong together: the log says how far the run is, and so needs the steps "
                              "of the whole run, for example total_steps=epochs * len(loader)")
        numbers = [("batch", batch, 1), ("steps", steps, 1), ("first_step", first_step, 0)]
        if total_steps is not None:
            numbers.append(("total_steps", total_steps, 1))
        for name, value, least in numbers:
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise RecordError(f"{name}={value!r}, expected a whole number of at least {least}")
        if total_steps is not None and first_step > total_steps:
            raise RecordError(f"first_step={first_step}, expected at most the {total_steps} of total_steps")
        on = {parameter.device.type for model in self._models.values() for parameter in model.parameters()}
        self._kind = device or ("cuda" if "cuda" in on else "cpu")
        if self._kind not in ("cpu", "cuda"):
            raise RecordError(f"device={device!r}, expected \"cpu\" or \"cuda\"")
        if self._kind == "cuda":
            require_cuda(torch)
            if "cuda" not in on:
                raise RecordError("device=\"cuda\" asks for times of a GPU, but the models are on the CPU: move them there, "
                                  "or leave device out")
        self._batch, self._output, self._limit, self._seed = batch, output, steps, seed
        self._model = model or "-".join(type(one).__name__ for one in self._models.values()).lower()
        self._steps: List[Tuple[Step, List[float], Any]] = []
        self._done: List[Step] = []
        self._counted = self._ended = 0
        self._paused = False  # within this step
        self._ended_s: Optional[float] = None  # when the last step had ended; None: it was paused since
        self._recorded_s: List[float] = []  # from a step's end to the next one's, by the host's clock
        self._plain_s: List[float] = []  # the same without hooks
        self._log_file, self._total, self._first = log, total_steps, first_step
        self.log: Optional[RunLog] = None
        self._peak = 0.0
        self._trace: Optional[Dict[str, Any]] = None

    @property
    def notes(self) -> List[str]:
        """What its user should know, for example that frozen parameters were left out."""
        return self._progress.notes

    # Recording.

    def __enter__(self) -> "Recorder":
        torch = self._torch
        self._open_log()
        self._clock = CudaClock(torch) if self._kind == "cuda" else Clock()
        self._marks = Marks(torch, self._models, self._batch, self._progress, self._clock.now, time.perf_counter)
        self._hooks = Hooks(torch, self._models, self._marks, self._progress)
        self._find_ddp()
        self._hooks.install()
        self._recording = True
        self._marks.count_always = True
        self._marks.watch_memory()
        self._marks.start()
        return self

    def step(self, **losses: Any) -> None:
        """Ends a step. Call it once at the end of what is repeated, after the last update. The losses, numbers or tensors
        of one number, are for the log; those of a GPU are only read after the recording, because that waits for it."""
        self._check_inside("step")
        since = time.perf_counter() - self._ended_s if self._ended_s is not None else None
        self._ended += 1
        if not self._recording:
            if since is not None and len(self._plain_s) < PLAIN_STEPS:
                self._plain_s.append(since)
            self._log_step(losses)
            self._ended_s = time.perf_counter()
            return
        step, end, counted = self._marks.finish()
        self._log_step({name: loss for name, loss in losses.items() if not getattr(loss, "is_cuda", False)})
        counted, self._paused = counted or self._paused, False
        if self._ended <= COUNTED_STEPS:
            self._hooks.find_optimizers()
        if not self._marks.optimizers and self._ended == COUNTED_STEPS:
            self._progress.note("no optimizer has updated a recorded network by the second r.step(): is it called after "
                                "the update?")
        if counted:
            self._counted += 1
            self._clock.free(step.starts + [end])
        else:
            self._steps.append((step, [], end))
            if since is not None:
                self._recorded_s.append(since)
        if self._ended == COUNTED_STEPS - 1:
            self._marks.memory.restart()
            if self._kind == "cuda":
                self._torch.cuda.reset_peak_memory_stats()
        elif self._ended == COUNTED_STEPS:
            self._peak = float(self._marks.memory.peak)
        self._resolve(wait=False)
        if self._ended <= DDP_STEPS and self._find_ddp():
            self._counted += len(self._steps) + len(self._done)  # their buckets were others
            self._steps, self._done = [], []
        if self._ended == FOLLOWED_STEPS:
            self._hooks.keep_gradients({one for buckets in self._marks.buckets.values()
                                        for one in buckets.follow_last()})
        if len(self._steps) + len(self._done) >= self._limit + min(MAX_WARMUP, self._limit // 10) or self._marks.stopped:
            self._stop()
            self._ended_s = time.perf_counter()
            return
        self._marks.count_always = self._marks.count_always or self._ended < COUNTED_STEPS
        self._marks.start()
        self._ended_s = time.perf_counter()

    def _log_step(self, losses: Dict[str, Any]) -> None:
        if self.log is not None:
            self.log.step(self._first + self._ended, **losses)

    @contextlib.contextmanager
    def pause(self, what: str) -> Iterator[None]:
        """A time without training, best right after r.step(): `with r.pause("evaluation"): ...`. The log has it, the trace
        has not; a step that had begun already is left out."""
        self._check_inside("pause")
        self._ended_s = None
        with self.log.pause(what) if self.log is not None else contextlib.nullcontext():
            interrupted = self._marks.interrupt()
            try:
                yield
            finally:
                self._paused |= self._marks.resume(*interrupted)

    def _check_inside(self, call: str) -> None:
        if self._trace is not None or not hasattr(self, "_marks"):
            raise RecordError(f"r.{call}() was called outside of the block of \"with ... as r\"")

    def _open_log(self) -> None:
        """Begins the log of the run. Of several processes, the first writes it."""
        distributed = self._torch.distributed
        together = distributed.is_available() and distributed.is_initialized()
        if self._log_file is None or self._total is None or (together and distributed.get_rank() != 0):
            return
        gpus = distributed.get_world_size() if together else 1
        name = _device.gpu_name(self._torch.cuda.get_device_name()) if self._kind == "cuda" else _device.cpu_name()
        self.log = RunLog(self._log_file, steps=self._total, batch=self._batch * gpus, gpus=gpus, model=self._model,
                          device=name, first_step=self._first)

    def _stop(self) -> None:
        self._recording = False
        self._marks.stop_counting()
        self._marks.stopped = True
        self._hooks.remove()

    def _resolve(self, wait: bool) -> None:
        """Turns marks of steps that the device has finished into seconds."""
        if wait and self._kind == "cuda" and self._steps:
            self._torch.cuda.synchronize()
        while self._steps and self._clock.passed(self._steps[0][2]):
            step, _, end = self._steps.pop(0)
            begin, marks = step.starts[0], step.starts
            step.starts = [self._clock.seconds(begin, mark) for mark in marks]
            step.wall_s = self._clock.seconds(begin, end)
            step.ready = [(network, bucket, update, part,
                           step.starts[part] + step.seconds(part) if when is None else self._clock.seconds(begin, when))
                          for network, bucket, update, part, when in step.ready]
            step.lag_s = self._clock.lags(marks[1:] + [end], step.host_marks[1:])
            self._clock.free(marks + [end])
            self._done.append(step)

    def _find_ddp(self) -> bool:
        """Takes the sizes of the buckets that DistributedDataParallel really has. True if they were others before."""
        changed = False
        for name, model in self._models.items():
            facts = getattr(model, "_get_ddp_logging_data", None)
            if facts is None:
                continue
            text = facts().get("rebuilt_bucket_sizes") or facts().get("bucket_sizes") or ""
            sizes = [int(size) for size in str(text).replace(",", " ").split()]
            if sizes and sizes != self._marks.bucket_sizes.get(name):
                self._marks.set_bucket_sizes(name, sizes)
                changed = True
        return changed

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self.log is not None:
            self.log.end("finished" if kind is None else "stopped")
        if self._recording:
            self._stop()
        if kind is not None:
            self._progress.note(f"a {kind.__name__} ended the recording within step {self._ended + 1}, which is left out")
            if len(self._steps) + len(self._done) > 0:
                self._finish()
            return
        if self._ended == 0:
            raise RecordError("r.step() was never called, so that no step ever ended: call it at the end of each step, "
                              "after the last update")
        self._finish()

    # The trace.

    def _finish(self) -> None:
        self._resolve(wait=True)
        if not self._done:
            raise RecordError(f"{self._ended} steps ended, whose work was counted and whose times therefore say nothing: "
                              f"record at least {COUNTED_STEPS + 1}, better 100")
        self._note_overhead()
        warm = 0 if len(self._done) < 3 else min(MAX_WARMUP, max(1, len(self._done) // 10))
        if len(self._done) - warm < 30:
            self._progress.note(f"only {len(self._done) - warm} steps are in the trace: means of fewer than 30 are vague")
        device = _device.measured(self._torch, self._kind)
        set_host_times(self._done, self._marks.work, device)
        peak = self._peak
        if self._kind == "cuda":
            peak = float(self._torch.cuda.max_memory_allocated())
        elif not self._marks.memory.works:
            self._progress.note(f"PyTorch {self._torch.__version__} cannot watch the CPU's memory, 2.1 can: the trace has "
                                "no activations")
        if torch_version(self._torch) < (2, 0):
            self._progress.note(f"PyTorch {self._torch.__version__} does not say to which layer a backward operator "
                                "belongs, 2.x does: such kernels have no layer")
        recorded = Recorded(
            device, {"name": "PyTorch", "version": self._torch.__version__, "backend": self._kind}, self._model,
            self._batch, self._seed, self._marks.networks(), self._done[warm:], self._marks.work,
            self._marks.memory_by_kind(peak), warm + self._counted,
            datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))
        self._trace = _trace.Builder(recorded, self._progress).build()
        self._check_updates()
        if self._output is not None:
            _trace.write(self._trace, self._output)

    def _note_overhead(self) -> None:
        """Says by how much recording has made steps longer, if the loop went on without it for long enough."""
        if min(len(self._plain_s), len(self._recorded_s)) < PLAIN_STEPS // 2:
            return
        recorded, plain = statistics.median(self._recorded_s), statistics.median(self._plain_s)
        if recorded > (1 + OVERHEAD) * plain:
            self._progress.note(f"a step took {1e3 * recorded:.2f} ms while it was recorded and {1e3 * plain:.2f} ms "
                                "afterwards (medians): the trace's times are the longer ones")

    def _check_updates(self) -> None:
        entry = self.trace["batches"][0]
        for name in self._models:
            update = next((phase for phase in entry["phases"] if phase["name"] == f"{name}.update"), None)
            if update is None:
                self._progress.note(f"{name} was never updated within a step: it has no gradients to reduce")
                continue
            share = sum(1 for seconds in update["seconds"] if seconds > 0) / len(update["seconds"])
            if share < 0.999:
                self._progress.note(f"{name} is updated in {share:.0%} of the steps: call r.step() once for each of its "
                                    "updates, so that its gradients are not reduced more often than they are")

    @property
    def trace(self) -> Dict[str, Any]:
        """The step trace, after the block."""
        if self._trace is None:
            raise RecordError("the trace is there when the block of \"with ... as r\" has ended")
        return self._trace


def record(models: Dict[str, Any], batch: int, output: Any = "step-trace.json", model: Optional[str] = None,
           steps: int = 300, seed: int = 0, device: Optional[str] = None, log: Any = None,
           total_steps: Optional[int] = None, first_step: int = 0) -> Recorder:
    """Records a training loop, to be used as `with record(models={...}, batch=64) as r:` with r.step() at each step's end.

    models: the networks by their names, for example {"generator": G, "discriminator": D}
    batch:  images of one step on this device
    output: file of the trace; None: it is only in r.trace
    model:  name of the model in the trace
    steps:  recorded steps; after them the hooks are gone and the loop goes on alone
    seed:   seed of the training, for people
    device: "cpu" or "cuda": whose times are meant; default: where the models are
    log:    file of a run log, which `ganymede watch --log` follows as long as the block lasts
    total_steps: steps of the whole run, for the log; first_step: those that its checkpoint holds, if it goes on from one
    """
    return Recorder(models, batch, output, model, steps, seed, device, log, total_steps, first_step)
