"""GPT-2 tokens are counted as GPT-2 counts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relength.tasks import bpe

# Counts of the npm package gpt-3-encoder 1.1.4, an independent implementation.
COUNTED = {
    "Mary went back to the bathroom.": 7,
    " John can't, won't 1234½ “quoted” — naïve café\n\n  x": 21,
    "Hello   world  ": 6,
}


@pytest.mark.parametrize(("text", "tokens"), COUNTED.items())
def test_counts_are_those_of_another_implementation(text, tokens):
    assert bpe.count(text) == tokens


@given(st.text(max_size=60))
def test_tokens_spell_the_text_and_the_beginning_begins_it(text):
    tokens = bpe.count(text)
    assert bpe.beginning(text, tokens) == text
    assert 0 <= tokens <= len(text.encode())
    for n in range(tokens):
        assert text.startswith(bpe.beginning(text, n))


@given(st.text("abcdefghij klm.", max_size=40), st.integers(0, 30))
def test_the_beginning_of_plain_text_has_that_many_tokens(text, tokens):
    found = [t for piece in bpe._pieces().findall(text) for t in bpe._piece(piece)]
    assert bpe.beginning(text, tokens).encode() == b"".join(found[:tokens])
    assert bpe.count(text) == len(found)
