"""Set what matrix products are computed in: the policy of a spec, applied in one place.

Weights, sums and optimiser states always have the spec's ``precision``. With ``products`` exact,
so have matrix products; ``tf32`` rounds their factors to 10 bits of mantissa, ``bfloat16`` computes
them in that type where PyTorch's autocast deems it safe. Both are what GPUs have fast units for.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from relength.errors import RelengthError
from relength.training.protocols.base import Protocol

# What torch.set_float32_matmul_precision calls it; autocast needs no help for bfloat16.
SETTINGS = {"exact": "highest", "tf32": "high", "bfloat16": "highest"}


def check(training: Protocol, device: str) -> None:
    """Raise RelengthError unless this device computes matrix products as the spec asks."""
    kind = torch.device(device).type
    if training.products != "exact" and kind != "cuda":
        raise RelengthError(
            f"Matrix products in {training.products} need a GPU, and this run is to be trained on "
            f"{kind}: choose --device cuda, or products 'exact' in the spec."
        )


@contextmanager
def policy(training: Protocol, device: str) -> Iterator[None]:
    """Context in which a run is trained and tested. Waits for runs of another policy to leave it.

    Raises RelengthError when the device does not know the policy.
    """
    check(training, device)
    autocast = torch.autocast(
        torch.device(device).type,
        torch.bfloat16,
        enabled=training.products == "bfloat16",
        cache_enabled=False,  # a cached cast would be captured in a graph, once and for all
    )
    with _held(SETTINGS[training.products]), autocast:
        yield


_change = threading.Condition()
_holders = 0


@contextmanager
def _held(setting: str) -> Iterator[None]:
    """Keep PyTorch's setting, one for the whole process, while anybody relies on it."""
    global _holders
    with _change:
        _change.wait_for(lambda: not _holders or torch.get_float32_matmul_precision() == setting)
        torch.set_float32_matmul_precision(setting)
        _holders += 1
    try:
        yield
    finally:
        with _change:
            _holders -= 1
            if not _holders:
                torch.set_float32_matmul_precision(SETTINGS["exact"])
            _change.notify_all()
