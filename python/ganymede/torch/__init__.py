"""Records PyTorch trainings, or counts their steps without a GPU, as step traces that `ganymede plan` prices."""
from ._import import RecordError
from ._record import Recorder, record
from ._workload import Workload, workload

__all__ = ["RecordError", "Recorder", "Workload", "record", "workload"]
