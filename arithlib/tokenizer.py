"""One token a character: ten digits, + - * =, and the end token $ (source 002; used from part 3 on)."""

ALPHABET = "0123456789-+*=$"


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
        self.end = self.token_of["$"]

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
