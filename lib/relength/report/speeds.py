"""Say how fast training is: beside a plain loop, and where work is done in two ways."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from relength.bench import STACKS
from relength.bench.pairs import KIND
from relength.report.markdown import table
from relength.report.scoreboard import Survey
from relength.runs.prices import Device
from relength.specs import registry
from relength.specs.paper import Paper

NUMBERS = ("steps/s", "× plain loop", "trainings/hour", "memory", "share of limit")
PAIR_COLUMNS = ("work", "ours", "against", "times as fast", "aimed at", "share of limit")


def speed(survey: Survey) -> str:
    """Tabulate how fast training is on each device, and name what was never measured."""
    latest: dict[tuple[Device, str, str], dict[str, dict[str, Any]]] = {}
    for outcome in survey.store.benchmarks():
        if "steps_per_second" not in outcome or _timed_by(outcome["model"]) is None:
            continue  # of another kind, or of a paper that is not here
        place = Device.of(outcome), outcome["provenance"]["torch"], outcome["model"]
        latest.setdefault(place, {})[outcome["task"]] = outcome
    parts = [
        _speed_table(number, *place[:2], list(outcomes.values()))
        for number, (place, outcomes) in enumerate(latest.items(), start=1)
    ]
    parts += filter(None, map(_goals, (list(outcomes.values()) for outcomes in latest.values())))
    if not latest:
        parts.append("Nothing has been measured yet: `relength bench` measures and keeps it.\n")
    if not any(device.kind == "cuda" for device, *_ in latest):
        sizes = ", ".join(map(str, STACKS["cuda"]))
        parts.append(
            ":::{admonition} Not measured: a GPU\n:class: warning\nNo benchmark was run on a "
            "GPU; {doc}`guide_gpu` has a few steps timed by hand. `relength bench --device cuda` "
            f"will measure the plain loop there, a run alone, and stacks of {sizes} runs, each "
            "with CUDA graphs and without. It will also tell whether `torch.compile` pays beside "
            "them. Until then nobody knows how many hours of a GPU a whole table takes at scale "
            "*paper*. The stepping code is the same as on a CPU, where it is tested. What only a "
            "GPU can show has tests that run wherever there is one."
            "\n:::\n"
        )
    return "\n".join(parts)


def _speed_table(number: int, device: Device, torch: str, outcomes: list[dict[str, Any]]) -> str:
    rounds = {outcome["rounds"] for outcome in outcomes}
    commits = dict.fromkeys((o["provenance"]["commit"] or "unknown")[:8] for o in outcomes)
    dates = sorted({outcome["provenance"]["created"][:10] for outcome in outcomes})
    return table(
        ("task", "way", *NUMBERS),
        (row for outcome in outcomes for row in _ways(outcome)),
        name="tab-speed" if number == 1 else f"tab-speed-{number}",
        caption=f"Training {outcomes[0]['model']}, batch {outcomes[0]['batch_size']}, on "
        f"{device.name}, PyTorch {torch}; {' and '.join(map(str, sorted(rounds)))} rounds, "
        f"measured {' and '.join(dates)} at commit {', '.join(commits)}. *Steps* are optimiser "
        "steps of single runs. *Trainings* are those of the scale *paper*, steps alone. *Share of "
        "limit* divides the products and the traffic that no implementation can avoid by what the "
        "device multiplied and copied per second in the same measurement.",
        numbers=NUMBERS,
    )


def _goals(outcomes: Sequence[dict[str, Any]]) -> str:
    """Say whether a model trains as many times faster than the plain loop as it was meant to."""
    model = outcomes[0]["model"]
    said = []
    for way, goal in aims(outcomes).items():
        told = ", ".join(f"{ratio:.2f} on {task}" for task, ratio in goal.ratios.items())
        missed = f"missed on {goal.missed} of {len(outcomes)}" if goal.missed else "reached"
        said.append(f"{goal.times:g} times on {way}, **{missed}** ({told})")
    if not said:
        return ""
    return (
        f"What we aimed at for {model}: {'; '.join(said)}. The plain loop has all cores for its "
        "one run. On several cores ours are as many runs, one on each, counted together.\n"
    )


class Aim(NamedTuple):
    """The ratio to the plain loop that a way should reach, and the one it reaches, task by task."""

    times: float
    ratios: dict[str, float]

    @property
    def missed(self) -> int:
        """Tasks on which it is slower."""
        return sum(ratio < self.times for ratio in self.ratios.values())


def aims(outcomes: Sequence[dict[str, Any]]) -> dict[str, Aim]:
    """{way: its aim} of a model's measurements, for the ways that were measured."""
    found = {}
    for way, goal in _timed_by(outcomes[0]["model"]).speed.goals.items():
        ratios = {o["task"]: o["ratio_to_baseline"].get(way) for o in outcomes}
        if measured := {task: ratio for task, ratio in ratios.items() if ratio}:
            found[way] = Aim(goal, measured)
    return found


