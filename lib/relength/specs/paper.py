"""Describe a paper to the rest of the project: one object per folder of relength.papers.

A function that draws, recounts or reads traces is named as text, ``"module:name"`` within the
paper's folder: importing a Paper stays cheap, and :meth:`Paper.load` imports the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from relength.specs.experiments import Experiment


class Arm(NamedTuple):
    """A reading of a model that only one paper has.

    label  what pages call it
    row    what a table's row of it trains, for captions
    mark   how figures draw it: sign in words, matplotlib's marker, filled or not, and how far
           below its row; without one it is in no figure of readings
    """

    label: str
    row: str
    mark: tuple[str, str, bool, float] | None = None


@dataclass(frozen=True)
class Front:
    """A paper's part of the landing page. The first paper that has one is shown there.

    experiment  whose runs its picture shows
    artifact    the table that prints the numbers beside them
    tasks       the panels of the picture
    claim       the printed number that is answered before anybody asks
    questions   examples of what can be asked
    """

    experiment: str
    artifact: str
    tasks: tuple[str, ...]
    claim: str
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Speed:
    """The way the training speed of a paper's runs is measured.

    model  the model that is timed
    tasks  those that are timed unless others are asked for
    spec   text: (task, scale, seed) -> RunSpec of a run that is timed; scale paper prices it
    loop   text: the plain loop that it is measured against, a class made from a task's shape whose
           ``train_step`` takes a batch; frozen, as ratios of different days share a denominator
    goals  {way: times the speed of that loop} that were aimed at
    """

    model: str
    tasks: tuple[str, ...]
    spec: str
    loop: str
    goals: Mapping[str, float]


@dataclass(frozen=True)
class Paper:
    """One reproduced paper.

    Who it is:

    name   of its folder, and of its claims, deviations and results
    title  as lists of papers print it
    short  as tables abbreviate it
    idea   in one sentence
    cited  its key in ``book/references.bib``, once it has one

    parameters  of its largest model, where none that is run here has the printed size

    What it prints:

    task_names  {task in its tables: task here}, where the two differ; a whole column, as
                ``"task/test"``, where its test is another, too
    row_names   {row of its tables: model here}, where the two differ
                In both, ``"<artifact>:name"`` speaks of one table alone. A row may be another
                model in a group of columns: ``"<artifact>:row/<group>"``.
    headlines   the tables that carry its main claim
    columns     {column of these tables: heading}, where the last part of its name is none
    guessed     {beginning of a task's name: percent right of who always gives one answer}
    recounts    text: functions that do its arithmetic again, each named as its deviations name it

    Its runs:

    brings       which of ``tasks``, ``models`` and ``protocols`` no other paper has: modules or
                 packages of its folder with a registry of this name, ``TASKS`` say, as in the rooms
    experiments  in the order in which their runs are worth having
    borrowed     notebooks without runs of their own: the experiment and the artifacts whose runs
                 they show, no artifact for all of its runs and a question that the paper does not
                 ask; None where they show what is computed on the page, or measured by another
                 command
    without_runs artifacts that borrowed notebooks show beside print, and no experiment makes
    main         the experiment of its main table: with one it has a chapter of findings
    further      (experiment, arm): where a reading is trained that the main table does not have
    metrics      percentages that are read from what its records keep beside their metrics
    shares       text: record -> {test: {metric: percent}}, the reading of these
    speed        how its training speed is measured, if it is
    pairs        text: tuple of :class:`relength.bench.pairs.Pair`, work that is done in two ways
    benchmark    text: (rounds) -> (measurement, its words), for what else it says of speed

    Its names in tables and figures:

    colours      {model: colour}; a model has one colour through the whole book
    variants     {model: the model that it varies}, where its name does not say so
    nicknames    {model: what a reader may call it}
    arms         {arm: Arm}, those that other papers do not have
    released     what a table's row of this reading trains, for captions
    words        {word of a task's name: how it is written}, where that is not Capitalised
    task_notes   {task: what it asks of attention}, a line in figures
    asked        {task: a sentence on what it asks of attention}, for captions
    spans        text: (task, source, target) -> where in the source each symbol can be read off,
                 the first and the last position; of tasks whose records keep attention

    Its claims and pages:

    computed     text: store -> claims that no training decides (relength.report.computed); of the
                 store it reads what was measured, and no run
    quoted       claims by which it would be quoted
    asked_first  claims that a reader of its findings asks about first
    claims       {passage: claims that it shows}; a claim that no file has yet is left out
    effects      {passage: {title of a deviation: what the passage calls the difference}}
    selection    a sentence: how far beyond training its rule for choosing checkpoints looks
    known        text: (runs' ends, beginning, Runs) -> words on runs that know what they trained on
    near         text: (printed cells, Runs) -> words on which readings give these cells
    passages     texts: {name: function of a survey}; in place of a general one of the same name
    front        its part of the landing page
    """

    name: str
    title: str
    short: str
    idea: str
    cited: str = ""
    parameters: float = 0.0

    task_names: Mapping[str, str] = field(default_factory=dict)
    row_names: Mapping[str, str] = field(default_factory=dict)
    headlines: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    guessed: Mapping[str, float] = field(default_factory=dict)
    recounts: str = ""

    brings: tuple[str, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    borrowed: Mapping[str, tuple[str, tuple[str, ...]] | None] = field(default_factory=dict)
    without_runs: tuple[str, ...] = ()
    main: str = ""
    further: tuple[str, str] | None = None
    metrics: tuple[str, ...] = ()
    shares: str = ""
    speed: Speed | None = None
    pairs: str = ""
    benchmark: str = ""

    colours: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)
    nicknames: Mapping[str, str] = field(default_factory=dict)
    arms: Mapping[str, Arm] = field(default_factory=dict)
    released: str = "the released code"
    words: Mapping[str, str] = field(default_factory=dict)
    task_notes: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    spans: str = ""

    computed: str = ""
    quoted: tuple[str, ...] = ()
    asked_first: tuple[str, ...] = ()
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    selection: str = ""
    known: str = ""
    near: str = ""
    passages: tuple[str, ...] = ()
    front: Front | None = None

    def load(self, text: str) -> Any:
        """Import what a field names as ``"module:name"``."""
        module, _, name = text.partition(":")
        return getattr(import_module(f"relength.papers.{self.name}.{module}"), name)
