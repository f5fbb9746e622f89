"""The character tokenizer against its alphabet, the source's own examples, and arbitrary text."""

import pytest
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
