"""Long multiplication on a page: texts are those of integers, contexts those of the forward, and the list is full."""

import random
import re

import pytest
import torch

from arithlib import checkpoints
from arithlib.certify.addition import text
from arithlib.models.column import ColumnConfig, ColumnTransformer
from arithlib.tasks.operands import of_length
from arithlib.tokenizer import ALPHABET, END, CharacterTokenizer
from chapters.ch78_long_multiplication import LongMultiplication, continued

TASK = LongMultiplication()
SIZES = ColumnConfig("page", d_model=8, n_heads=2, d_mlp=16)
SOME = [(0, 0), (0, 407), (407, 0), (5, 9999), (9999, 5), (99, 99), (1000, 1000), (12, 34), (9, 9)]


def model(seed=1):
    return ColumnTransformer(SIZES, seed).eval().requires_grad_(False)


def products(count, digits=4, seed=0):
    rng = random.Random(seed)
    return [LongMultiplication(digits).sample(rng) for _ in range(count)]


def lines(keys, following):
    """Six characters for the slots, and the one that follows."""
    return [text(key) + ALPHABET[token] for key, token in zip(keys.tolist(), following.tolist(), strict=True)]


# ---- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 2, 6, 30])
def test_rows_are_totals_and_carries_of_integers(digits):
    for a, b in [*products(60, digits), *SOME]:
        question, *rows, end = TASK.write(a, b).split("=")
        assert (f"{question}=", end, len(rows)) == (TASK.ask(a, b), "$", len(str(b)))
        assert [int(number[::-1]) for number in question.split("*")] == [a, b]
        for i, row in enumerate(rows):
            above, total = (a * (b % 10**n) for n in (i, i + 1))
            places, b_i = len(str(a)) + i + 1, b // 10**i % 10
            assert row[::2] == f"{total:0{places}d}"[::-1]
            for m in range(places - 1):
                ten = 10 ** (m + 1)
                assert int(row[2 * m + 1]) == (above % ten + b_i * (a * 10**i % ten)) // ten
        assert TASK.read(TASK.write(a, b)) == a * b


@pytest.mark.parametrize(
    "wrong", ["", "$", "21*43=", "21*43=$", "21*43=80400=8001400=", "2*4=8=+=$", "2*4=8==$", "2=8$"]
)
def test_a_text_without_a_last_row_is_refused(wrong):
    with pytest.raises(ValueError):
        TASK.read(wrong)


# ---- contexts ----------------------------------------------------------------------------------------------------


def by_hand(a, b):
    """As `lines`, token by token, read off the text."""
    question, *rows = TASK.write(a, b).split("=")
    (first, second), above, found = question.split("*"), "", []

    def at(digits, place):
        return digits[place] if 0 <= place < len(digits) else "."

    for i, row in enumerate(rows):
        line = "=" + row + "=" * (row != "$")
        for step in range(len(line) - 1):
            own = line[step - 1 : step + 1] + "." if step % 2 else ".." + line[step]
            seen = at(first, step // 2 - i) + at(second, i) + at(above, step // 2)
            found.append(seen + own + line[step + 1])
        above = row[::2]
    return found


def test_contexts_are_what_stands_in_the_text():
    pairs = [*products(50, digits=5), *SOME]
    expected = [line for a, b in pairs for line in by_hand(a, b)]
    assert lines(*TASK.contexts(TASK.encode(pairs))) == expected
    assert lines(*TASK.contexts(TASK.encode(pairs[:1]))) == by_hand(*pairs[0])  # none of it depends on other texts


def test_whatever_is_listed_occurs_in_a_product_of_four_digits():
    def codes(keys, following):
        return ((torch.cat([keys, following[:, None]], 1) + 1) * 16 ** torch.arange(7)).sum(1)

    missing, rng = codes(*TASK.every_context()), random.Random(0)
    assert len(missing) == len(missing.unique()) == 12_640
    for _ in range(14):
        # Large digits more often than small ones: they make the carries that are rare.
        drawn = [
            "".join(rng.choices("0123456789", range(9, 19), k=rng.choice((1, 2, 3, *[4] * 9)))) for _ in range(6000)
        ]
        met = codes(*TASK.contexts(TASK.encode([(int(a), int(b)) for a, b in zip(*[iter(drawn)] * 2, strict=True)])))
        missing = missing[~torch.isin(missing, met)]
    assert len(missing) == 0


# ---- decoding ----------------------------------------------------------------------------------------------------


def test_decoding_from_remembered_contexts_is_greedy_decoding_by_the_forward():
    written = []
    for seed in range(11):
        made = model(seed)
        if seed < 8:  # many signs, and where keys stand counts for more
            made.near_value.mul_(9)
            made.unembedding.weight.mul_(3)
            made.unembedding.bias[10:] += torch.tensor([1.0, 1.0, 1.0, 2.0, -3.0])
        for a, b in ((9038, 2675), (7, 60)):
            prompt = TASK.ask(a, b)
            tokens = torch.tensor([CharacterTokenizer().encode(prompt, end=False)])
            for _ in range(30):
                tokens = torch.cat([tokens, made(tokens)[:, -1:].argmax(-1)], 1)
                if tokens[0, -1] == END:
                    break
            found = continued(made, prompt, 30)
            assert found == CharacterTokenizer().decode(tokens[0].tolist()), (seed, prompt)
            written.append(found.removeprefix(prompt))
    for nonsense in (r"\+", "-", r"\*", "==", r"\d[-+*][^=]*\d=.*\d", r".{30}", r"\$"):
        assert any(re.search(nonsense, answer) for answer in written), nonsense


def test_a_shipped_model_multiplies_and_a_blind_one_says_so():
    trained, rng = checkpoints.load("pages-s0"), random.Random(4)
    for n, m in ((1, 1), (12, 9), (3, 20)):
        a, b = of_length(n, rng), of_length(m, rng)
        assert trained.experiment.multiply(trained.model, a, b) == a * b
    torch.nn.init.zeros_(trained.model.unembedding.weight)
    with pytest.raises(ValueError):
        trained.experiment.multiply(trained.model, 12, 34)
