"""The numbers and claims that the papers print, as data: files of each paper's folder
``published``.

artifacts.csv     one row per table or figure with results
tables/*.csv      one row per cell of a table; cells that the paper leaves empty stay empty
claims.csv        one row per claim of the prose or a caption, in our words

The tables hold what is printed. Where the papers contradict themselves stands in
``book/deviations/<paper>.yml``; :mod:`relength.report.recounts` does their arithmetic again.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from relength.errors import RelengthError
from relength.specs import registry

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = (
    "median",
    "mean",
    "max",
)  # columns "copy/median": what is printed of the runs' results


def name_of(artifact: str) -> str:
    """Give a paper's own name of an artifact: Figure 7 left of ``<paper>-fig-7-left``."""
    kind, *number = artifact.split("-")[1:]
    return " ".join([{"fig": "Figure"}.get(kind, kind.capitalize()), *number])


def artifacts() -> "pd.DataFrame":
    """Tables and figures of all papers.

    Columns: artifact ("<paper>-table-2"), paper, kind (table or figure), title, metric, protocol,
    needs, values (file below the paper's folder ``published``, or empty), notes. Empty cells are
    empty strings.
    """
    return _every("artifacts.csv").copy()


def table(artifact: str) -> "pd.DataFrame":
    """The cells of one table as printed.

    Columns: artifact, row, column ("copy/15"), value and spread (float, NaN where nothing is
    printed or legible), n (runs aggregated, Int64), unit, note; model (what the library calls the
    row); and of the column, task (as the library calls it), test (empty where the column is no
    single one) and statistic ("median" where
    a column is one of the runs' results). Raises RelengthError for a table without numbers.
    """
    if artifact not in (known := _artifacts()):
        raise RelengthError(
            f"There is no artifact {artifact!r}: `relength list` shows those of all papers."
        )
    name = known[artifact]["values"]
    if not name:
        title = known[artifact]["title"]
        raise RelengthError(f"The paper prints no numbers for {artifact}: {title}.")
    return _numbers(name).copy()


@cache
def prints_tests(artifact: str) -> bool:
    """Tell whether the paper prints numbers for an artifact, and one per test length."""
    has_numbers = _artifacts()[artifact]["values"] != ""
    return bool(has_numbers and (table(artifact)["test"] != "").all())


def statistic(*artifacts: str) -> Literal["mean", "median"]:
    """Tell whether the paper's numbers are means or medians of its seeds.

    Printed ones are means where a spread stands beside each. Where none of the artifacts prints
    numbers, they are means if the protocol of one says "mean and std". Otherwise, and without
    artifacts, they are medians.
    """
    printed = [name for name in artifacts if _artifacts()[name]["values"]]
    if printed:
        means = all(table(name)["spread"].notna().any() for name in printed)
    else:
        means = any("mean and std" in _artifacts()[name]["protocol"] for name in artifacts)
    return "mean" if means else "median"


def prose_claims() -> "pd.DataFrame":
    """Claims of prose and captions.

    Columns: claim_id ("<paper>-001"), paper, where, claim, kind (value, order, threshold, trend,
    property, cost), artifact (several separated by ";", or empty), metric, expected. All text.
    """
    return _every("claims.csv").copy()


@cache
def _artifacts() -> dict[str, dict[str, str]]:
    """{artifact: the other columns of its row}."""
    return _every("artifacts.csv").set_index("artifact").to_dict("index")


@cache
def _numbers(name: str) -> "pd.DataFrame":
    import pandas as pd

    paper = name.rpartition("/")[2].partition("-")[0]
    cells = _read(paper, name)
    artifact = name.rpartition("/")[2].removesuffix(".csv")
    about = registry.papers()[paper]
    names, rows = (_in(artifact, every) for every in (about.task_names, about.row_names))
    split = [names.get(column, column).rpartition("/") for column in cells["column"]]
    shares = cells["unit"] == "fraction"  # ours are in percent
    factor = shares.map({True: 100.0, False: 1.0})
    return cells.assign(
        unit=cells["unit"].mask(shares, "%"),
        model=[
            rows.get(f"{row}/{column.partition('/')[0]}", rows.get(row, row))
            for row, column in zip(cells["row"], cells["column"], strict=True)
        ],
        task=[names.get(task or test, task or test) for task, _, test in split],
        test=[_test(test) if task and test not in STATISTICS else "" for task, _, test in split],
        statistic=[test if task and test in STATISTICS else "" for task, _, test in split],
        value=(pd.to_numeric(cells["value"]).astype(float) * factor).round(6),
        spread=(pd.to_numeric(cells["spread"]).astype(float) * factor).round(6),
        n=pd.to_numeric(cells["n"]).astype("Int64"),
    )


def _in(artifact: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of a paper's tables; those of this table alone replace the general ones."""
    own = f"{artifact}:"
    alone = {name.removeprefix(own): to for name, to in names.items() if name.startswith(own)}
    return {**names, **alone}


def _test(printed: str) -> str:
    return "iid" if printed == "IID" else printed


@cache
def _every(name: str) -> "pd.DataFrame":
    """The file of that name of all papers, one below the other."""
    import pandas as pd

    return pd.concat([_read(paper, name) for paper in registry.PAPERS], ignore_index=True)


@cache
def _read(paper: str, name: str) -> "pd.DataFrame":
    import pandas as pd

    path = files(f"relength.papers.{paper}") / "published" / name
    if not path.is_file():
        raise RelengthError(
            f"There is no lib/relength/papers/{paper}/published/{name}: write down there what the "
            "paper prints."
        )
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)
