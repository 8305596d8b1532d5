"""Counter-based random streams: one seed, a separate stream for every purpose.

A stream is a pure function of ``(seed, purpose, path)``. No draw depends on how many other draws
came before it, so a run is the same alone or in a stack, and after a resume.
"""

import hashlib
import json

import numpy as np

# Evaluation sets are fixed per task and length: they belong to this seed, never to a run's own.
EVALUATION_SEED = 20230723


def stream(seed: int, purpose: str, *path: int | str) -> np.random.Generator:
    """Philox generator keyed by the SHA-256 of ``(seed, purpose, path)``.

    Purposes in use: ``initialisation``, ``data``, ``order``, ``lengths``, ``evaluation``; what is
    drawn inside a step has its own hash, see :mod:`relength.kernels.hashing`.
    """
    digest = hashlib.sha256(json.dumps([seed, purpose, *path]).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def dropout_key(seed: int, site: str) -> int:
    """31-bit key of a dropout site of a run; the optimiser step is mixed in by the mask itself."""
    digest = hashlib.sha256(json.dumps([seed, "dropout", site]).encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1
