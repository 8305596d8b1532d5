"""What the ablations of MemReasoner change, and what they leave as it is."""

from dataclasses import replace

import pytest
import torch
from test_memreasoner import SIZES, WORDS, alone, batch, model

from relength.errors import RelengthError
from relength.models.language.order import Recurrent
from relength.models.language.variant_configs import VariantConfig
from relength.models.language.variants import Stacked, Variant
from relength.specs.spec import make_spec, row_name

TERMS = ("facts", "autoencoded", "order", "text")
ROWS = {
    "1-layer bi-directional GRU": {},
    "2-layer bi-directional GRU": {"recurrent_layers": 2},
    "2-layer uni-directional GRU": {"recurrent_layers": 2, "temporal": "gru"},
    "1-layer uni-directional GRU": {"temporal": "gru"},
    "Positional Encoding": {"temporal": "sinusoid"},
    "Positional Encoding from the end": {"temporal": "sinusoid_from_end"},
    "No temporal encoding": {"temporal": "none"},
    "alpha=1": {"test_update": 1.0},
    "alpha=4": {"test_update": 4.0},
    "epochs=50": {"trained": "quarter"},
    "epochs=100": {"trained": "half"},
    "MemReasoner (weak)": {"supervised": "last", "hops": 5},
}


def variant(**changed) -> Variant:
    return Variant(VariantConfig(**(SIZES | changed)), WORDS).initialise(0).double()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_named_by_its_change(row):
    assert row_name({**VariantConfig(**ROWS[row]).model_dump()}) == row


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"recurrent_layers": 2, "temporal": "sinusoid"}, "choose gru or bigru"),
        ({"supervised": "last", "inverse": "iterated"}, "choose exact or ridge"),
    ],
)
def test_what_cannot_be_is_refused(changed, said):
    with pytest.raises(RelengthError, match=said):
        make_spec(
            task="babi_one_fact",
            model={"name": "MemReasoner variant", **changed},
            training={"name": "facts"},
            scale="smoke",
            seed=0,
        )


def test_without_a_change_it_is_memreasoner():
    ours, theirs = variant(), model()
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    torch.testing.assert_close(ours(batch()), theirs(batch()), rtol=0, atol=0)
    for one, other in zip(ours.with_terms(batch(), None, TERMS)[1],
                          theirs.with_terms(batch(), None, TERMS)[1], strict=True):  # fmt: skip
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("temporal", ["gru", "bigru"])
def test_two_layers_are_one_after_the_other(temporal):
    ours = variant(recurrent_layers=2, temporal=temporal)
    assert isinstance(ours.temporal, Stacked)
    latents, lengths = torch.randn(3, 5, 10, dtype=torch.float64), torch.tensor([5, 2, 4])
    first, second = ours.temporal.layers
    assert isinstance(first, Recurrent)
    wanted = second(first(latents, lengths, True), lengths, True)
    torch.testing.assert_close(ours.in_order(latents, lengths), wanted)
    for i in range(3):
        torch.testing.assert_close(ours(alone(batch(), i))[0], ours(batch())[i])


def test_of_two_layers_a_line_knows_those_after_it_only_in_both_directions():
    for temporal, knows in (("gru", False), ("bigru", True)):
        ours = variant(recurrent_layers=2, temporal=temporal)
        latents = torch.randn(1, 4, 10, dtype=torch.float64, requires_grad=True)
        ours.in_order(latents, torch.tensor([4]))[0, 0].sum().backward()
        assert bool(latents.grad[0, 1:].any()) is knows


# --- supervision of the last read alone -----------------------------------------------------------


def test_the_loss_sees_the_last_fact_and_the_last_read_alone():
    ours, whole = variant(supervised="last", hops=3), batch(hops=2, most=5)
    codes = ours.codes(whole)
    every = model(hops=3)
    last = super(Variant, ours).read(codes)[-1]
    outputs, terms = ours.with_terms(whole, None, TERMS)
    wanted = torch.nn.functional.cross_entropy(-ours.distances(codes, last), whole.supports[:, -1])
    torch.testing.assert_close(terms.order, wanted)
    torch.testing.assert_close(outputs, ours(whole))
    with pytest.raises(RelengthError, match="2 supporting facts cannot supervise 3"):
        every.with_terms(batch(hops=2, most=5).select(slice(0, 1)), None, TERMS)
    other = replace(whole, supports=whole.supports.flip(1))
    assert not torch.isclose(ours.with_terms(other, None, TERMS)[1].order, terms.order)


def test_more_reads_than_lines_are_allowed_and_only_then_told_of_as_one():
    ours, whole = variant(supervised="last", hops=6), batch()
    written, _ = ours.generate(whole, 2)
    assert written.read.shape == (3, 1)
    for i in range(3):
        found, _ = ours.generate(alone(whole, i), 2)
        assert (found.read[0] == written.read[i]).all()
    with pytest.raises(RelengthError, match="6 hops are more than"):
        model(hops=6).generate(whole, 2)