def _timed_by(model: str) -> Paper | None:
    """Return the paper whose speed is measured on this model, if it is here."""
    timed = (paper for paper in registry.papers().values() if paper.speed)
    return next((paper for paper in timed if paper.speed.model == model), None)


def _ways(outcome: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    steps = _steps(outcome["task"], _timed_by(outcome["model"]))
    for way, rate in outcome["steps_per_second"].items():
        memory = outcome.get("memory_bytes", {}).get(way)
        yield (
            outcome["task"],
            way.replace("baseline", "plain loop"),
            f"{rate:,.0f}",
            f"{outcome['ratio_to_baseline'][way]:.2f}",
            f"{3600 * rate / steps:,.1f}",
            "not measured" if memory is None else f"{memory / 2**20:,.0f} MiB",
            limit_share(outcome, way),
        )


def _steps(task: str, paper: Paper) -> int:
    """Optimiser steps of a training at scale paper."""
    spec = paper.load(paper.speed.spec)(task, "paper", 0)
    return spec.training.most_steps(spec.task)


def limit_share(outcome: dict[str, Any], way: str) -> str:
    """Word how much of what the device can do is done, and which of its two limits is nearer."""
    limits = outcome.get("limits")
    if limits is None:
        return "not measured"
    cores = outcome["baseline_threads"] if way == "baseline" else _cores(way)
    kind = "cuda" if "cuda" in way else "cpu"
    return _share(limits, outcome["steps_per_second"][way], kind, cores)


def _share(limits: dict[str, Any], rate: float, kind: str, cores: int) -> str:
    floors = {
        "products": limits["flops_per_step"] / limits["flops_per_second"][kind],
        "memory": limits["bytes_per_step"] / limits["bytes_per_second"][kind],
    }
    nearer = max(floors, key=floors.__getitem__)
    share = floors[nearer] * rate / cores
    return f"{100 * share:.0f} % ({nearer})" if share >= 0.01 else f"{100 * share:.1g} % ({nearer})"


def _cores(way: str) -> int:
    count = way.removesuffix(" cores")
    return int(count) if count.isdecimal() else 1


# --- work that is done in two ways ----------------------------------------------------------------


def pairs(survey: Survey) -> str:
    """Tabulate work that is done in two ways: how many times as fast as the plain one ours is."""
    latest: dict[tuple[Device, str], dict[str, Any]] = {}
    for outcome in survey.store.benchmarks():
        if outcome.get("kind") == KIND and outcome["paper"] in registry.papers():
            latest[Device.of(outcome), outcome["paper"]] = outcome
    if not latest:
        own = (name for name, paper in registry.papers().items() if paper.pairs)
        commands = " and ".join(f"`relength bench --paper {name}`" for name in own)
        return f"Nothing has been measured yet: {commands} measure and keep it.\n"
    return "\n".join(
        _pairs_table(number, device, registry.papers()[paper], outcome)
        for number, ((device, paper), outcome) in enumerate(latest.items(), start=1)
    )


def _pairs_table(number: int, device: Device, paper: Paper, outcome: dict[str, Any]) -> str:
    origin = outcome["provenance"]
    return table(
        PAIR_COLUMNS,
        pair_rows(outcome),
        name="tab-pairs" if number == 1 else f"tab-pairs-{number}",
        caption=f"{paper.short}: two ways to do the same work, in turns on one core of "
        f"{device.name}, PyTorch {origin['torch']}; medians of {outcome['rounds']} rounds, "
        f"measured {origin['created'][:10]} at commit {(origin['commit'] or 'unknown')[:8]}. "
        "*Aimed at* is the least that we wanted. *Share of limit* is as above.",
        numbers=PAIR_COLUMNS[3:],
    )


def pair_rows(outcome: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row per pair: its names, the median of the rounds' ratios, its aim and share of a limit."""
    rows = []
    for work, pair in outcome["pairs"].items():
        ours, other = pair["rates"]
        ratio = median(a / b for a, b in zip(ours, other, strict=True))
        share = "–" if pair["limits"] is None else _share(pair["limits"], median(ours), "cpu", 1)
        aim = f"{pair['aim']:.2f}, {'reached' if ratio >= pair['aim'] else 'missed'}"
        rows.append((work, pair["ours"], pair["other"], f"{ratio:.2f}", aim, share))
    return rows


PASSAGES = {"speed": speed, "pairs": pairs}
