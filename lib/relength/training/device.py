"""Manage what jobs share on a GPU: their streams, their graphs, its memory.

Jobs of several threads run side by side, each on a stream of its thread. What waits for the whole
device would disturb the capture of a graph in another thread, so captures take turns, with each
other and with that.
"""

import gc
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

# What a library says that has no memory for itself: CUDA for a graph, cuBLAS and cuDNN for a handle
# or a workspace.
NO_MEMORY = ("out of memory", "ALLOC_FAILED")

WARM_UP = 2  # steps before one is captured: whatever is made once must not be part of a graph

_one_at_a_time = threading.Lock()
_of_this_thread = threading.local()


def own_stream(device: str) -> torch.cuda.Stream:
    """The one stream of this thread on a GPU.

    The same one as long as the thread lives: PyTorch hands out a few streams in turn, so that
    threads which asked for new ones again and again would soon share them. With a stream they would
    share the workspace of cuBLAS, too.
    """
    number = torch.device(device).index
    number = torch.cuda.current_device() if number is None else number
    streams = vars(_of_this_thread).setdefault("streams", {})
    if number not in streams:
        streams[number] = torch.cuda.Stream(number)
    return streams[number]


@contextmanager
def on_own_stream(device: str) -> Iterator[None]:
    """Context in which this thread works on a stream of its own; nothing changes on a CPU."""
    if torch.device(device).type == "cpu":
        yield
        return
    with torch.cuda.stream(own_stream(device)):
        yield


def wait(device: str) -> None:
    """Wait for what this thread has asked of the device, not for the work of other threads."""
    if torch.device(device).type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def release_memory() -> None:
    """Hand back the memory that nobody holds any more."""
    gc.collect()
    with _one_at_a_time:
        torch.cuda.empty_cache()


class Graphs:
    """The steps of one stack as CUDA graphs, one per shape of batch.

    A thread has the graphs of one stack only: those of the one before are dropped when another
    captures. All of them use the workspace of the thread's stream, which goes with the first graph
    that is dropped.
    """

    def __init__(self, device: str):
        self.device = device
        self.captured: dict[Hashable, Any] = {}

    def run(self, shape: Hashable, step: Callable[[], None], changed: Iterable[Tensor]) -> None:
        """Take a step, captured when its shape is new; it must find its data where they were then.

        changed  all tensors that a step changes
        """
        if shape not in self.captured:
            self.captured[shape] = self._capture(step, list(changed))
        self.captured[shape].replay()

    def _capture(self, step: Callable[[], None], changed: list[Tensor]) -> Any:
        """Record a step. Warming up takes steps, so what they change is put back."""
        former = vars(_of_this_thread).get("graphs", lambda: None)()
        if former is not None and former is not self:
            wait(self.device)
            former.captured.clear()
        _of_this_thread.graphs = weakref.ref(self)
        before = [tensor.clone() for tensor in changed]
        graph = record(step, self.device, next(iter(self.captured.values()), None))
        for tensor, old in zip(changed, before, strict=True):
            tensor.copy_(old)
        return graph


def record(
    step: Callable[[], None], device: str, beside: torch.cuda.CUDAGraph | None
) -> torch.cuda.CUDAGraph:
    """A step as a graph, after some that warm up.

    beside  a graph that never runs at the same time: they share memory
    """
    caller, stream = torch.cuda.current_stream(device), own_stream(device)
    with torch.cuda.stream(stream):
        stream.wait_stream(caller)
        for _ in range(WARM_UP):
            step()
        graph = torch.cuda.CUDAGraph()
        options = {"stream": stream, "pool": None if beside is None else beside.pool()}
        # Other threads may be busy, but must not be capturing.
        with (
            _one_at_a_time,
            torch.cuda.graph(graph, capture_error_mode="thread_local", **options),
        ):
            step()
        caller.wait_stream(stream)
    return graph


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error comes from a lack of memory, or from what was tried after one."""
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
