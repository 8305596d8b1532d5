"""Traces of a trained model: what its attention looks at while it answers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from relength.specs.spec import RunSpec
    from relength.tasks.batch import Batch

TRACED = 16  # samples of a test whose pointers are recorded


def attention(spec: "RunSpec", model: "Module", device: str) -> dict[str, Any]:
    """The attention of a model, as records keep it: one kind of it, or several by name."""
    shown = traces(spec, model, device)
    sample = {"attention": attention_sample(spec, model, device)}
    return sample | ({"traces": shown} if shown else {})


def attention_sample(spec: "RunSpec", model: "Module", device: str) -> dict[str, Any] | None:
    """Record where a model looks, decoding the shortest unseen length's first sample.

    None for models whose attention is recorded by :func:`traces`.
    """
    for test in spec.task.tests[1:2]:
        batch, tokens, weights = _written(spec, model, test, 1, device)
        if not isinstance(weights, dict):
            return _sample(spec, test, batch, tokens) | {"weights": _short(weights[0])}
    return None


def traces(spec: "RunSpec", model: "Module", device: str) -> list[dict[str, Any]]:
    """Record what a model with several kinds of attention shows, at the two shortest unseen
    lengths.

    weights  name -> the first sample's, (steps, source)
    slots    name -> the place with the largest weight at each step of the first TRACED samples

    They are decoded in the batch that is scored: in some models a sample feels the others.
    """
    from relength.training.evaluate import BATCH_SIZE

    found = []
    for test in spec.task.tests[1:3]:
        batch, tokens, weights = _written(spec, model, test, BATCH_SIZE, device)
        if not isinstance(weights, dict) or not weights:
            return []
        sample = _sample(spec, test, batch, tokens)
        sample["weights"] = {name: _short(w[0]) for name, w in weights.items()}
        sample["slots"] = {name: w[:TRACED].argmax(2).tolist() for name, w in weights.items()}
        found.append(sample)
    return found


def _written(
    spec: "RunSpec", model: "Module", test: str, items: int, device: str
) -> "tuple[Batch, Tensor, Any]":
    batch = spec.task.dataset(test, spec.seed).select(slice(0, items))
    steps = batch.targets.shape[1]
    return batch, *model.generate(batch.to(device), steps, keep_weights=True)


def _sample(spec: "RunSpec", test: str, batch: "Batch", tokens: "Tensor") -> dict[str, Any]:
    source, target = spec.task.shown(batch, 0)
    return {
        "test": test,
        "source": list(source),
        "target": list(target),
        "prediction": list(spec.task.spelled(tokens[0].tolist())),
    }


def _short(weights: "Tensor") -> list[list[float]]:
    return [[round(w, 3) for w in row] for row in weights.tolist()]
