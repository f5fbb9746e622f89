"""One token a character: ten digits, + - * =, and the end token $ (source 002; used from part 3 on).

Digits are their own tokens, so a tensor of digits is a tensor of tokens. Dimensions: B texts, T tokens.
"""

import numpy as np
import torch
from torch import Tensor

ALPHABET = "0123456789-+*=$"
MINUS, PLUS, TIMES, EQUALS, END = (ALPHABET.index(sign) for sign in "-+*=$")
ABSENT = -1  # in place of a token where there is none


class CharacterTokenizer:
    """Characters of "0123456789-+*=$" to tokens 0..14 and back; "$" (14) ends an answer.

    Numbers are written least-significant digit first where the task says so; the tokenizer keeps the order it gets.

    >>> CharacterTokenizer().encode("1234")
    [1, 2, 3, 4, 14]
    >>> CharacterTokenizer().encode("12+34=", end=False)
    [1, 2, 11, 3, 4, 13]
    """

    def __init__(self):
        self.token_of = {character: token for token, character in enumerate(ALPHABET)}
        self.end = END

    def __len__(self) -> int:
        """Size of the vocabulary."""
        return len(ALPHABET)

    def encode(self, text: str, end: bool = True) -> list[int]:
        """Tokens of `text`, with the end token appended unless end=False.

        Raises ValueError naming the first character that is not in the vocabulary.
        """
        for place, character in enumerate(text):
            if character not in self.token_of:
                raise ValueError(f"{character!r} at place {place} of {text!r}: the vocabulary is {ALPHABET}")
        return [self.token_of[character] for character in text] + [self.end] * end

    def decode(self, tokens: list[int]) -> str:
        """The characters of `tokens`, end tokens included. Raises ValueError for a token outside 0..14."""
        for token in tokens:
            if not 0 <= token < len(ALPHABET):
                raise ValueError(f"token {token}: the vocabulary has {len(self)} tokens, 0 to {len(self) - 1}")
        return "".join(ALPHABET[token] for token in tokens)

    def encode_batch(self, texts: list[str], end: bool = True) -> Tensor:
        """(B, T) tokens of several texts; a text shorter than the longest is filled up with end tokens.

        Raises ValueError for no text at all, and as `encode` does.
        """
        if not texts:
            raise ValueError("no texts to encode: give at least one")
        rows = [self.encode(text, end) for text in texts]
        width = max(map(len, rows))
        return torch.tensor([row + [END] * (width - len(row)) for row in rows], dtype=torch.long)

    def decode_batch(self, tokens: Tensor) -> list[str]:
        """(B, T) tokens -> B texts of T characters, end tokens included. Raises ValueError as `decode` does."""
        rows = tokens.cpu().numpy()
        outside = (rows < 0) | (rows >= len(ALPHABET))
        if outside.any():
            self.decode([int(rows[outside][0])])
        return ["".join(row) for row in np.array(list(ALPHABET))[rows]]
