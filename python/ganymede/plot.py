"""Pictures of results with Matplotlib: `time_cost`, `scaling` and `step_anatomy`. Each draws on `axes`, or on new ones,
and returns them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from ._plans import Candidate, Plan
from ._results import Run, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HOUR_S = 3600.0
_MANY = 40  # points; with more, intervals are not drawn
_LABELS = 6  # names of points at most

# Okabe and Ito's colours, which people with colour-blindness can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = {"on-demand": "o", "spot": "^"}
_STEP_COLORS = {
    "compute": "#0072B2",
    "communication": "#E69F00",
    "exposed": "#D55E00",
    "straggler": "#CC79A7",
    "host": "#999999",
    "input": "#56B4E9",
    "input_stall": "#000000",
    "lost": "#8B0000",
}
_STEP_NAMES = {"exposed": "waits for communication", "straggler": "waits for others", "input_stall": "waits for input"}
_LANES = {"compute": 0, "exposed": 0, "straggler": 0, "input_stall": 0, "lost": 0, "communication": 1, "input": 2, "host": 3}
_LANE_NAMES = ("GPU", "network", "input", "host")

Point = Union[Run, Candidate]


def _new_axes(axes: Optional[Axes], width: float = 7.0, height: float = 4.5) -> Axes:
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("plots need Matplotlib: pip install 'ganymede[plot]', or Debian's python3-matplotlib") from error
    made: Axes = matplotlib.pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return made


def _points(result: Union[Run, Sweep, Plan, Iterable[Point]]) -> List[Point]:
    return [result] if isinstance(result, Run) else list(result)


def _place(point: Point) -> str:
    """The provider, by which points are coloured: the first word of a run's platform."""
    return point.provider if isinstance(point, Candidate) else point.platform.split(" ")[0]


def _name(point: Point) -> str:
    if isinstance(point, Candidate):
        return f"{point.nodes} x {point.instance}"
    return point.allocation


def _ranked_usd(point: Point) -> float:
    """What plans compare: doubtful prices count at the high end of what they may be."""
    return point.usd_at_worst_prices if isinstance(point, Candidate) else point.usd


def _unbeaten(points: Iterable[Point]) -> List[Point]:
    """Those that none beats in both time and cost, the fastest first."""
    unbeaten: List[Point] = []
    for point in sorted(points, key=lambda one: (one.seconds, _ranked_usd(one))):
        if not unbeaten or _ranked_usd(point) < _ranked_usd(unbeaten[-1]):
            unbeaten.append(point)
    return unbeaten


def _plain_ticks(axis: Any, values: Sequence[float], text: str = "{x:g}") -> None:
    """Numbers such as 0.05 instead of powers of ten; also between these, if the values span less than one of them."""
    axis.set_major_formatter(text)
    if values and max(values) < 10 * min(values):
        axis.set_minor_formatter(text)
        axis.set_tick_params(which="minor", labelsize=8)


def _meets(point: Point) -> bool:
    return point.verdict == "meets" if isinstance(point, Candidate) else point.met


def time_cost(result: Union[Run, Sweep, Plan, Iterable[Point]], axes: Optional[Axes] = None) -> Axes:
    """Time against cost of each run or candidate, and the line of those that none beats, doubtful prices taken at their
    high end. What misses its goals is pale; with at most 40 points their intervals are drawn.
    """
    axes = _new_axes(axes)
    from matplotlib.colors import to_rgba

    points = _points(result)
    groups: Dict[Tuple[str, str], List[Point]] = defaultdict(list)
    for point in points:
        groups[_place(point), point.market].append(point)
    places = sorted({place for place, _ in groups})
    for (place, market), group in sorted(groups.items()):
        color = _COLORS[places.index(place) % len(_COLORS)]
        hours, usd = [point.seconds / _HOUR_S for point in group], [point.usd for point in group]
        axes.scatter(
            hours,
            usd,
            s=34 if len(points) <= _MANY else 14,
            marker=_MARKERS.get(market, "s"),
            c=[to_rgba(color, 0.85 if _meets(point) else 0.2) for point in group],
            linewidths=0,
            label=f"{place} {market}",
            zorder=3,
        )
        if len(points) <= _MANY:
            axes.errorbar(hours, usd, yerr=_ends(group, "usd", 1.0), xerr=_ends(group, "seconds", _HOUR_S), fmt="none",
                          ecolor=color, alpha=0.35, linewidth=1, zorder=2)  # fmt: skip
    line = _unbeaten(point for point in points if _meets(point))
    axes.plot([point.seconds / _HOUR_S for point in line], [point.usd for point in line], color="0.45", linewidth=1,
              zorder=1)  # fmt: skip
    for point in _apart(line):
        axes.annotate(_name(point), (point.seconds / _HOUR_S, point.usd), (5, 4), textcoords="offset points", fontsize=8)
    if isinstance(result, Plan):
        _draw_goals(axes, result)
    axes.set(xscale="log", yscale="log", xlabel="hours", ylabel="USD")
    _plain_ticks(axes.xaxis, [point.seconds for point in points])
    _plain_ticks(axes.yaxis, [point.usd for point in points])
    axes.grid(True, which="major", alpha=0.25)
    axes.legend(fontsize=8)
    return axes


