"""Records made by hand, for tests of what is made from records: every number in them is known."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np

from relength.papers.panm import pointing
from relength.runs.store import Record
from relength.specs import claim_files
from relength.specs.experiments import experiments
from relength.specs.spec import RunSpec
from relength.training import provenance
from relength.training.traces import small_integers

# Claims of every kind, for tests of what is made from any: judging a thousand takes its time.
FEW = {
    *("mla-001", "mla-003", "mla-010", "mla-011", "mla-012", "mla-016", "mla-017", "mla-030"),
    *("mla-052", "mla-057", "mla-060", "panm-004", "panm-019", "panm-020", "panm-084", "panm-092"),
    *(
        f"mla-table-2/{cell}"
        for cell in (
            *("Content/copy/15", "Content/copy/30", "Content/copy/100", "Content/recopy/15"),
            *("LocAttn/copy/15", "LocAttn/recopy/15", "OneStepAttn/recopy/100"),
            *("OneStepAttn/inv_recopy/100", "MonoAttn/lookup/11", "Bi-Relative/copy/100"),
            *("Bi-Relative/reverse_copy/100", "Bi-Relative/recopy/100", "Bi-Relative/lookup/11"),
        )
    ),
    "mla-table-3/Content/cfq/length",
    "panm-table-13/PANM/panm_copy/20",
}
Accuracy = Callable[[RunSpec, str], float]  # of a run at a test, a fraction
claims_digest = cache(claim_files.claims_digest)


def amounts(text: str) -> list[float]:
    """The numbers of a text in their order, so that a test need not know the words between them.

    >>> amounts("3,000 steps; −1.5 at 16k, 2 of 3.")
    [3000.0, -1.5, 2.0, 3.0]
    """
    number = r"(?<![\w.,])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)"
    found = re.findall(number, text)
    return [float(one.replace(",", "").replace("−", "-")) for one in found]


def in_a_row(wanted: list[float], text: str) -> bool:
    """Tell whether a text has these numbers, one after the other."""
    found = amounts(text)
    return any(found[i : i + len(wanted)] == wanted for i in range(len(found)))


def record(
    spec: RunSpec,
    accuracy: Accuracy,
    created: str = "2026-01-01T00:00:00Z",
    experiment: str = "mla_table2",
    extended: Accuracy | None = None,
) -> Record:
    """A record as :func:`relength.runs.execute.execute` writes it, with the accuracies asked for.

    PANM's pointers move as the paper says: one slot per step in Mode 1, to the answer in Mode 2.

    extended  the accuracies with a larger memory, if not the same
    """
    known, found = spec.task.known_test, experiments().get(experiment)
    streams = "train" not in spec.task.splits()
    tests = {test: _metrics(spec, accuracy(spec, test)) for test in spec.task.tests}
    epochs = min(spec.training.intervals, 25)
    curve = [
        {
            "epoch": epoch,
            "step": 313 * (epoch + 1),
            "train_loss": 2.0 / (1 + epoch),
            "dev_accuracy": accuracy(spec, spec.task.tests[1]) * (1 - 0.6**epoch),
            "iid_accuracy": accuracy(spec, known) * (1 - 0.4**epoch),
            "learning_rate": 0.001,
        }
        for epoch in range(epochs)
    ]
    if watched := spec.task.watched_splits:
        for epoch, point in enumerate(curve):
            seen = {test: accuracy(spec, test) * (1 - 0.7**epoch) for test in watched}
            point["watched_accuracy"] = seen if len(seen) > 1 else seen[watched[0]]
    kept = ["selected", "last", *["best_iid"] * (spec.training.selection.by != "last")]
    checkpoints = {name: {"epoch": epochs - 1, "tests": tests} for name in kept}
    if larger := getattr(spec.task, "extended_tests", {}):
        with_it = {test: _metrics(spec, (extended or accuracy)(spec, test)) for test in larger}
        checkpoints["extended"] = {"epoch": epochs - 1, "tests": with_it}
    return {
        "schema": 1,
        "key": spec.key,
        "run_id": f"{spec.key}0000",
        "experiment": experiment,
        "status": "ok",
        "spec": spec.model_dump(mode="json"),
        "checkpoints": checkpoints,
        "parameters": 249_168,
        "curve": curve,
        "first_losses": [2.0] * 20,
        "probe": {"validation_loss": 1.0},
        "attention": attention(spec) if hasattr(spec.task, "pairs") and not streams else None,
        **({"traces": traces(spec)} if spec.model.name == "PANM" else {}),
        **({"memory": memory(spec)} if spec.model.name == "Constrained DNC" else {}),
        "cost": {"steps": 313 * epochs, "training_seconds": 120.0, "evaluation_seconds": 8.0},
        "provenance": {
            "created": created,
            "relength": "0.1.0",
            "commit": None,
            "dirty": None,
            "code": "0" * 12,
            "margins": provenance.margins_hash(),
            "claims": claims_digest(found.paper) if found else None,
            "python": "3.11.7",
            "torch": "2.13.0",
            "device": "cpu",
            "device_name": "hand",
            "threads": 1,
            "data": {"source": "generated"},
        },
    }


def failed(spec: RunSpec) -> Record:
    """A record of a run that raised, as :func:`relength.runs.execute.execute` writes it."""
    whole = record(spec, lambda *_: 0.0)
    kept = {k: whole[k] for k in ("schema", "key", "experiment", "spec", "provenance")}
    return kept | {
        "run_id": "f" * 16,
        "status": "failed",
        "error": "Traceback\nValueError: no",
    }


def attention(spec: RunSpec) -> dict:
    """Attention that steps through the source at an even pace, on the first sample of the shortest
    test."""
    test = spec.task.tests[1]
    (pair, *_) = spec.task.model_copy(update={"test_size": 1}).pairs(test, spec.seed)
    source = ["START", *pair.source, "END"]
    target = [*pair.target, "EOS"]
    centre = np.linspace(1, len(source) - 1, len(target))
    weights = np.exp(-((np.arange(len(source)) - centre[:, None]) ** 2))
    weights /= weights.sum(1, keepdims=True)
    return {
        "test": test,
        "source": source,
        "target": target,
        "prediction": target,
        "weights": weights.round(3).tolist(),
    }


def traces(spec: RunSpec) -> list[dict]:
    """Perfect pointers of a PANM at the two shortest unseen tests; nothing if it has none."""
    if not spec.model.n_mode1:
        return []
    found = []
    for test in spec.task.tests[1:3]:
        answers = pointing.places(spec.task, test, 16)  # (16, T)
        walk = np.broadcast_to(np.arange(answers.shape[1]) + spec.task.flags, answers.shape)
        slots = {"mode 1, pointer 1 from the base": walk}
        if spec.model.n_mode1 > 1:
            slots["mode 1, pointer 2 from the end"] = walk[:, ::-1]
        if spec.model.n_mode2:
            slots["mode 2, pointer 1"] = answers
        shown = spec.task.shown(spec.task.dataset(test, 0).select(slice(0, 1)), 0)
        found.append(
            {
                **{"test": test, "source": list(shown.source), "target": list(shown.target)},
                "prediction": list(shown.target),
                "weights": {
                    name: np.eye(len(shown.source))[places[0]].tolist()
                    for name, places in slots.items()
                },
                "slots": {name: places.tolist() for name, places in slots.items()},
            }
        )
    return found


def memory(spec: RunSpec) -> dict:
    """A memory that is filled and then read, by a controller with a place for each numeral.

    The places lie at the corners of a star, and while writing the states stay at its centre.
    """
    known, selects, steps = spec.task.known_test, str(spec.task.dev_length), spec.task.dev_length
    one_end, other_end = [*[0] * 19, 90], [90, *[0] * 19]
    found: dict = {
        "modes": {
            **{"test": known, "items": 3},
            "write": {"encoding": one_end, "decoding": other_end},
            "read": {"encoding": other_end, "decoding": one_end},
        }
    }
    if spec.model.controller == "ffnn":
        return found
    read = np.random.default_rng(spec.seed).integers(0, 5, (2, steps + 1))
    values = np.zeros((2, 2 * steps + 2, 5))
    values[:, : steps + 1] = np.eye(5)[read]
    small = small_integers(values)
    found["states"] = {
        **{"test": selects, "read_steps": steps + 1, "explained": 1.0, **small},
        "read": ["".join("abcde"[numeral] for numeral in row) for row in read],
        "portraits": {
            "encoding": small_integers(values[:, : steps + 1, :2]),
            "decoding": small_integers(values[:, steps + 1 :, :2]),
        },
    }
    return found


def _metrics(spec: RunSpec, accuracy: float) -> dict[str, float]:
    """Every share is the accuracy, every amount ten times what it lacks; no memory diverges."""
    kind = spec.task.metrics
    amounts = dict.fromkeys(kind.amounts(), 10 * (1 - accuracy))
    shares = {name: 0.0 if name == "diverged" else accuracy for name in kind.shares()}
    return {"items": 2001, **shares, **amounts}
