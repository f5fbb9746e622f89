"""Common draws are uniform and common; what is remembered is what the model says."""

import torch

from arithlib.exact_match import score
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.models.positions import Offsets
from arithlib.tasks.operands import OperandTask
from chapters.ch33_common_draws import CommonDraws, Remembering


def seeded():
    return torch.Generator().manual_seed(0)


def test_draws_are_uniform_and_those_in_range_are_common():
    narrow, wide = (CommonDraws("redrawn", k=k, near=4).draw(20_000, seeded())[:, 0] for k in (4, 5))
    for drawn, k in ((narrow, 4), (wide, 5)):
        torch.testing.assert_close(drawn.bincount() / len(drawn), torch.full((k,), 1 / k), atol=0.02, rtol=0)
    assert wide[wide < 4].equal(narrow[wide < 4])


def test_a_remembering_model_measures_the_same_and_reads_nothing_twice():
    model = LoopedTransformer(LoopedConfig(d_model=16, n_heads=2, d_mlp=32, n_rows=32, offset=3))
    sums = OperandTask().problems(torch.tensor([[3, 2], [1, 4], [2, 3]]), seeded())
    remembering, read = Remembering(model), []
    for k in (9, 6):
        offsets = CommonDraws("redrawn", k=k, near=6)
        plain, again = (score(of, sums, offsets=offsets, generator=seeded()) for of in (model, remembering))
        assert plain.right.equal(again.right)
        torch.testing.assert_close(plain.log_probability, again.log_probability, equal_nan=True)
        read.append(len(remembering.known))
    assert read[0] == plain.mask.sum() and read[0] < read[1] < 2 * read[0]
    fixed = Offsets("fixed", value=2)
    assert score(model, sums, offsets=fixed).right.equal(score(remembering, sums, offsets=fixed).right)
    assert len(remembering.known) == read[1]
