"""Greedy decoding with kept keys and values writes the same tokens as computing every prefix again."""

import dataclasses

import pytest
import torch

from arithlib.decoding import greedy
from arithlib.experiments.abacus import AbacusExperiment
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.models.positions import SCHEMES, Offsets
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import END, CharacterTokenizer

TINY = LoopedConfig(d_model=16, n_heads=2, d_mlp=32, n_layers=2, n_loops=3, n_rows=140, n_ctx=64)
ASKED = AbacusExperiment(name="asked", about="", steps=1, evaluate_every=1, model=TINY)


def prompts(count=8, lengths=(4, 6)):
    generator = torch.Generator().manual_seed(0)
    return OperandTask().problems(torch.tensor([lengths] * count), generator).prompts()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("loops", "window"), [(None, None), (5, None), (None, 2)])
def test_the_cache_changes_no_token(scheme, loops, window):
    model = LoopedTransformer(
        dataclasses.replace(TINY, positions=scheme, window=window), seed=8
    )  # writes varied tokens
    for policy in (None, Offsets("per sample", k=30)):
        kept, again = (
            greedy(model, prompts(), 9, loops=loops, offsets=policy, cache=cache) for cache in (True, False)
        )
        assert torch.equal(kept, again) and kept.unique().numel() > 1


def test_after_the_end_token_comes_nothing_else():
    model = LoopedTransformer(TINY)
    free = greedy(model, prompts(), 6)
    assert (free != END).any()
    with torch.no_grad():
        model.unembedding.bias[END] += free.new_tensor(0.0) + 0.7  # some prompts now end early, others not
    tokens = greedy(model, prompts(40), 12)
    for row in tokens.tolist():
        if END in row:
            assert set(row[row.index(END) :]) == {END}
    with torch.no_grad():
        model.unembedding.bias[END] += 100
    assert greedy(model, prompts(), 12).tolist() == [[END]] * 8  # and decoding stops when all have ended


def test_redrawn_offsets_are_a_new_forward_pass_with_a_new_draw_at_every_step():
    model, policy = LoopedTransformer(TINY), Offsets("redrawn", k=50)
    tokens = prompts()
    written = greedy(model, tokens, 5, offsets=policy, generator=torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    for step in range(written.shape[1]):
        offset = torch.randint(50, (8, 1), generator=generator)
        chosen = model(tokens, offset)[:, -1].argmax(-1)
        live = (tokens[:, 12:] != END).all(1)
        assert torch.equal(written[live, step], chosen[live])
        tokens = torch.cat([tokens, written[:, step : step + 1]], 1)


def test_a_prompt_without_digits_and_an_address_beyond_the_table_are_refused():
    model = LoopedTransformer(TINY)
    empty = CharacterTokenizer().encode_batch(["1+1=", "++-="], end=False)
    with pytest.raises(ValueError, match=r"prompt 1 is '\+\+-=': there is no digit in it"):
        greedy(model, empty, 3)
    with pytest.raises(
        ValueError, match="121 digits under an offset of up to 20 needs address 141; the table ends at 139"
    ):
        ASKED.add(model, 10**119, 1)


def test_add_gives_the_number_that_was_written():
    model = LoopedTransformer(TINY)
    answers = iter([[5, 4, END], [11, 4, END]])

    class Scripted(LoopedTransformer):
        def forward(self, tokens, *_):
            if tokens.shape[1] == 6:
                self.script = next(answers)
            logits = torch.zeros(1, tokens.shape[1], 15)
            logits[0, -1, self.script[tokens.shape[1] - 6]] = 1
            return logits

    model = Scripted(TINY)
    assert ASKED.add(model, 12, 33) == 45
    with pytest.raises(ValueError, match=r"answers with '\+4': no number"):
        ASKED.add(model, 12, 33)
    with pytest.raises(ValueError, match="-1 is negative"):
        ASKED.add(model, -1, 2)
