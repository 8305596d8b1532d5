"""What jobs that share a GPU need to know of it."""

from collections.abc import Iterator

import torch

# What a library says that has no memory for itself: CUDA for a graph, cuBLAS and cuDNN for a handle
# or a workspace.
NO_MEMORY = ("out of memory", "ALLOC_FAILED")


def out_of_memory(error: BaseException) -> bool:
    """Whether an error comes from a lack of memory, or from what was tried after one."""
    return any(
        isinstance(e, torch.OutOfMemoryError)
        or (isinstance(e, RuntimeError) and any(words in str(e) for words in NO_MEMORY))
        for e in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from, or while they were handled."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        e = waiting.pop()
        if e is not None and id(e) not in seen:
            seen.add(id(e))
            yield e
            waiting += [e.__cause__, e.__context__]
