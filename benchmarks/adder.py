"""Data, training step and evaluation of the looped adder, against what one writes first (chapters 31 and 32).

    arithlib bench adder

The model of `abacus-cpu`, trained: up to 20 digits, d_model 128, two layers looped twice. The source numbers digits
in a Python loop over batch and tokens, and computes the whole prefix again for every token that it writes; both are
rebuilt here, and must agree with ours before anything is timed; so must grids of exact match. Timed in turns, so that
a busy machine slows all of them; what counts are the ratios. On one core.
"""

import statistics
from functools import partial

import torch
from timing import growth, in_turns, report, summary

from arithlib import checkpoints, experiments
from arithlib.decoding import greedy
from arithlib.exact_match import score
from arithlib.models.positions import Offsets, addresses

NAME, ROUNDS = "abacus-cpu-s0", 5
GRID = range(8, 41, 8)


def numbered_in_a_loop(tokens, offset):
    """Abacus addresses as source 002 computes them: token by token."""
    table = torch.zeros_like(tokens)
    for row in range(len(tokens)):
        place = 0
        for column, token in enumerate(tokens[row].tolist()):
            place = place + 1 if token < 10 else 0
            if place:
                table[row, column] = place + int(offset)
    return table


def training(experiment):
    """What a step costs, and how much of it is making the problems and numbering their digits."""
    model, generator = experiment.build(), torch.Generator()
    objective = experiment.objective(model, torch.device("cpu"))
    optimizer = experiment.optimizer.build(model.parameters())

    def step():
        optimizer.zero_grad()
        objective.loss(model, 0).backward()
        optimizer.step()

    def data():
        problems = experiment.task.sample(experiment.batch_size, generator)
        offset = experiment.offsets.draw(experiment.batch_size, generator)
        for part in problems.by_length(4):
            addresses(part.tokens, offset)

    tokens = experiment.task.sample(95, generator).tokens
    offset = torch.tensor([[38]])
    assert torch.equal(numbered_in_a_loop(tokens, offset), addresses(tokens, offset))
    steps = in_turns({"training step": step, "its problems and addresses": data}, ROUNDS)
    numbered = in_turns({
        "vectorised": lambda: addresses(tokens, offset),
        "token by token (source)": lambda: numbered_in_a_loop(tokens, offset),
    }, ROUNDS)  # fmt: skip
    return {"step": summary(steps, "training step"), "addresses": summary(numbered, "vectorised")}


def evaluation(model, task, digits=40, count=100):
    """Exact match of the same sums in three ways."""
    sums = task.problems(torch.full((count, 2), digits), torch.Generator().manual_seed(0))
    prompts, steps = sums.prompts(), digits + 2
    right = sums.tokens[:, prompts.shape[1] : prompts.shape[1] + steps]

    def decoded(cache):
        written = greedy(model, prompts, steps, cache=cache)
        return (torch.nn.functional.pad(written, (0, right.shape[1] - written.shape[1])) == right).all(1)

    ways = {
        "teacher-forced, one pass": lambda: score(model, sums).exact,
        "greedy, with a cache": lambda: decoded(True),
        "greedy, every prefix again (source)": lambda: decoded(False),
    }
    results = [run() for run in ways.values()]
    assert all(torch.equal(results[0], result) for result in results[1:])
    return summary(in_turns(ways, ROUNDS), "teacher-forced, one pass")


def by_digits(model, task, digits=(10, 20, 40, 80), count=50):
    """Seconds to score sums by their digits."""
    runs = {}
    for n in digits:
        sums = task.problems(torch.full((count, 2), n), torch.Generator().manual_seed(0))
        runs[n] = partial(score, model, sums)
    return growth(digits, [statistics.median(values) for values in in_turns(runs, ROUNDS).values()])


def scored_plainly(model, sums, policies, generator):
    """(B,) exact match as one writes it first: all sums filled to one length, all logits, MKL's products."""
    rows, log_prob = torch.arange(len(sums)), 0
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        for policy in policies:
            logits = model(sums.tokens[:, :-1], policy.draw(len(sums), generator))
            steps = int((sums.stop - sums.start).max()) if policy.policy == "redrawn" else 1
            for step in range(1, steps):
                place = (sums.start + step).clamp(max=sums.tokens.shape[1] - 1)
                again = model(sums.tokens[:, : int(place.max())], policy.draw(len(sums), generator))
                logits[rows, place - 1] = again[rows, place - 1]
            log_prob = log_prob + logits.double().log_softmax(-1)
    return ((log_prob.argmax(-1) == sums.tokens[:, 1:]) | ~sums.answer_mask[:, 1:]).all(1)


def scored(model, sums, policies, generator):
    return score(model, sums, offsets=policies, generator=generator, until_wrong=True).exact


def grid(model, experiment):
    """Up to 40 x 40 digits, in the ways that chapters 32 and 33 ask for."""
    measured = {}
    for what, (policies, count) in {
        "one offset": ([model.offsets], 40),
        "eight offsets": (experiment.offset_ensemble(model, GRID[-1]), 5),
        "redrawn offsets": ([Offsets("redrawn", k=experiment.offsets.k)], 2),
    }.items():
        lengths = torch.cartesian_prod(*2 * [torch.tensor(GRID)]).repeat_interleave(count, 0)
        by_total = [lengths[lengths.sum(1) == total] for total in lengths.sum(1).unique()]
        cells = [experiment.task.problems(same, torch.Generator().manual_seed(0)).trimmed() for same in by_total]

        def exact(way, cells=cells, policies=policies):
            return torch.cat([way(model, sums, policies, torch.Generator().manual_seed(0)) for sums in cells])

        assert torch.equal(exact(scored), exact(scored_plainly))
        times = in_turns({"as in the book": partial(exact, scored), "plainly": partial(exact, scored_plainly)}, 3)
        measured[what] = {"sums": len(lengths), "ways": summary(times, "as in the book")}
    return measured


def main():
    torch.set_num_threads(1)
    experiment = experiments.get(NAME)
    model = checkpoints.load(NAME).model
    found = training(experiment)
    print(f"one step of {experiment.batch_size} sums of up to {experiment.task.max_digits} digits")
    report(found["step"], "training step")
    print("addresses of 95 sums")
    report(found["addresses"], "vectorised")
    print("exact match of 100 sums of 40 + 40 digits")
    report(evaluation(model, experiment.task), "teacher-forced, one pass")
    for what, found in grid(model, experiment).items():
        print(f"exact match of {found['sums']} sums of up to 40 + 40 digits, {what}")
        report(found["ways"], "as in the book")


if __name__ == "__main__":
    main()
