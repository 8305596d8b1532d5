"""Traces of a trained model: what its attention looks at while it answers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
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


BINS = 20  # of histograms of gates, from 0 to 1
PORTRAYED = 64  # samples in a portrait, as in the paper's
MEASURED = 16  # samples whose states are recorded step by step
DIMENSIONS = 16  # principal components that states are recorded in
PERPLEXITY = 50  # of a portrait, as in the paper's


def memory(spec: "RunSpec", model: "Module", device: str) -> dict[str, Any]:
    """Trace a memory network while it reads and while it writes: gates and controller states.

    modes   at the longest length trained on: how often the allocation gate (write) and the content
            part of the read mode (read, all heads) lie in each of BINS bins
    states  at the length that selects: the controller's cell states before any compression, in
            principal components, and portraits of them; none for a controller without states

    The step of the flag belongs to the first phase, as in the paper's figures.
    """
    task = spec.task
    batch = task.dataset(task.known_test, spec.seed)
    seen = model.trace_memory(batch.to(device))
    gates = {"write": seen["allocation_gates"][..., None], "read": seen["read_modes"][..., 1]}
    found: dict[str, Any] = {
        "modes": {
            "test": task.known_test,
            "items": len(batch),
            **{
                name: {phase: _histogram(part) for phase, part in _phases(values, batch).items()}
                for name, values in gates.items()
            },
        }
    }
    test = str(task.dev_length)
    batch = task.dataset(test, spec.seed).select(slice(0, PORTRAYED))
    seen = model.trace_memory(batch.to(device))
    if "cells" in seen:
        cells = seen["cells"].cpu()
        read = batch.inputs.shape[1] - batch.targets.shape[1]
        found["states"] = {
            "test": test,
            "read_steps": read,
            "read": _letters(batch.inputs[:MEASURED, :read]),
            **_principal(cells[:MEASURED]),
            "portraits": {"encoding": _portrait(cells[:, :read])},
        }
        if batch.targets.shape[1] > 1 and bool(batch.mask.all()):  # else answers are padded
            found["states"]["portraits"]["decoding"] = _portrait(cells[:, read:])
    return found


def _phases(values: "Tensor", batch: "Batch") -> "dict[str, Tensor]":
    """Values (B, S, k) while reading and while writing; padding is left out."""
    import torch

    read = batch.inputs.shape[1] - batch.targets.shape[1]
    inside = torch.arange(values.shape[1]) < batch.input_lengths[:, None].cpu()  # (B, S)
    values = values.cpu()
    return {
        "encoding": values[:, :read][inside[:, :read]],
        "decoding": values[:, read:][inside[:, read:]],
    }


def _histogram(values: "Tensor") -> list[int]:
    return values.float().histc(BINS, 0, 1).int().tolist()


def _letters(inputs: "Tensor") -> list[str]:
    """Inputs (B, S, C) as a text per sample: equal letters where equal symbols are read."""
    from string import ascii_lowercase

    _, letters = inputs.cpu().flatten(0, 1).unique(dim=0, return_inverse=True)
    return [
        "".join(ascii_lowercase[i] for i in row) for row in letters.view(inputs.shape[:2]).tolist()
    ]


def _portrait(states: "Tensor") -> dict[str, Any]:
    """States (B, S, H) projected to (B, S, 2) by t-SNE, as the paper does it.

    Perplexity 50, and else the defaults of scikit-learn 0.23, which the paper names; later ones
    differ. Few states have a lower perplexity, since it has to stay below their number.
    """
    from sklearn.manifold import TSNE

    flat = states.flatten(0, 1).numpy()
    projected = TSNE(
        perplexity=min(PERPLEXITY, (len(flat) - 1) / 3),
        learning_rate=200.0,
        init="random",
        random_state=0,
    ).fit_transform(flat)
    return small_integers(projected.reshape(*states.shape[:2], 2))


def small_integers(values: "np.ndarray") -> dict[str, Any]:
    """An array as text of small integers.

    shape   of the array
    unit    what an integer of 1 stands for
    values  base64 of int8
    """
    import base64

    import numpy as np

    unit = float(np.abs(values).max()) / 127 or 1.0
    rounded = np.round(values / unit).astype(np.int8)
    return {
        "shape": list(rounded.shape),
        "unit": unit,
        "values": base64.b64encode(rounded.tobytes()).decode(),
    }


def decoded(kept: "Mapping[str, Any]") -> "np.ndarray":
    """An array that a record keeps as :func:`small_integers`."""
    import base64

    import numpy as np

    values = np.frombuffer(base64.b64decode(kept["values"]), dtype=np.int8)
    return values.reshape(kept["shape"]) * kept["unit"]


def _principal(states: "Tensor") -> dict[str, Any]:
    """States (B, S, H) in their largest principal components.

    explained  share of the variance that the components have
    """
    import torch

    flat = states.flatten(0, 1).double()
    centred = flat - flat.mean(0)
    variances, directions = torch.linalg.eigh(centred.T @ centred / len(centred))
    count = min(DIMENSIONS, flat.shape[1])
    directions = directions[:, -count:].flip(1)
    largest = directions.abs().argmax(0)
    directions = directions * directions[largest, torch.arange(count)].sign()  # one of two signs
    components = (centred @ directions).view(*states.shape[:2], count)
    explained = float(variances[-count:].sum() / variances.sum().clamp(min=1e-30))
    return {"explained": explained, **small_integers(components.numpy())}
