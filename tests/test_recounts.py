"""The papers' arithmetic, recounted: each sentence holds the numbers that a reader gets by hand."""

import re
from collections import Counter

import pytest

from relength.errors import RelengthError
from relength.report.recounts import recount, recounts
from relength.report.wording import decimal, grid, numbers, words
from relength.verdicts import deviations

EVERY = [(paper, name) for paper, known in recounts().items() for name in known]


@pytest.mark.parametrize(("paper", "name"), EVERY)
def test_a_recount_is_whole_sentences_without_missing_numbers(paper, name):
    said = recount(paper, name)
    assert said.endswith(".") and "\n" not in said
    assert not re.search(r"\bnan\b|\[\]|\(\)|: ;|: \.", said), said
    assert re.search(r"\d", said), said


def test_every_recount_is_shown_once():
    used = Counter(
        (paper, entry.recount)
        for paper in deviations.papers()
        for entry in deviations.load(paper)
        if entry.recount
    )
    assert used == Counter(EVERY)


def test_an_unknown_recount_is_an_error_that_lists_the_known_ones():
    with pytest.raises(RelengthError, match="shared_rows"):
        recount("panm", "shared_columns")


def test_numbers_are_rounded_as_on_paper():
    # Halves away from zero, and means of decimal fractions are exact: 0.15 + 0.15 + 0.15 is 0.45.
    assert [decimal(x) for x in (74.4, 74.0, 0.45, -0.45, 21.25, (0.1 + 0.2) * 5)] == [
        *("74.4", "74", "0.5", "-0.5", "21.3", "1.5")
    ]
    assert decimal(0.45078, 2) == "0.45"
    assert numbers([1, 2.5, 3]) == "1, 2.5 and 3" and words(["a"]) == "a"


def test_a_grid_keeps_rows_and_columns_in_the_printed_order():
    table = grid("panm-table-13")
    assert list(table.columns) == [f"copy/{n}" for n in (9, 10, 20, 40, 80)]
    assert table.index[0] == "LSTM" and table.index[-1] == "PANM"


