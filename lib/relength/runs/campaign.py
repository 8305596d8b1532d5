"""Many runs, most valuable first: planned, trained within a budget, recorded as they finish.

A campaign may be stopped or killed at any moment. What is finished is recorded, one line per run by
this process alone; what is not resumes from the state that it saved last.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from relength import stopping
from relength.errors import RelengthError
from relength.runs.announcements import announced
from relength.runs.execute import Job, execute, warm_up, without_results
from relength.runs.executors import THIS_MACHINE, check_device, default_workers, place
from relength.runs.plan import Run
from relength.runs.prices import Pace, Prices, cell, own_runs, pace_of, timed
from relength.runs.store import Record, Store, Unwritable
from relength.specs.experiments import experiment as find_experiment
from relength.specs.spec import RunSpec
from relength.training import arithmetic, provenance, stacks

# Replicas that are trained as one program: what fills a large GPU; on a CPU stacking does not pay.
STACK = {"cpu": 1, "cuda": 40}
WARM_UP = 0.1  # of the budget, at most, for measuring what has no price yet
LOOK_UP_SECONDS = 1.0  # how often to see whether somebody asks a campaign on Dask to stop


class Campaign:
    """Trains runs and records them in a store.

    ranked   whether the runs are in their order already; else the most valuable come first
    known    other stores, whose records count when value and price of a run are estimated
    workers  processes (default: one per core, one at scale smoke) or, on a GPU, threads; 1 trains
             in this process
    stack    runs trained as one program (default: 1 on a CPU, 40 on a GPU)
    budget   seconds after which unfinished runs are left to a resume
    cluster  train on Dask workers: ``local`` for some on this machine, or a scheduler's address

    Raises RelengthError, before anything is trained, when there is no such device, or it does not
    know the arithmetic that a spec asks for.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        store: Store,
        *,
        known: Sequence[Store] = (),
        ranked: bool = False,
        device: str = "cpu",
        workers: int | None = None,
        stack: int | None = None,
        budget: float | None = None,
        cluster: str | None = None,
    ):
        elsewhere = cluster not in (None, THIS_MACHINE)
        check_device(device, elsewhere=elsewhere)
        for run in runs:
            arithmetic.check(run.spec.training, device)
        self.store, self.device, self.cluster = store, device, cluster
        self.workers = workers or default_workers(device, {run.spec.scale for run in runs})
        self.stack = stack or STACK[provenance.device_kind(device)]
        self.budget = budget
        self.deadline: float | None = None
        recorded = own_runs(store, *known)
        # Of machines elsewhere this one knows no prices.
        self.prices = None if elsewhere else Prices.on(device, recorded, timed(store))
        self.seeds = Counter(cell(spec) for spec, _ in recorded)
        self.runs = list(runs) if ranked else self._ranked(runs)
        self.ranked = ranked
        self.done = 0
        self.waiting: list[Job] = []
        self.running: dict[Future, tuple[Job, float]] = {}

    def records(self) -> Iterator[Record]:
        """Train, and append each record as it comes; this process is the only writer.

        Raises RelengthError when a scheduler does not answer, or workers are lost for good; and
        before anything is trained when nothing can be recorded, or another process trains some of
        these runs into the same store.
        """
        if not self.runs:
            return
        provenance.pin()
        provenance.warn_without_commit()
        for task in {run.spec.task for run in self.runs}:
            task.provenance()  # missing or damaged data are found before anything is trained
        for experiment in {run.experiment.name: run.experiment for run in self.runs}.values():
            self.store.check_writable(experiment.paper, experiment.name)
        with announced(self.store, {run.spec.key for run in self.runs}):
            yield from self._trained()

    def _trained(self) -> Iterator[Record]:
        if self.budget is not None:
            self.deadline = time.time() + self.budget
        self.workers = min(self.workers, len(self._jobs()))
        with place(self.cluster, self.workers, self.device) as pool:
            try:
                if self.deadline is not None and self.prices is not None:
                    self._warm_up(pool, time.time() + WARM_UP * self.budget)
                self.waiting = self._jobs()
                yield from self._train(pool)
            except (BrokenProcessPool, EOFError, ConnectionError):
                if stopping.asked():  # and who was to start workers, or one of them, was ended
                    return
                raise RelengthError(
                    "A training process was ended from outside (often for want of memory): run the "
                    "same command again, finished runs are recorded and unfinished ones resume."
                ) from None

    def seconds(self) -> tuple[float, int]:
        """The price of all runs on the device, as far as prices are known, and how many have
        none.
        """
        if self.prices is None:
            return 0.0, len(self.runs)
        return self.prices.total(run.spec for run in self.runs)

    def left(self) -> float | None:
        """Seconds until everything is trained, or the budget is over; None while nobody can tell.

        What has no price is taken to cost as much as the mean of what has one.
        """
        budget = None if self.deadline is None else max(self.deadline - time.time(), 0.0)
        now = time.time()
        # Copies: a progress bar asks from a thread of its own.
        jobs = [(job, 0.0) for job in list(self.waiting)]
        waiting = len(jobs)
        jobs += [(job, now - began) for job, began in list(self.running.values())]
        walls = [self._wall(job) for job, _ in jobs]
        known = [wall for wall in walls if wall is not None]
        if self.prices is None or (jobs and not known):
            return budget
        mean = sum(known) / len(known) if known else 0.0
        ahead = [
            max((mean if wall is None else wall) - spent, 0.0)
            for wall, (_, spent) in zip(walls, jobs, strict=True)
        ]
        left = max(sum(ahead) / self.workers, *ahead[waiting:], 0.0)
        return left if budget is None else min(left, budget)

    def least(self) -> float | None:
        """Seconds until the shortest job has a state to save; None while nobody can tell."""
        known = [least for job in self._jobs() if (least := self._least(job)) is not None]
        return min(known, default=None)

    def saved(self) -> int:
        """The number of runs that have begun and left a state to resume from."""
        return sum(self._state(run.spec.key).exists() for run in self.runs)

    def _state(self, key: str) -> Path:
        return self.store.checkpoints / f"{key}.pt"

    def _ranked(self, runs: Sequence[Run]) -> list[Run]:
        """Most valuable first: fewest seeds in its cell, then what has begun, then the cheapest."""
        seeds, keys = Counter(self.seeds), []
        for number, (_, spec) in enumerate(runs):
            price = None if self.prices is None else self.prices.seconds(spec)
            begun = self._state(spec.key).exists()
            keys.append((seeds[cell(spec)], not begun, price is None, price or 0.0, number))
            seeds[cell(spec)] += 1
        return [runs[number] for *_, number in sorted(keys)]

    def _jobs(self) -> list[Job]:
        """The runs in jobs for one worker each, in the order of their first runs."""
        rank = {(run.experiment.name, run.spec.key): i for i, run in enumerate(self.runs)}
        wanted: dict[str, list[RunSpec]] = {}
        for run in self.runs:
            wanted.setdefault(run.experiment.name, []).append(run.spec)
        sharing = 1 if provenance.device_kind(self.device) == "cpu" else self.workers
        jobs = [
            Job(
                specs=tuple(group),
                experiment=name,
                device=self.device,
                checkpoints=self.store.checkpoints,
                deadline=self.deadline,
                sharing=sharing,
            )
            for name, specs in wanted.items()
            for group in stacks(specs, self.stack)
        ]
        return sorted(jobs, key=lambda job: rank[job.experiment, job.specs[0].key])

    def _wall(self, job: Job) -> float | None:
        """Seconds from a job's beginning to its end; None where nothing was measured."""
        return None if self.prices is None else self._lasting(job, self.prices.steps)

    def _least(self, job: Job) -> float | None:
        """Seconds until a job has a state to save, which it has after an epoch."""
        return self._lasting(job, lambda s: s.training.most_steps(s.task) / s.training.intervals)

    def _lasting(self, job: Job, steps: Callable[[RunSpec], float]) -> float | None:
        """Seconds of so many steps of each of a job's runs."""
        paces = [self.prices and self.prices.pace(spec) for spec in job.specs]
        if None in paces:
            return None
        seconds = [p.seconds * steps(spec) for p, spec in zip(paces, job.specs, strict=True)]
        # A stack takes about as long whether it is full or not.
        together = max(len(paces), paces[0].together)
        return sum(seconds) / len(seconds) * together * job.sharing

    def _next(self) -> Job | None:
        """The first job that fits into the budget, else the first that can at least be begun."""
        if stopping.time_is_up(self.deadline):
            return None
        left = float("inf") if self.deadline is None else self.deadline - time.time()
        for fits in (self._wall, self._least):
            for i, job in enumerate(self.waiting):
                if (fits(job) or 0.0) <= left:
                    return self.waiting.pop(i)
        return None

    def _measured(self, job: Job) -> bool:
        """Tell whether a job's price is known, and not estimated from other tasks."""
        return all(map(self.prices.knows, job.specs))

    def _warm_up(self, pool: Executor, until: float) -> None:
        """Time runs without a price, most valuable first, until the warm-up's limit.

        Prices change the order of runs that are equally valuable.
        """
        unknown = iter([job for job in self._jobs() if not self._measured(job)])

        def choose() -> Job | None:
            if time.time() >= until or stopping.asked():
                return None
            return next((job for job in unknown if not self._measured(job)), None)

        for job, future in self._worked(pool, warm_up, choose, self.workers):
            if future.exception() is None:  # else training it will say what is wrong
                for spec in job.specs:
                    self.prices.note(spec, Pace(future.result(), len(job.specs)))
        if not self.ranked:
            self.runs = self._ranked(self.runs)

    def _train(self, pool: Executor) -> Iterator[Record]:
        specs = {(run.experiment.name, run.spec.key): run.spec for run in self.runs}
        # A scheduler elsewhere is given everything at once: its workers come and go.
        ahead = len(self.waiting) if self.prices is None else self.workers
        for job, future in self._worked(pool, execute, self._next, ahead):
            records = future.result()
            known = {record["key"] for record in records}
            rest = tuple(spec for spec in job.specs if spec.key not in known)
            if records and rest:  # half of a stack, which has begun and so comes first
                self.waiting.insert(0, replace(job, specs=rest))
            for record in records:
                spec = specs.pop((record["experiment"], record["key"]), None)
                if spec is None:  # completed twice, which changes nothing
                    continue
                record = self._append(record)
                # Only now: a kill before this line costs no training.
                self._state(spec.key).unlink(missing_ok=True)
                self.done += 1
                pace = pace_of(record) if record["status"] == "ok" else None
                if self.prices is not None and pace is not None:
                    self.prices.note(spec, pace)
                yield record

    def _append(self, record: Record) -> Record:
        """Record a run; one whose results cannot be written down, as failed: the others go on."""
        paper = find_experiment(record["experiment"]).paper
        try:
            self.store.append(paper, record)
        except Unwritable as reason:
            record = without_results(record, str(reason))
            self.store.append(paper, record)
        return record

    def _worked(
        self, pool: Executor, work: Callable, choose: Callable[[], Job | None], ahead: int
    ) -> Iterator[tuple[Job, Future]]:
        """Give the pool one chosen job after the other; yield those that are done.

        ahead  how many it has at most: an executor that works on submission records as it goes
        """
        while True:
            while len(self.running) < ahead and (job := choose()) is not None:
                self.running[pool.submit(work, job)] = job, time.time()
            if not self.running:
                return
            timeout = None if self.cluster is None else LOOK_UP_SECONDS
            done, _ = wait(self.running, timeout, return_when=FIRST_COMPLETED)
            for future in done:
                yield self.running.pop(future)[0], future
            if self.cluster is not None and stopping.asked():  # its workers have not heard of it
                self.running.clear()
                return
