"""How long a GAN training takes on a cloud, how busy the hardware is, and what it costs.

    import ganymede
    plan = ganymede.plan(model="dcgan-64", images=50_000_000, deadline="60h", budget="500USD")
    plan.to_pandas()

Every function runs the program `ganymede` and reads its JSON; docs/python.md has the whole of it.
"""

from . import mlflow, plot, tensorboard
from ._commands import (
    Changes,
    Flag,
    Given,
    allreduce,
    catalog,
    load,
    plan,
    simulate,
    simulate_cluster,
    simulate_service,
    sweep,
    validate,
)
from ._errors import GanymedeError, Infeasible, InputError, ProgramFailure, ProgramNotFound, VersionMismatch
from ._lists import Catalog, Collective, Collectives, Offer, Prediction, Validation
from ._plans import Candidate, Plan
from ._program import find_program
from ._progress import Progress, ProgressOption
from ._results import (
    BillItem,
    Changed,
    ChangedInput,
    Cluster,
    Compared,
    Diff,
    Event,
    FailedRun,
    Job,
    Rehearsal,
    Run,
    SeedSpread,
    Sweep,
)
from ._version import __version__
from ._watch import Forecast, RunLog, watch

__all__ = [
    "BillItem",
    "Candidate",
    "Catalog",
    "Changed",
    "ChangedInput",
    "Changes",
    "Cluster",
    "Collective",
    "Collectives",
    "Compared",
    "Diff",
    "Event",
    "FailedRun",
    "Flag",
    "Forecast",
    "GanymedeError",
    "Given",
    "Infeasible",
    "InputError",
    "Job",
    "Offer",
    "Plan",
    "Prediction",
    "ProgramFailure",
    "ProgramNotFound",
    "Progress",
    "ProgressOption",
    "Rehearsal",
    "Run",
    "RunLog",
    "SeedSpread",
    "Sweep",
    "Validation",
    "VersionMismatch",
    "__version__",
    "allreduce",
    "catalog",
    "find_program",
    "load",
    "mlflow",
    "plan",
    "plot",
    "simulate",
    "simulate_cluster",
    "simulate_service",
    "sweep",
    "tensorboard",
    "validate",
    "watch",
]