# By hand, from the papers' pages.
BY_HAND = {
    ("panm", "shared_rows"): [
        "4 of 12 rows", "LSTM, Transformer, NTM and ESBN", "96, 53, 33 and 22",
        "(100, 55, 32.5 and 21.3)",
    ],
    # (100 + 100 + 84 + 52 + 36) / 5 = 74.4; the best baselines of Reverse are 98, 65, 35, 22 and
    # 100, so 64; of Mix 100, 98, 65, 45 and 30; of ID Sort 98, 56, 28, 17 and 13.
    ("panm", "table_3"): [
        "8 of 12 means agree", "PANM (Ours), Copy: printed 74.8, recounted 74.4",
        "Reverse: printed 63.6, recounted 64;", "Mix: printed 64, recounted 67.6",
        "ID Sort: printed 42.1, recounted 42.4",
    ],
    ("panm", "other_max"): ["Copy 60 (Content Attention)", "Reverse 62.8 (Neural Stack)"],
    ("panm", "gains"): ["14.6, 10, 17.2, 5.2, 7.2 and 17.1", "4 of 6", "14.2, 9.6, 13.6, 5.2"],
    ("panm", "table_2"): ["82.6, recounted 82.69", "14.7, recounted 14.79", "recounted 11.25"],
    ("panm", "dyck_lead"): ["28.2 and 70", "41.8 points"],
    ("panm", "copy_lead"): ["68 and 39 points", "LSTM, NTM, DNC and NRAM"],
    ("panm", "id_sort_lead"): ["2, 44, 28, 9 and 3", "largest is 44"],
    ("panm", "fine_tuning"): ["arithmetic, 5-shot (19 against 32)"],
    ("panm", "speed"): ["LSTM 75 %", "Transformer 86 %", "Llama2-7B 97 %"],
    ("panm", "lengths"): ["10, 11, 21, 41 and 81", "11, 22, 44 and 88"],
    ("panm", "cosine_bound"): ["0.45 of 10 slots", "0.09 of 80 slots"],
    ("panm", "mix_example"): ["the rule gives $$$$$$$$$$", "gives exactly it"],
    ("panm", "mix_row"): ["98 at length 20", "54 at 40", "is 55", "has 77.5"],
    ("panm", "recall_direction"): ["(10 symbols", "stands before"],
    ("panm", "addresses"): ["those of 2, 3 and 4", "0011, 0100 and 0101"],
    ("panm", "dyck_strings"): ["1,618"],  # 2 + 8 + 40 + 224 + 1344: Catalan numbers times 2^k
    ("panm", "transformer_size"): ["44.1 million", "39.9 million"],
    ("panm", "panm_size"): ["1,774,090 parameters", "716,954"],
    ("panm", "chat_gpt_lengths"): ["4 of 4"],
    ("mla", "lookup_conflict"): [
        *("accuracy of 100", "distance of 1.2", "no other", "3.7 to 33.3"),
        "97.9 to 99.9 in 7 cells",
    ],
    ("mla", "six_of_eight"): ["6 tasks for OneStepAttn, 4 for MonoAttn", "98.8", "98.3", "6 and 6"],
    ("mla", "better_than_all"): [
        "Of 24 cells", "Relative is above OneStepAttn in 1", "LocAttn is above OneStepAttn in 4",
        "Bi-Relative is above OneStepAttn in 2", "Bi-Relative is above MonoAttn in 5",
    ],
    ("mla", "rotary"): ["copy/100 (0 against 100)", "reverse_lookup/11 (0.2 against 100)"],
    ("mla", "relaxed"): ["higher in 4, lower in 8, equal in 12 of 24"],
    ("mla", "position_reference"): [
        "LocAttn S: higher in 11, lower in 4", "OneStepAttn: higher in 14, lower in 5",
        "MonoAttn: higher in 12, lower in 6", "RMonoAttn: higher in 8, lower in 7",
    ],
    ("mla", "mixing"): ["LocAttn: higher in 6, lower in 4"],
    ("mla", "scan"): ["(20.74 mixed, 24.56 not)", "17.67 against 29.51", "19.8 against 27.55"],
    ("mla", "no_activation"): ["higher in 10, lower in 3, equal in 11"],
    ("mla", "recopy_examples"): ["4 3 times, 7 5 times, 9 5 times and 8 5 times: 18 symbols"],
    ("mla", "failure_example"): ["20 digits expands to 52 symbols", "has 54"],
    ("mla", "frozen_gate"): ["gate at 20 is 1 and its gradient 0"],
    ("mla", "reverse_gap"): ["12 of 24 cells", "reverse_recopy/30 (100 and 0)"],
    ("dnc", "best_stateful_trial"): ["86, below 4 of 4", "95, below 1 of 4", "(97, 90, 91 and 95)"],
    ("dnc", "ties_at_the_top"): ["add 100, 100, 100, 100 and 100", "100, 100, 100, 95 and 100"],
    ("dnc", "longer_with_memory"): ["in 3 tasks", "copy (39 to 150)", "add (46 to 400)", "5 of 5"],
    ("dnc", "baselines_with_memory"): ["add (40 to 60)", "99 in differentiation", "7 of 7"],
    ("dnc", "stateless_in_sort"): ["39 against 45, 46 and 48", "98 against 99, 99 and 99"],
    ("dnc", "significant_in_sort"): ["STATELESS-BASELINE (0.00)", "COMPR&REG (0.03)"],
    ("memreasoner", "averages"): ["44 of 46", "18.5, recounted 19 from 20, 19, 17 and 20"],
    ("memreasoner", "task_2_at_1k"): ["31", "36", "10", "44"],
    ("memreasoner", "half_the_window"): ["39 % of its", "at 64k", "62 % at 16k", "81 % at 4k"],
    ("memreasoner", "near_perfect"): ["97.7 and 97.5", "60.6 and 44.9"],
    ("memreasoner", "larimar_on_task_1"): ["1k (59 against 60)", "128k (14 against 18)"],
    ("memreasoner", "larimar_on_task_2"): ["(mean 20.3)", "(mean 19)"],
    ("memreasoner", "inference_time"): ["64k 3.5", "128k 1.2"],
    ("memreasoner", "query_update"): ["46 at 1k with alpha = 1", "73 with alpha = 8"],
    ("memreasoner", "epochs"): ["47.3", "52.7"],
    ("memreasoner", "qwen"): [
        *("0k (100 against 99)", "1k (76 against 73)", "(63.5 against 52.7)"),
        *("0k (97 against 83)", "1k (71 against 58)"),
    ],
}  # fmt: skip


def test_every_recount_was_also_done_by_hand():
    assert set(BY_HAND) == set(EVERY)


@pytest.mark.parametrize(("paper", "name"), BY_HAND)
def test_recounts_find_what_counting_by_hand_finds(paper, name):
    said = recount(paper, name)
    for found in BY_HAND[paper, name]:
        assert found in said, said
