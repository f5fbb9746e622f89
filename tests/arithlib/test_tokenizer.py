"""The character tokenizer against its alphabet, the source's own examples, and arbitrary text."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arithlib.tokenizer import ALPHABET, CharacterTokenizer

TOKENIZER = CharacterTokenizer()
texts = st.text(ALPHABET, max_size=60)


@given(texts)
def test_decoding_undoes_encoding(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text, end=False)) == text
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text + "$"


@given(texts)
def test_tokens_are_places_in_the_alphabet(text):
    assert [ALPHABET[token] for token in TOKENIZER.encode(text, end=False)] == list(text)


def test_the_examples_of_source_002_give_its_tokens():
    assert TOKENIZER.encode("1234") == [1, 2, 3, 4, 14]
    assert TOKENIZER.encode("1234$") == [1, 2, 3, 4, 14, 14]
    assert len(TOKENIZER) == 15


@given(st.text(min_size=1).filter(lambda text: set(text) - set(ALPHABET)))
def test_a_character_outside_the_alphabet_is_named(text):
    first = next(character for character in text if character not in ALPHABET)
    with pytest.raises(ValueError, match="the vocabulary is") as error:
        TOKENIZER.encode(text)
    assert str(error.value).startswith(repr(first))


@pytest.mark.parametrize("token", [-1, 15])
def test_a_token_outside_the_vocabulary_is_named(token):
    with pytest.raises(ValueError, match=f"token {token}: the vocabulary has 15 tokens"):
        TOKENIZER.decode([1, token])


@given(st.lists(texts, min_size=1, max_size=5))
def test_a_batch_is_each_text_filled_up_with_end_tokens(several):
    tokens = TOKENIZER.encode_batch(several)
    for row, text in zip(tokens.tolist(), several, strict=True):
        assert row == TOKENIZER.encode(text) + [TOKENIZER.end] * (tokens.shape[1] - len(text) - 1)
    assert TOKENIZER.decode_batch(tokens) == [TOKENIZER.decode(row) for row in tokens.tolist()]


def test_a_batch_names_what_is_wrong_with_it():
    with pytest.raises(ValueError, match="no texts to encode"):
        TOKENIZER.encode_batch([])
    with pytest.raises(ValueError, match="'x' at place 1"):
        TOKENIZER.encode_batch(["1+1=", "1x1="])
    with pytest.raises(ValueError, match="token 15: the vocabulary"):
        TOKENIZER.decode_batch(torch.tensor([[1, 15]]))
