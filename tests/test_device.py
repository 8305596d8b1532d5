"""Jobs on one GPU do not disturb each other; streams and graphs are replaced by ones that watch."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from relength.training import device
from relength.training.device import Graphs, on_own_stream, own_stream


class Stream:
    """A stream that takes note of who waits for it."""

    def __init__(self, number=0):
        self.number, self.waited = number, 0

    def wait_stream(self, other):
        pass

    def synchronize(self):
        self.waited += 1


class Graph:
    """A graph that takes note of the stream that it was captured on."""

    def pool(self):
        return "the memory of one stack"

    def replay(self):
        pass


@pytest.fixture
def cuda(monkeypatch):
    """A machine with two GPUs that can do nothing, and complains like CUDA about bad manners."""
    seen = SimpleNamespace(busy=0, captures=[], current=threading.local())

    def alone():
        assert not seen.busy, "what waits for the whole device disturbs a capture"

    def current_stream(which=None):
        return getattr(seen.current, "stream", None) or Stream()

    @contextmanager
    def stream(chosen):
        before, seen.current.stream = current_stream(), chosen
        yield
        seen.current.stream = before

    @contextmanager
    def graph(graph, *, stream, pool, capture_error_mode):
        alone()
        seen.busy += 1
        graph.stream = stream
        seen.captures.append((stream, pool, capture_error_mode))
        time.sleep(0.02)
        yield
        seen.busy -= 1

    fakes = {"Stream": Stream, "CUDAGraph": Graph, "graph": graph, "stream": stream}
    fakes |= {"current_stream": current_stream, "current_device": lambda: 0, "empty_cache": alone}
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(device, "_of_this_thread", threading.local())
    # To search the memory of all tests before this one would take seconds.
    monkeypatch.setattr(device, "gc", SimpleNamespace(collect=lambda: 0))
    return seen


def in_threads(work, count=4) -> list:
    found, problems = [], []

    def run():
        try:
            found.append(work())
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    return found


def test_captures_take_turns_with_each_other_and_with_what_waits_for_the_device(cuda):
    def work():
        graphs = Graphs("cuda")
        for shape in range(3):
            graphs.run(shape, lambda: None, [])
            device.release_memory()

    in_threads(work)
    assert len(cuda.captures) == 12
    assert {mode for *_, mode in cuda.captures} == {"thread_local"}


def test_each_thread_captures_all_its_graphs_on_the_stream_that_it_works_on(cuda):
    def work():
        streams = set()
        for _ in range(2):  # jobs
            graphs = Graphs("cuda:1")
            with on_own_stream("cuda:1"):
                graphs.run("short", lambda: None, [])
                graphs.run("long", lambda: None, [])
                streams.add(torch.cuda.current_stream("cuda:1"))
            streams |= {graph.stream for graph in graphs.captured.values()}
        (stream,) = streams
        assert stream is own_stream("cuda:1") and stream.number == 1
        assert stream is not own_stream("cuda:0")
        return stream

    assert len(set(in_threads(work))) == 4


def test_graphs_of_a_stack_share_memory_and_go_when_another_captures_in_their_thread(cuda):
    first, second = Graphs("cuda"), Graphs("cuda")
    with on_own_stream("cuda"):
        first.run("short", lambda: None, [])
        first.run("long", lambda: None, [])
        assert [pool for _, pool, _ in cuda.captures] == [None, "the memory of one stack"]
        assert list(first.captured) == ["short", "long"]
        in_threads(lambda: Graphs("cuda").run("short", lambda: None, []), 1)
        assert list(first.captured) == ["short", "long"], "another thread has its own"
        second.run("short", lambda: None, [])
    assert not first.captured and list(second.captured) == ["short"]
    assert own_stream("cuda").waited == 1  # a graph may still be at work


def test_what_warming_up_has_changed_is_put_back(cuda):
    weight, taken = torch.zeros(3), []

    def step():
        taken.append(weight.clone())
        weight.add_(1)

    Graphs("cuda").run("any", step, [weight])
    assert len(taken) == device.WARM_UP + 1 and torch.equal(weight, torch.zeros(3))
