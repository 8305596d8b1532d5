"""MemReasoner without its memory: what it hears, what it sees, and what its loss has."""

from dataclasses import replace

import pytest
import torch
from test_memreasoner import WORDS, alone, assert_equal_scores_terms_and_slopes, batch, gpt

from relength.models.language.variant_configs import WithoutMemoryConfig
from relength.models.language.without_memory import WithoutMemory
from relength.papers.memreasoner.ablation_experiments import without_memory

SMALL = {"width": 8, "heads": 2, "inner_size": 12, "layers": 2, "latent_size": 10}


def bare(**changed) -> WithoutMemory:
    return WithoutMemory(WithoutMemoryConfig(**(SMALL | changed)), WORDS).initialise(0).double()


def test_what_a_sample_gives_does_not_depend_on_its_batch():
    together = bare()(batch())
    for i in range(3):
        torch.testing.assert_close(bare()(alone(batch(), i))[0], together[i])


@pytest.mark.equality
def test_samples_of_like_length_have_together_what_all_have():
    plain, fast = bare(), bare()
    plain.fused = False
    assert_equal_scores_terms_and_slopes(plain, fast)


def test_a_place_sees_itself_those_before_it_and_the_code():
    ours, tokens = bare(), batch().sentences[1:4, :4].clamp(min=4)
    codes, places = torch.randn(3, 10).double(), torch.arange(4).expand(3, -1)
    whole = ours.scores_after(codes, tokens, places)
    for last in range(4):
        later = tokens.clone()
        later[:, last + 1 :] = 9
        same = ours.scores_after(codes, later, places)[:, : last + 1]
        torch.testing.assert_close(same, whole[:, : last + 1])
        other = tokens.clone()
        other[:, last] = torch.where(tokens[:, last] == 9, 10, 9)
        changed = ours.scores_after(codes, other, places)[:, last]
        assert not torch.isclose(changed, whole[:, last]).all()
    heard = ours.scores_after(codes + 1, tokens, places)
    assert not torch.isclose(heard, whole).all(2).any()


def test_it_is_the_plain_decoder_but_for_the_code():
    """Its decoder has the plain one's weights, drawn from the same streams."""
    ours, plain = bare().state_dict(), gpt().state_dict()
    for name, weights in plain.items():
        torch.testing.assert_close(ours[name], weights, rtol=0, atol=0)


def test_writing_step_by_step_is_what_training_sees():
    ours = bare()
    wanted = ours(batch()).argmax(2)
    given = replace(batch(), targets=torch.cat([wanted[:, :1], batch().targets[:, 1:]], dim=1))
    written, _ = ours.generate(batch(), 2)
    assert written.read is None
    assert (written.tokens[:, 0] == wanted[:, 0]).all()
    assert (written.tokens[:, 1] == ours(given).argmax(2)[:, 1]).all()


def test_the_loss_asks_for_answers_and_other_text_alone():
    ours, whole = bare(), batch()
    outputs, terms = ours.with_terms(whole, None, ("facts", "autoencoded", "order", "text"))
    torch.testing.assert_close(outputs, ours(whole))
    assert not any((terms.facts, terms.autoencoded, terms.order)) and terms.text > 0
    each = [ours.with_terms(alone(whole, i), None, ("text",))[1].text for i in range(3)]
    torch.testing.assert_close(terms.text, torch.stack(each).mean())
    assert ours.with_terms(whole, None, ())[1].text == 0
    terms.text.backward()
    assert ours.encoder_words.weight.grad.any() and ours.to_past.weight.grad.any()


@pytest.mark.parametrize("scale", ["smoke", "reduced", "paper"])
def test_runs_are_of_both_tasks_and_as_long_as_the_paper_says_at_its_scale(scale):
    one, two = without_memory(scale, 0)
    assert (one.task.name, two.task.name) == ("babi_one_fact", "babi_two_facts")
    assert {one.row, two.row} == {"MemReasoner\\memory"}
    assert scale != "paper" or one.training.epochs == two.training.epochs == 5