def _far(one: Point, other: Point) -> bool:
    """True if the points are a factor of 2 in time or of 1.3 in cost apart."""
    return max(one.seconds, other.seconds) > 2 * min(one.seconds, other.seconds) or max(one.usd, other.usd) > 1.3 * min(
        one.usd, other.usd
    )


def _apart(line: Sequence[Point]) -> List[Point]:
    """Some of the points, so far from each other that their names do not overlap."""
    named: List[Point] = []
    for point in [*line[:1], *line[:0:-1]]:
        if len(named) < _LABELS and all(_far(point, other) for other in named):
            named.append(point)
    return named


def _ends(group: Sequence[Point], what: str, unit: float) -> List[List[float]]:
    """How far the ends of intervals are from their middles, as Matplotlib takes them."""
    middles = [getattr(point, what) for point in group]
    lows, highs = ([getattr(point, what + end) for point in group] for end in ("_low", "_high"))
    return [
        [max(0.0, middle - low) / unit for middle, low in zip(middles, lows)],
        [max(0.0, high - middle) / unit for middle, high in zip(middles, highs)],
    ]


def _draw_goals(axes: Axes, plan: Plan) -> None:
    """Deadline and budget, where they are near the points."""
    points = plan.candidates
    if not points:
        return
    if plan.deadline_seconds and plan.deadline_seconds < 2 * max(point.seconds for point in points):
        axes.axvline(plan.deadline_seconds / _HOUR_S, color="0.3", linestyle=":", label="deadline")
    if plan.budget_usd and plan.budget_usd < 2 * max(point.usd for point in points):
        axes.axhline(plan.budget_usd, color="0.3", linestyle="--", label="budget")


def scaling(result: Union[Sweep, Iterable[Run]], axes: Optional[Axes] = None) -> Axes:
    """Images a second while training against the number of GPUs: a line for each platform, GPU and scheme, and pale the
    ideal, which is as many times the rate of the fewest GPUs as there are more of them.
    """
    axes = _new_axes(axes, 9.0)
    lines: Dict[Tuple[str, str, str], Dict[int, float]] = defaultdict(dict)
    alone: Dict[Tuple[str, str], Dict[int, float]] = defaultdict(dict)
    for run in _points(result):
        if not isinstance(run, Run):
            raise TypeError("scaling() draws runs, as sweep() returns them")
        if run.images_per_second is None:
            continue
        # One GPU has no scheme: it begins the line of each.
        line = alone[run.platform, run.gpu] if run.gpus == 1 else lines[run.platform, run.gpu, run.scheme]
        line[run.gpus] = max(run.images_per_second, line.get(run.gpus, 0.0))
    for place, first in alone.items():
        of_place = [key for key in lines if key[:2] == place]
        for key in of_place or [(*place, "one GPU")]:
            lines[key].update(first)
    for index, ((platform, gpu, scheme), rates) in enumerate(sorted(lines.items())):
        counts = sorted(rates)
        color = _COLORS[index % len(_COLORS)]
        axes.plot(counts, [rates[count] for count in counts], marker="o", markersize=4, color=color,
                  linestyle="-" if index < len(_COLORS) else "--", label=f"{platform}, {gpu}, {scheme}")  # fmt: skip
        axes.plot(counts, [rates[counts[0]] * count / counts[0] for count in counts], color=color, alpha=0.25, linewidth=1)
    axes.set(xlabel="GPUs", ylabel="images a second", xscale="log", yscale="log")
    ticks = sorted({count for rates in lines.values() for count in rates})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    _plain_ticks(axes.yaxis, [rate for rates in lines.values() for rate in rates.values()], "{x:,.0f}")
    axes.grid(True, which="major", alpha=0.25)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def step_anatomy(run: Run, axes: Optional[Axes] = None, workers: int = 4) -> Axes:
    """What the first workers of a run do in some steps: their GPU, their part of the network, their input pipeline and
    their host. `simulate` keeps three steps; `show_steps=1` keeps one.
    """
    spans = run.document.get("step_spans")
    if spans is None:
        raise ValueError("the run has no steps to show: simulate() keeps some, sweep() and show_steps=0 do not")
    used: Dict[Tuple[int, int], List[Tuple[float, float, str]]] = defaultdict(list)
    for worker, kind, _, start_s, seconds in spans["rows"]:
        if worker < workers:
            name = spans["kinds"][kind]
            used[int(worker), _LANES[name]].append((start_s * 1e3, seconds * 1e3, name))
    lanes = sorted(used)
    axes = _new_axes(axes, 9.0, 1.4 + 0.24 * len(lanes))
    drawn: Dict[str, Any] = {}
    for row, lane in enumerate(lanes):
        for kind_name in _STEP_COLORS:
            bars = [(start, length) for start, length, name in used[lane] if name == kind_name]
            if bars:
                drawn[kind_name] = axes.broken_barh(
                    bars, (row - 0.4, 0.8), facecolors=_STEP_COLORS[kind_name], edgecolors="white", linewidth=0.3
                )
    axes.set_yticks(range(len(lanes)), [f"worker {worker}: {_LANE_NAMES[lane]}" for worker, lane in lanes], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds from the first of these steps")
    names = [name for name in _STEP_COLORS if name in drawn]
    axes.legend([drawn[name] for name in names], [_STEP_NAMES.get(name, name) for name in names], fontsize=8,
                loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names))  # fmt: skip
    return axes
