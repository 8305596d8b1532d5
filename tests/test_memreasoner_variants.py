"""Each ablation of MemReasoner and its copying decoder change one thing and leave the rest."""

from dataclasses import replace

import pytest
import torch
from test_memreasoner import LINE, SIZES, WORDS, alone, batch, model
from test_readers import slope
from torch.nn import functional as F

from relength.errors import RelengthError
from relength.models.language.order import Recurrent
from relength.models.language.variant_configs import CopyingConfig, VariantConfig
from relength.models.language.variants import Copying, Stacked, Variant
from relength.specs.spec import make_spec, row_name
from relength.tasks.base import EOS, PAD, SOS
from relength.tasks.batch import FactsToAnswer

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
    "MemReasoner (weak) alpha=1": {"supervised": "last", "hops": 5, "test_update": 1.0},
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
    last = super(Variant, ours).iterative_read(whole).readouts[-1]
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


# --- a decoder that copies ------------------------------------------------------------------------


def copying(**changed) -> Copying:
    return Copying(CopyingConfig(**(SIZES | changed)), WORDS).initialise(0).double()


def line_read(ours: Copying, whole) -> torch.Tensor:
    found = ours.iterative_read(whole).found
    return found[-1].line


def test_an_answer_is_of_words_of_the_line_that_was_read_and_the_end():
    ours, whole = copying(hops=2), batch(4, hops=2)
    chances = ours(whole).exp()
    torch.testing.assert_close(chances.sum(2), torch.ones(chances.shape[:2]).double())
    for i, line in enumerate(line_read(ours, whole).tolist()):
        there = {EOS, *line} - {PAD}
        assert set(torch.nonzero(chances[i, 0] > 1e-12).flatten().tolist()) == there


def test_chances_of_places_follow_the_equation_and_add_up_for_a_word_said_twice():
    ours, own = copying(), alone(batch(), 1)
    twice = own.sentences.clone()
    twice[own.inputs[0]] = torch.tensor([7, 8, 7, 0, 0, 0])  # every line says 7 twice
    own = replace(own, sentences=twice)
    (found,) = ours.iterative_read(own).found
    feature = ours._features(found.code, own.prompts)[0, -1]
    states = ours.encoded(ours.states(found.line))[0, 1:4]
    scores = [*(ours.to_place(feature) @ state / 8**0.5 for state in states)]
    a, b, c, end = torch.stack([*scores, ours.to_end(feature)[0]]).softmax(0).tolist()
    chances = ours(own)[0, 0].detach().exp()
    wanted = {7: a + c, 8: b, EOS: end}
    assert {w: pytest.approx(float(chances[w]), abs=1e-6) for w in wanted} == wanted


@pytest.mark.parametrize(
    "name", ["to_place.weight", "to_end.weight", "to_past.weight", "encoder_words.weight"]
)
def test_slopes_of_the_copying_decoder_are_those_of_finite_differences(name):
    ours, whole = copying(), batch(4)
    lines = line_read(ours, whole)
    answers = torch.stack([lines[:, 0], torch.full_like(lines[:, 0], EOS)], dim=1)
    whole = replace(whole, targets=answers)

    def loss() -> torch.Tensor:
        return F.cross_entropy(ours(whole).flatten(0, 1), whole.targets.flatten())

    loss().backward()
    own = ours.get_parameter(name)
    place = tuple(int(i) for i in (own.grad.abs() == own.grad.abs().max()).nonzero()[0])
    assert own.grad[place] != 0
    assert float(own.grad[place]) == pytest.approx(slope(loss, own, place), rel=1e-4)


def test_its_words_are_alike_in_any_batch_and_lines_are_rebuilt_as_memreasoner_does():
    ours, whole = copying(), batch()
    scores = ours(whole)
    for i in range(3):
        torch.testing.assert_close(ours(alone(whole, i))[0], scores[i])
    assert (ours.generate(whole, 2)[0].tokens[:, 0] == scores[:, 0].argmax(1)).all()
    theirs = model()
    theirs.load_state_dict(ours.state_dict(), strict=False)
    for one, other in zip(ours.with_terms(whole, None, TERMS)[1],
                          theirs.with_terms(whole, None, TERMS)[1], strict=True):  # fmt: skip
        torch.testing.assert_close(one, other)


def test_a_word_that_training_never_asked_for_can_be_written():
    """After some steps on answers of a few words, the one new word of a line is copied."""
    ours = copying().float()
    draw = torch.Generator().manual_seed(0)

    def episodes(places: tuple[int, int]):
        """Lines "who 4 place 5" and a question after who; places: their numbers, from and below."""
        who = torch.arange(6, 10)
        place = torch.randint(*places, (64, 2), generator=draw)
        people = torch.stack([who[torch.randperm(4, generator=draw)[:2]] for _ in range(64)])
        lines = torch.zeros(64, 2, LINE, dtype=torch.long)
        lines[:, :, 0], lines[:, :, 1], lines[:, :, 2], lines[:, :, 3] = people, 4, place, 5
        asked = torch.randint(0, 2, (64, 1), generator=draw)
        questions = torch.zeros(64, LINE, dtype=torch.long)
        questions[:, 0] = people.gather(1, asked)[:, 0]
        sentences = torch.cat([torch.zeros(1, LINE, dtype=torch.long),
                               lines.flatten(0, 1), questions])  # fmt: skip
        answer = torch.stack([place.gather(1, asked)[:, 0], torch.full((64,), EOS)], dim=1)
        return FactsToAnswer(
            sentences,
            torch.arange(1, 129).view(64, 2),
            torch.arange(129, 193),
            asked,
            torch.tensor([[SOS, 5]]).expand(64, -1),
            answer,
            torch.ones(64, 2, dtype=torch.bool),
            torch.zeros(64, dtype=torch.long),
            torch.full((64,), 2),
            torch.full((64,), 2),
        )

    optimiser = torch.optim.Adam(ours.parameters(), 1e-2)
    for _ in range(120):
        known = episodes((10, 20))
        scores, terms = ours.with_terms(known, None, ("order",))
        loss = F.cross_entropy(scores.flatten(0, 1), known.targets.flatten()) + terms.order
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    new = episodes((20, WORDS))
    written, _ = ours.generate(new, 2)
    told = line_read(ours, new)[:, 2]  # of the line that it read, right or wrong
    assert (written.tokens[:, 0] == told).float().mean() > 0.9
