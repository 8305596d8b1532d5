"""Count where recorded pointers point: three shares per test, from the traces of a run.

A record keeps, of the first samples of the two shortest unseen tests, the slot with the largest
weight of every pointer at every step (:func:`relength.runs.execute.traces`). What the PANM paper
shows in pictures (Figure 2c and d) is counted here, over all those samples and steps, in percent.

pointer_advances  steps at which the Mode-1 pointer that began at the base address is one slot
                  further than at the step before
pointer_sharp     steps at which that pointer gives more than half of its weight to one slot
                  (of the first sample, whose weights are recorded)
partner_found     steps at which the Mode-2 pointer is at the slot of the token to be written, in
                  tasks that write tokens which they have read
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from relength.specs.spec import RunSpec
from relength.streams import EVALUATION_SEED, dropout_key, stream
from relength.tasks import Task
from relength.tasks.algorithmic import AlgorithmicTask

# Tasks that are done by walking through memory: where the pointer begins that walks.
WALKS = {"panm_copy": "base", "panm_reverse": "end"}


def shares(record: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """{test: {metric: percent}} of a recorded run; empty if it has no traced pointers."""
    if not record.get("traces"):
        return {}
    task = RunSpec.recorded(record["spec"]).task
    return {sample["test"]: _of(sample, task) for sample in record["traces"]}


def _of(sample: Mapping[str, Any], task: Task) -> dict[str, float]:
    found = {}
    slots = {name: np.array(places) for name, places in sample["slots"].items()}  # (samples, T)
    base = next((name for name in slots if "from the base" in name), None)
    if base and slots[base].shape[1] > 1:
        found["pointer_advances"] = _percent(np.diff(slots[base], axis=1) == 1)
    if base:
        found["pointer_sharp"] = _percent(np.max(sample["weights"][base], axis=1) > 0.5)
    relation = next((name for name in slots if name.startswith("mode 2")), None)
    if relation and isinstance(task, AlgorithmicTask):
        wanted = places(task, sample["test"], len(slots[relation]))
        found["partner_found"] = _percent(slots[relation] == wanted)
    return found


def _percent(yes: np.ndarray) -> float:
    return 100 * float(yes.mean())


@lru_cache(maxsize=64)
def places(task: Task, test: str, count: int) -> np.ndarray:
    """The slots (count, T) that hold the tokens to be written in the first samples of a test.

    task: one of those that write tokens that they have read; with flags, slot 0 is the start mark.
    """
    split = task.splits()[test]
    random = stream(EVALUATION_SEED, "evaluation", task.name, test, split.shortest)
    return task.draw(random, split.size, split.shortest).places[:count] + task.flags


def told_apart(count: int) -> int:
    """Return how far the bits count that tell ``count`` addresses in a row apart.

    That is to the next power of two: of n consecutive numbers no two are equal modulo any power
    of two from n on, whatever the first, and no higher bit is needed to know which is which.
    """
    return 1 << (count - 1).bit_length()


def wrong_bits(record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """{test: which bits of the addresses pointed at are wrong, (samples, T, b), lowest first}.

    Of the Mode-1 pointer that walks over the memory, on the tasks of :data:`WALKS`; of the largest
    weight's address at each step, beside that of the token to be written.
    """
    if record["spec"]["task"]["name"] not in WALKS or not record.get("traces"):
        return {}
    spec, found = RunSpec.recorded(record["spec"]), {}
    for sample in record["traces"]:
        ending = f"from the {WALKS[spec.task.name]}"
        walking = [np.array(slots) for name, slots in sample["slots"].items() if ending in name]
        if walking:
            (slots,) = walking  # (samples, T)
            base = bases(spec, len(slots))[:, None]
            wanted = base + places(spec.task, sample["test"], len(slots))
            different = (base + slots) ^ wanted
            found[sample["test"]] = different[..., None] >> np.arange(spec.model.bits) & 1 == 1
    return found


# Of the hash that draws base addresses in tests (relength.kernels.hashing), computed here without
# PyTorch, which reading records must not wait for. A test compares the two.
GOLDEN, MIX_A, MIX_B = np.uint32(0x1E3779B1), np.uint32(0x045D9F3B), np.uint32(0x119DE1F3)


def bases(spec: RunSpec, count: int) -> np.ndarray:
    """The base addresses (count,) that the first samples of a test have."""
    if spec.model.base_in_tests == "zero":
        return np.zeros(count, dtype=np.int64)
    size = 2**spec.model.bits
    draws = size if spec.model.of_the_text else size + 1
    key = _scrambled(np.array([dropout_key(EVALUATION_SEED, "base address")], dtype=np.uint32))
    place = np.arange(count, dtype=np.uint32)
    bits = _scrambled(_scrambled(place * GOLDEN + key) + GOLDEN).astype(np.int64)
    return (bits * draws >> 32) % size


def _scrambled(x: np.ndarray) -> np.ndarray:
    """Mix 32 bits; products wrap around."""
    x = (x ^ (x >> np.uint32(16))) * MIX_A
    x = (x ^ (x >> np.uint32(16))) * MIX_B
    return x ^ (x >> np.uint32(16))
