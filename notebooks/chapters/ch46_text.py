"""What a small language model reads: texts that are on every machine, facts to remember, stories to look into.

The texts are the sources of the Python standard library, which differ from version to version: `Corpus.digest` says
which one a model has read. Facts and stories are templates, so that their answers can be told apart from style.

Dimensions: B rows, T tokens, which are characters.
"""

import functools
import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"
_TOKEN = {character: token for token, character in enumerate(CHARACTERS)}


def encode(text: str) -> list[int]:
    """Tokens of a text; what is no printable ASCII character or end of line becomes a question mark.

    >>> encode("a b\\n")
    [65, 0, 66, 95]
    """
    return [_TOKEN.get(character, _TOKEN["?"]) for character in text]


def decode(tokens: Tensor | list[int]) -> str:
    """The characters of (T,) tokens."""
    return "".join(CHARACTERS[token] for token in (tokens.tolist() if isinstance(tokens, Tensor) else tokens))


# ---- texts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """Texts one after the other, a tenth of the files held out.

    train, held_out: (T,) tokens. digest: of both, an integer below 2**60.
    """

    train: Tensor
    held_out: Tensor
    digest: int

    def windows(self, count: int, width: int, generator: torch.Generator, held_out: bool = False) -> Tensor:
        """(count, width) tokens from random places."""
        text = (self.held_out if held_out else self.train).to(generator.device)
        start = torch.randint(len(text) - width, (count, 1), generator=generator, device=generator.device)
        return text[start + torch.arange(width, device=generator.device)].long()


@functools.cache
def standard_library() -> Corpus:
    """The modules of this Python's standard library that are a single file; every tenth, by name, is held out."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"), key=lambda path: path.name)
    texts = [path.read_text(encoding="utf-8", errors="replace").expandtabs(4) for path in paths]
    parts = [torch.tensor(encode(text), dtype=torch.uint8) for text in texts]
    held_out = torch.cat(parts[::10])
    train = torch.cat([part for place, part in enumerate(parts) if place % 10])
    digest = hashlib.sha256(train.numpy().tobytes() + held_out.numpy().tobytes()).hexdigest()
    return Corpus(train, held_out, int(digest[:15], 16))


# ---- facts and stories -------------------------------------------------------------------------------------------

CITIES = tuple("Rome Oslo Lima Bern Cork Bath Lyon Riga Kyiv Doha Baku Graz Pisa Nice Bonn Suva".split())
GOODS = tuple("gold salt wood iron wool milk rice corn silk wine clay coal fish jade lead sand".split())


@functools.cache
def names(count: int) -> tuple[str, ...]:
    """Made-up names of four letters, all different; 4,900 at most. The same ones in every run."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    order = torch.randperm(len(syllables) ** 2, generator=torch.Generator().manual_seed(0))[:count].tolist()
    return tuple((syllables[i // len(syllables)] + syllables[i % len(syllables)]).capitalize() for i in order)


@functools.cache
def _table(words: tuple[str, ...]) -> Tensor:
    """(words, letters) tokens of words of one length."""
    return torch.tensor([encode(word) for word in words])


def _line(*pieces: Tensor | str) -> Tensor:
    """(B, ...) tokens and fixed words between them -> (B, T)."""
    count = next(len(piece) for piece in pieces if not isinstance(piece, str))
    return torch.cat([torch.tensor(encode(p)).expand(count, -1) if isinstance(p, str) else p for p in pieces], 1)


@dataclass(frozen=True)
class Facts:
    """Who lives where: the same in every text, so that it can only be known by heart.

    people: number of facts. A sixteenth of them is right by chance.
    """

    people: int = 256

    width, answers = 10, (slice(5, 9),)

    def homes(self) -> Tensor:
        """(people,) index of everybody's city, independent and uniform."""
        return torch.randint(len(CITIES), (self.people,), generator=torch.Generator().manual_seed(1))

    def write(self, who: Tensor) -> Tensor:
        """(B,) indices of people -> (B, T) tokens.

        >>> decode(Facts().write(torch.tensor([0]))[0])
        'Fibu:Bath\\n'
        """
        return _line(_table(names(self.people))[who], ":", _table(CITIES)[self.homes()[who]], "\n")

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, T) tokens of facts drawn with replacement."""
        return self.write(torch.randint(self.people, (count,), generator=generator))


@dataclass(frozen=True)
class Stories:
    """Who has what: made up for every text, told once and then told again in another order.

    people: number of names to draw from. Of the second telling everything is asked, and the first answer is tested.
    """

    people: int = 256

    width, answers = 60, (slice(35, 39), slice(45, 49), slice(55, 59))

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, T) tokens: three pairs of a name and a good, and the same again in another order.

        >>> decode(Stories().sample(1, torch.Generator().manual_seed(0))[0])
        'Lefa gold,Kali iron,Vama wool;Lefa gold,Vama wool,Kali iron\\n'
        """

        def drawn(of, many):
            return torch.rand(count, of, generator=generator).argsort(1)[:, :many]

        who, what, order = drawn(self.people, 3), drawn(len(GOODS), 3), drawn(3, 3)
        who, what = (torch.cat([each, each.gather(1, order)], 1) for each in (who, what))
        who, what = _table(names(self.people))[who], _table(GOODS)[what]  # (B, 6, 4)
        ends = ",,;,,\n"
        return torch.cat([_line(who[:, i], " ", what[:, i], end) for i, end in enumerate(ends)], 1)
