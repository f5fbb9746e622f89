"""Words with fillers or written steps: what the text is, what is asked, and that the model writes its own steps."""

import pytest
import torch
from short_runs import seeded, trained

from arithlib.experiments.depth import IGNORE_INDEX
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters.ch66_experiments import STYLES, PromptedExperiment, operations

TINY = PromptedExperiment(
    name="steps-tiny", about="a test", steps=2, evaluate_every=2, group="Z60", letters=(1, 7), n=5, batch_size=6,
    evaluation_count=8, optimizer=AdamW.cosine(1e-3, 2, warmup_steps=1), styles=STYLES,
    model=LoopedConfig(
        d_model=16, n_heads=2, d_mlp=16, n_layers=1, n_loops=1, positions="learned", n_ctx=11, injection="none",
        d_vocab=64,
    ),
)  # fmt: skip
IGNORED = IGNORE_INDEX


def test_the_styles_by_hand():
    words, products = torch.tensor([[1, 7, 7]]), torch.tensor([[1, 8, 15]])
    expected = {
        "plain": ([60, 1, 7, 7], [IGNORED, 1, 8, 15]),
        "filler": ([61, 1, 63, 7, 63, 7, 63], [IGNORED, IGNORED, 1, IGNORED, 8, IGNORED, 15]),
        "steps": ([62, 1, 1, 7, 8, 7, 15], [IGNORED, 1, IGNORED, 8, IGNORED, 15, IGNORED]),
    }
    for style, parts in expected.items():
        assert tuple(part[0].tolist() for part in TINY.written(style, words, products)) == parts


def test_an_equal_part_of_every_batch_for_each_style():
    parts = TINY.batch(seeded())
    assert [tokens.shape for tokens, _ in parts] == [(2, 6), (2, 11), (2, 11)]
    assert [int(tokens[0, 0]) for tokens, _ in parts] == [60, 61, 62]


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match="'aloud'"):
        PromptedExperiment(**{**vars(TINY), "styles": ("aloud",)})


class Adder:
    """Says the sum mod 60 of what stands last before a letter and the letter: right from its own last product on."""

    device = "cpu"

    def __init__(self, wrong_at=None):
        self.wrong_at = wrong_at

    def __call__(self, tokens):
        B, T = tokens.shape
        said = torch.zeros(B, T, dtype=torch.long)
        for place in range(T):
            if tokens[0, 0] == 62 and place % 2:
                before = tokens[:, place - 1] if place > 1 else 0
                said[:, place] = (before + tokens[:, place] + (place == self.wrong_at)) % 60
        return torch.nn.functional.one_hot(said, 64).float()


def test_with_steps_the_model_reads_its_own_products():
    words, products = TINY.words(20, seeded())
    assert (products == words.cumsum(1) % 60).all()
    assert TINY.answers(Adder(), "steps", words).equal(products)
    astray = TINY.answers(Adder(wrong_at=3), "steps", words)  # the second product is one too large, and so all after
    assert astray[:, 0].equal(products[:, 0]) and astray[:, 1:].equal((products[:, 1:] + 1) % 60)


def test_a_word_is_right_as_a_whole_only_with_its_last_letter():
    alone = PromptedExperiment(**{**vars(TINY), "styles": ("steps",)})
    assert alone.finish(Adder(), None) == {"last": 1, "whole": 1}
    assert alone.finish(Adder(wrong_at=9), None) == {"last": 0, "whole": 0}


def test_a_run_measures_each_style():
    model, run = trained(TINY)
    measured = TINY.finish(model, run)
    assert measured["last"].shape == measured["whole"].shape == (1, 3)
    words, products = TINY.words(80, TINY.apart(1))
    tokens, targets = TINY.written("plain", words, products)
    with torch.no_grad():
        right = ((model(tokens).argmax(-1) == targets) | (targets == IGNORED)).all(1)
    assert measured["whole"][0, 0] == pytest.approx(float(right.double().mean()))


def test_operations_count_every_multiplication():
    config, T = TINY.model, 7
    D, M, V = config.d_model, config.d_mlp, config.d_vocab
    count = 0
    for token in range(T):
        count += 4 * D * D + D * M + M * D + D * V  # queries, keys, values, out; in and out of the MLP; logits
        count += sum(2 * D for _ in range(token + 1))  # a score over all heads, and its value
    assert operations(config, T) == count
