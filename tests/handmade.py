"""Records made by hand, for tests of what is made from records: every number in them is known."""

from collections.abc import Callable

import numpy as np

from relength import provenance
from relength.spec import RunSpec
from relength.store import Record

Accuracy = Callable[[RunSpec, str], float]  # of a run at a test, a fraction


def record(spec: RunSpec, accuracy: Accuracy, created: str = "2026-01-01T00:00:00Z") -> Record:
    """A record as :func:`relength.execute.execute` writes it, with the accuracies asked for."""
    tests = {test: _metrics(accuracy(spec, test)) for test in spec.task.tests}
    epochs = min(spec.training.epochs, 25)
    curve = [
        {
            "epoch": epoch,
            "step": 313 * (epoch + 1),
            "train_loss": 2.0 / (1 + epoch),
            "dev_accuracy": accuracy(spec, spec.task.tests[1]) * (1 - 0.6**epoch),
            "iid_accuracy": accuracy(spec, "iid") * (1 - 0.4**epoch),
            "learning_rate": 0.001,
        }
        for epoch in range(epochs)
    ]
    return {
        "schema": 1,
        "key": spec.key,
        "run_id": f"{spec.key}0000",
        "experiment": "mla_table2",
        "status": "ok",
        "spec": spec.model_dump(mode="json"),
        "checkpoints": {
            name: {"epoch": epochs - 1, "tests": tests} for name in ("selected", "last", "best_iid")
        },
        "parameters": 249_168,
        "curve": curve,
        "first_losses": [2.0] * 20,
        "probe": {"validation_loss": 1.0},
        "attention": attention(spec),
        "cost": {"steps": 313 * epochs, "training_seconds": 120.0, "evaluation_seconds": 8.0},
        "provenance": {
            "created": created,
            "relength": "0.1.0",
            "commit": None,
            "dirty": None,
            "code": "0" * 12,
            "margins": provenance.margins_hash(),
            "python": "3.11.7",
            "torch": "2.13.0",
            "device": "cpu",
            "device_name": "hand",
            "threads": 1,
            "data": {"source": "generated"},
        },
    }


def failed(spec: RunSpec) -> Record:
    """A record of a run that raised, as :func:`relength.execute.execute` writes it."""
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


def _metrics(accuracy: float) -> dict[str, float]:
    return {
        "items": 2001,
        "exact_match": accuracy,
        "exact_match_true_length": accuracy,
        "token_accuracy": accuracy,
        "correct_prefix": accuracy,
        "edit_distance": 10 * (1 - accuracy),
    }
