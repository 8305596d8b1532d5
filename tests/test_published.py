"""The published numbers are complete, typed, and what the papers print."""

import re

import pandas as pd
import pytest

from relength.errors import RelengthError
from relength.report import tables
from relength.specs import published
from relength.specs.experiments import experiment


def test_counts_of_artifacts_claims_and_cells():
    artifacts, claims = published.artifacts(), published.prose_claims()
    assert artifacts["artifact"].is_unique
    found = {}
    for paper, own in artifacts.groupby("paper"):
        tables = own.loc[own["values"] != "", "artifact"]
        cells = sum(len(published.table(name)) for name in tables)
        found[paper] = len(own), len(tables), cells, int((claims["paper"] == paper).sum())
    # Artifacts, those with numbers, their cells, claims of the prose: of these four papers.
    assert (
        found.items()
        >= {
            "mla": (8, 8, 752, 63),
            "panm": (34, 15, 545, 97),
            "dnc": (25, 6, 420, 70),
            "memreasoner": (20, 20, 577, 57),
        }.items()
    )


def test_every_table_is_numeric_and_names_itself():
    artifacts = published.artifacts()
    for name in artifacts.loc[artifacts["values"] != "", "artifact"]:
        table = published.table(name)
        assert (table["artifact"] == name).all()
        assert table["value"].dtype == float
        assert table["spread"].dtype == float
        assert not table.duplicated(["row", "column"]).any(), name


def test_table_2_is_a_full_grid_with_the_printed_values():
    table = published.table("mla-table-2")
    assert len(table) == 6 * 8 * 3
    assert (table["n"] == 5).all()
    value = table.set_index(["row", "column"])["value"]
    assert value["Content", "inv_recopy/15"] == 0.05
    assert value["LocAttn", "inv_recopy/30"] == 58.8
    assert value["MonoAttn", "lookup/11"] == 29.9
    assert value["MonoAttn", "inv_reverse_recopy/100"] == 98.3
    assert value["Relative", "reverse_lookup/11"] == 0.4
    # 33.3 + 3.7 + 19.1 + 25 + 0.05 in the row Content, by hand
    assert value["Content"].sum() == pytest.approx(81.15)


def test_what_the_paper_leaves_empty_stays_empty():
    table = published.table("panm-table-19")
    assert table["value"].isna().sum() == 1
    assert pd.isna(published.table("mla-table-2")["spread"]).all()


def test_a_returned_table_is_a_copy():
    table = published.table("mla-table-2")
    table.loc[0, "value"] = -1
    assert published.table("mla-table-2").loc[0, "value"] == 0


@pytest.mark.parametrize(
    ("artifact", "sentence"),
    [("mla-table-1", "no artifact 'mla-table-1'"), ("panm-table-10", "prints no numbers")],
)
def test_a_table_without_numbers_is_an_error_in_one_sentence(artifact, sentence):
    with pytest.raises(RelengthError, match=sentence):
        published.table(artifact)


def test_a_table_of_means_is_told_from_one_of_medians_as_its_protocol_says():
    said = [
        (row.artifact, row.protocol.split()[0])
        for row in published.artifacts().itertuples()
        if row.protocol.startswith(("mean and std over", "median of 5 seeds"))
    ]
    assert len(said) > 10
    for artifact, word in said:
        assert published.statistic(artifact) == word, artifact
    assert published.statistic() == "median"


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("panm_algorithmic", "mean"),  # printed with a spread
        ("panm_dyck", "mean"),  # a figure without numbers, described as means
        ("panm_scan", "median"),
        ("mla_table2", "median"),
        ("dnc_generalization", "median"),
    ],
)
def test_an_experiment_takes_the_statistic_of_its_artifacts(name, statistic):
    assert experiment(name).statistic == statistic


def test_columns_stand_in_the_order_of_print_also_where_the_first_row_has_gaps():
    """Table 20 of MemReasoner has 4 of 14 numbers in its first row."""
    html = tables.published_table("memreasoner-table-20").html
    heads = [re.sub("<.*?>", "", head) for head in re.findall(r'<th scope="col".*?</th>', html)]
    lengths = [head for head in heads if re.fullmatch(r"\d+k", head)]
    assert lengths == sorted(lengths, key=lambda head: int(head[:-1])) and len(lengths) == 9
