"""How right is a model? Exact match, perplexity and errors by digit, in one forward pass (chapter 32).

An answer counts only if every token of it and its end token is the most likely one. Where that holds, greedy decoding
writes exactly this answer, and where it does not, something else: with the right answer given, one pass tells both.

Dimensions: B problems, T tokens, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arithlib.decoding import policies_of
from arithlib.models.looped import LoopedTransformer
from arithlib.models.positions import Offsets
from arithlib.tasks.operands import OperandTask, Problems, longest_carry_chain

# Tokens at once: on a CPU so few that what a layer makes of them stays in its caches.
TOKENS_A_PASS = {"cpu": 4096, "cuda": 65_536}


@dataclass
class Scores:
    """What a model makes of the right answers of B problems; columns are places after `=`, M at most.

    right: (B, M) the token is the most likely one. log_probability: (B, M) of the token, natural. mask: (B, M) where
    an answer has a token; the last of each row is its end token.
    """

    right: Tensor
    log_probability: Tensor
    mask: Tensor

    @property
    def exact(self) -> Tensor:
        """(B,) every token is right: greedy decoding writes this answer."""
        return (self.right | ~self.mask).all(1)

    @property
    def perplexity(self) -> Tensor:
        """(B,) exp(-mean log p) of the right answer with its end token; 1 is certainty (source 002)."""
        mean = torch.where(self.mask, self.log_probability, 0).sum(1) / self.mask.sum(1)
        return (-mean).exp()

    @property
    def error_by_place(self) -> Tensor:
        """(M,) share of wrong tokens at each place of the answer; nan where no answer has one."""
        return (~self.right & self.mask).sum(0) / self.mask.sum(0)


@torch.no_grad()
def score(
    model: LoopedTransformer,
    problems: Problems,
    *,
    offsets: Offsets | Sequence[Offsets] | None = None,
    loops: int | None = None,
    generator: torch.Generator | None = None,
    until_wrong: bool = False,
) -> Scores:
    """Measure every token of the right answers, given those before it.

    offsets: the model's own fixed offset by default; under "redrawn" each place of the answer is read from a pass of
        its own, as decoding would. Of several policies the mean of their log-probabilities decides each token.
    until_wrong: where places have passes of their own, none for a sum that is wrong at a later place; errors are most
        frequent late. `exact` is the same; tokens not measured count as wrong, with log-probability nan.
    Raises ValueError where a number needs an address beyond the table.
    """
    policies = policies_of(model, offsets)
    device, M = problems.tokens.device, int((problems.stop - problems.start).max())
    generator = generator or torch.Generator(device).manual_seed(0)
    for policy in policies:
        model.positions.require(policy, max(M - 1, problems.a.shape[1]))
    drawn = [_draws(policy, len(problems), M, generator) for policy in policies]
    one_pass = all(policy.policy != "redrawn" for policy in policies)
    right = torch.zeros(len(problems), M, dtype=torch.bool, device=device)
    log_probability = torch.full(right.shape, torch.nan, dtype=torch.double, device=device)
    places = torch.arange(M, device=device)
    mask = places < (problems.stop - problems.start)[:, None]
    undecided = torch.ones_like(mask[:, 0])
    for columns in [places] if one_pass else places.flip(0).split(1):
        asked = undecided & mask[:, columns].any(1)
        for rows in _passes(problems, asked):
            draws = [offset[rows, columns[0], None] for offset in drawn]
            measured = _measure(model, problems[rows].trimmed(), columns, draws, loops)
            right[rows[:, None], columns], log_probability[rows[:, None], columns] = measured
        if until_wrong:
            undecided &= (right | ~mask)[:, columns].all(1)
    return Scores(right, log_probability, mask)


def _draws(policy: Offsets, B: int, M: int, generator: torch.Generator) -> Tensor:
    """(B, M) offsets of every sum at every place of its answer."""
    if policy.policy == "redrawn":
        return torch.cat([policy.draw(B, generator) for _ in range(M)], 1)
    return policy.draw(B, generator).expand(B, M)


def _passes(problems: Problems, asked: Tensor) -> list[Tensor]:
    """Indices of the problems asked for, those of similar length together, as many as one pass takes."""
    rows = problems.stop.argsort(stable=True)
    rows = rows[asked[rows]]
    parts = rows.split(max(1, TOKENS_A_PASS[rows.device.type] // int(problems.stop.max())))
    return [part for part in parts if len(part)]


def _measure(model, problems, columns, draws, loops):
    """(B, C) whether the tokens in these columns of the answers are the most likely, and their log-probability."""
    # A column beyond an answer's end is read at the end of its row, and counts for nothing.
    tokens = problems.tokens
    places = (problems.start[:, None] + columns).clamp(max=tokens.shape[1] - 1)
    first, last = int(places.min()), int(places.max())
    row = torch.arange(len(tokens), device=tokens.device)[:, None]
    log_probs = [
        # From the end: a model may return the logits of all tokens.
        model(tokens[:, :last], draw, loops, since=first - 1)[row, places - last - 1].double().log_softmax(-1)
        for draw in draws
    ]
    log_prob, targets = torch.stack(log_probs).mean(0), tokens.gather(1, places)
    return log_prob.argmax(-1) == targets, log_prob.gather(2, targets[..., None])[..., 0]


def length_grid(
    model: LoopedTransformer,
    task: OperandTask,
    rows: Sequence[int],
    columns: Sequence[int],
    *,
    count: int = 100,
    seed: int = 0,
    offsets: Offsets | Sequence[Offsets] | Callable[[int], Sequence[Offsets]] | None = None,
    loops: int | None = None,
) -> np.ndarray:
    """(rows, columns) share of exact answers among `count` problems with so many digits in each operand.

    offsets: as in `score`, or a function that gives them for the number of digits of a cell's longer operand.
    Cells of equal length, or of equal longer operand under such a function, are measured together and in this order:
    the problems depend on the seed, the cells, the device, and whether `offsets` is a function.
    """
    cells = torch.tensor([(a, b) for a in rows for b in columns])
    generator, for_offsets = (torch.Generator(model.device).manual_seed(seed) for _ in range(2))
    exact = torch.empty(len(cells), dtype=torch.double)
    chosen = offsets if callable(offsets) else lambda digits: offsets
    for same in _groups(cells.amax(1) if callable(offsets) else cells.sum(1)):
        lengths = cells[same].repeat_interleave(count, 0)
        problems = task.problems(lengths, generator).trimmed()
        policies = chosen(int(cells[same].max()))
        scores = score(model, problems, offsets=policies, loops=loops, generator=for_offsets, until_wrong=True)
        exact[same] = scores.exact.view(-1, count).double().mean(1).cpu()
    return exact.view(len(rows), len(columns)).numpy()


def _groups(keys: Tensor) -> list[Tensor]:
    """Indices of the entries, those with equal keys together."""
    return [(keys == key).nonzero()[:, 0] for key in keys.unique()]


def error_by_carry_chain(problems: Problems, scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Share of wrong sums and number of sums for each longest carry chain, 0 to the longest that occurs.

    A chain that no sum has is nan.
    """
    chains = longest_carry_chain(problems.a, problems.b).cpu()
    total = torch.bincount(chains)
    wrong = torch.bincount(chains, weights=(~scores.exact).double().cpu(), minlength=len(total))
    return (wrong / total).numpy(), total.numpy()
