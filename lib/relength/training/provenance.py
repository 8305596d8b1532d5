"""Collect where a record comes from: code, versions, machine, data."""

import hashlib
import os
import platform
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any

from relength import git
from relength.paths import ROOT
from relength.specs import registry
from relength.specs.claim_files import claims_digest
from relength.specs.experiments import experiments
from relength.specs.margins import margins_hash

PACKAGE = Path(__file__).parents[1]
# By which a processor is told to do without some instructions, and values that say: use them all.
INSTRUCTION_LIMITS = {
    "ATEN_CPU_CAPABILITY": ("", "AVX512"),
    "ONEDNN_MAX_CPU_ISA": ("", "ALL", "DEFAULT"),
    "MKL_ENABLE_INSTRUCTIONS": ("", "AVX512"),
}
# What a trained model and its metrics depend on. A change here asks for a new probe, no more. Some
# names are of earlier layouts: records name commits whose files lay there.
TRAINING_CODE = (
    "batch.py",
    "data.py",
    "streams.py",
    "losses.py",
    "evaluate.py",
    "tasks",
    "models",
    "engine",
    "kernels",
    "training",
)
# Of a paper's folder it is what registers tasks, models and protocols, see specs.paper.
BROUGHT = ("tasks", "models", "protocols")


def collect(
    device: str,
    data: dict[str, Any],
    experiment: str | None = None,
    began: Mapping[str, Any] | None = None,
    places: Sequence[Sequence[str]] = (),
) -> dict[str, Any]:
    """Provenance of a run made now on ``device`` from ``data`` (its source and checksums).

    experiment  what the run is of, if of any: its paper's claims may be judged by it
    began       the :func:`origin` noted when the run began, if that was earlier
    places      where it was trained, in order, see :func:`place`; here alone if empty. The last of
                them is the record's; others, and the one that tests if it is another, are named
                apart. Python and threads are those of the test
    """
    import torch

    found = experiments().get(experiment) if experiment else None
    first = {**origin(), **(began or {})}
    claims = first.pop("claims")
    here = place(device)
    *before, last = (tuple(one) for one in places or [here])
    kind, name, library = last

    def called(other: tuple[str, str, str]) -> str:
        return f"{name}, PyTorch {other[2]}" if other[1] == name else other[1]

    others = dict.fromkeys(called(other) for other in before if other != last)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "relength": version("relength"),
        **first,
        "code": code_fingerprint(),
        **({"claims": claims.get(found.paper)} if found else {}),
        "python": platform.python_version(),
        "torch": library,
        "device": kind,
        "device_name": name,
        **({"other_devices": [*others]} if others else {}),
        **({"tested_on": called(here)} if here != last else {}),
        "threads": torch.get_num_threads(),
        "data": data,
    }


@cache
def _margins() -> str:
    return margins_hash()


@cache
def _claims(paper: str) -> str | None:
    return claims_digest(paper)


def pin() -> None:
    """Note commit, code, margins and claims now: later changes must not enter records."""
    commit(), code_fingerprint(), _margins()
    for paper in registry.papers():
        _claims(paper)


@cache
def commit() -> dict[str, Any]:
    """The checkout's commit, and whether the code differs from it; nulls outside a checkout."""
    head = git.output(ROOT, "rev-parse", "HEAD")
    changed = git.output(ROOT, "status", "--porcelain", "--", "lib")
    if head is None or changed is None:
        return {"commit": None, "dirty": None}
    return {"commit": head.decode().strip(), "dirty": bool(changed.strip())}


def origin() -> dict[str, Any]:
    """The part of :func:`collect` that is about when a run begins, and not when it ends.

    A run that is stopped and goes on later, after a further commit, keeps that of its beginning.
    Its claims are the digests of all papers', by name.
    """
    claims = {paper: _claims(paper) for paper in registry.papers()}
    return {**commit(), "margins": _margins(), "claims": claims}


def warn_without_commit() -> None:
    """Warn, where records made now name no commit, why that is and what helps."""
    if commit()["commit"] is None and (why := git.trouble(ROOT)):
        warnings.warn(
            f"Records made here name no commit and cannot be contributed, as {why}.", stacklevel=3
        )


@cache
def code_fingerprint() -> str:
    """12 hex digits over the files that training and evaluation depend on."""
    every = {file.relative_to(PACKAGE): file for file in PACKAGE.rglob("*.py")}
    return fingerprint(
        {name.as_posix(): file.read_bytes() for name, file in every.items() if trains(name)}
    )


def trains(file: PurePath) -> bool:
    """Tell whether a file, by its path below the package, is training code."""
    return _place(file) is not None


def _place(file: PurePath) -> int | None:
    """A number by which training code is put in order, room by room; None for other code."""
    room, *inside = file.parts
    if room == "papers":
        brought = len(inside) > 1 and inside[1].removesuffix(".py") in BROUGHT
        return len(TRAINING_CODE) if brought else None
    return TRAINING_CODE.index(room) if room in TRAINING_CODE else None


def fingerprint(files: Mapping[str, bytes]) -> str:
    """12 hex digits over training code: {path below the package: content}, in any order."""
    digest = hashlib.sha256()
    for file in sorted(map(PurePath, files), key=lambda file: (_place(file), file)):
        digest.update(file.as_posix().encode() + b"\0" + files[file.as_posix()])
    return digest.hexdigest()[:12]


def place(device: str) -> tuple[str, str, str]:
    """Kind and name of a device, and the version of PyTorch that computes on it."""
    import torch

    return device_kind(device), device_name(device), torch.__version__.split("+")[0]


def device_kind(device: str) -> str:
    """``cpu`` or ``cuda``, of the name of a device with or without its number."""
    return device.partition(":")[0]


@cache
def device_name(device: str) -> str:
    """Human name of the processor or GPU.

    A processor that was told to do without some of its instructions rounds as another one would,
    and takes another time, so that it is named as another: *AMD EPYC limited to AVX2*. So is a GPU
    that was told to compute with other kernels: *NVIDIA H100 with Triton 3.6.0*.
    """
    if device_kind(device) == "cuda":
        import torch

        from relength.kernels import late  # in here: pages read records without it

        name = torch.cuda.get_device_name(device)
        return f"{name} with Triton {version('triton')}" if late.triton_asked() else name
    flags = _described("flags").split()
    asked = {name: os.environ.get(name, "").upper() for name in INSTRUCTION_LIMITS}
    limits = dict.fromkeys(
        limit
        for name, limit in asked.items()
        if limit not in INSTRUCTION_LIMITS[name]
        and not (limit.startswith(("AVX2", "AVX512")) and "avx512f" not in flags)
    )
    return _processor() + (f" limited to {'/'.join(limits)}" if limits else "")


def _processor() -> str:
    return _described("model name") or platform.processor() or platform.machine()


def _described(what: str) -> str:
    """Read what Linux says of the first core; nothing elsewhere."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(what):
                return line.split(":", 1)[1].strip()
    return ""
