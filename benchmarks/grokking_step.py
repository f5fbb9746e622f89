"""One training step of the grokking model: ours against a plain implementation and against TransformerLens.

    arithlib bench grokking_step

Same configuration, same weights, prebuilt tensors, no test loss in the step. Before anything is timed, the losses of
all contestants must agree to 1e-6. Timed in turns (A B C A B C ...), so that a busy machine slows all of them; what
counts are the ratios. TransformerLens takes part if it is installed (`pip install "transformer-lens<4"`).
"""

import statistics

import torch
from timing import growth, in_turns, report, summary

from arithlib import checkpoints
from arithlib.evaluation import cross_entropy
from arithlib.experiments import ModularObjective
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.tasks.modular import ModularAddition
from arithlib.training import AdamW, subnormals_as_zero

ROUNDS, STEPS = 7, 10


def plain(model, task):
    """The three-position forward pass on all ordered pairs: what one writes first."""
    tokens, answers = task.tokens(task.train_pairs), task.answers(task.train_pairs)
    return lambda: cross_entropy(model(tokens)[:, -1], answers)


def without_mixing(model, task):
    """Ours at the `=` position only, pair by pair: without mixing tokens and without merging mirrored pairs."""
    pairs, answers = task.train_pairs, task.answers(task.train_pairs)
    return lambda: cross_entropy(model.answer_logits(pairs), answers)


def ours(model, task):
    objective = ModularObjective(task, model, torch.device("cpu"))
    return lambda: objective.loss(model, 0)


def transformer_lens(weights, config, task):
    """The same network in TransformerLens, biases it always has frozen at zero, as in its own grokking demo."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    model = HookedTransformer(
        HookedTransformerConfig(
            n_layers=1,
            n_heads=config.n_heads,
            d_model=config.d_model,
            d_head=config.d_head,
            d_mlp=config.d_mlp,
            act_fn="relu",
            normalization_type=None,
            d_vocab=config.p + 1,
            d_vocab_out=config.p + 1,
            n_ctx=3,
            init_weights=False,
            device="cpu",
            seed=0,
        )  # fmt: skip
    )
    block = model.blocks[0]
    pairs_of = {
        model.embed.W_E: weights.W_E, model.unembed.W_U: weights.W_U, block.attn.W_Q: weights.W_Q,
        block.attn.W_K: weights.W_K, block.attn.W_V: weights.W_V, block.attn.W_O: weights.W_O,
        block.mlp.W_in: weights.W_in, block.mlp.b_in: weights.b_in, block.mlp.W_out: weights.W_out,
        block.mlp.b_out: weights.b_out,
    }  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for theirs, value in pairs_of.items():
            theirs.copy_(value)
    for parameter in model.parameters():
        parameter.requires_grad_(any(parameter is used for used in pairs_of))
    tokens, answers = task.tokens(task.train_pairs), task.answers(task.train_pairs)
    return model, lambda: cross_entropy(model(tokens)[:, -1], answers)


def step_flops(config: GrokkingConfig, rows: int) -> float:
    """Operations of one step at `=` only: W_O, W_in, W_out and W_U on each row, once forward and twice back."""
    per_row = config.n_heads * config.d_head * config.d_model + config.d_model * (2 * config.d_mlp + config.p + 1)
    return 3 * 2 * rows * per_row


def step_of(model, loss):
    """One training step, as a function to be timed."""
    optimizer = AdamW().build([p for p in model.parameters() if p.requires_grad])

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    for _ in range(5):
        step()
    return step


def contest() -> dict:
    """Every contestant, beside the matrix products of the `=` position alone at the machine's measured rate."""
    task, config = ModularAddition(), GrokkingConfig()
    contestants = {}
    for name, make in (
        ("arithlib", ours),
        ("'=' only, no mixing", without_mixing),
        ("plain, three positions", plain),
    ):
        model = GrokkingTransformer(config)
        contestants[name] = (model, make(model, task))
    try:
        contestants["TransformerLens"] = transformer_lens(GrokkingTransformer(config), config, task)
    except ImportError:
        print('TransformerLens is not installed (pip install "transformer-lens<4"): left out.')
    losses = {name: loss().item() for name, (_, loss) in contestants.items()}
    assert max(losses.values()) - min(losses.values()) < 1e-6, losses
    x, w = torch.randn(3830, 128), torch.randn(128, 512)
    steps = {name: step_of(*contestant) for name, contestant in contestants.items()}
    times = in_turns(steps | {"matmul": lambda: [x @ w for _ in range(20)]}, ROUNDS, STEPS)
    rate = 20 * 2 * 3830 * 128 * 512 / statistics.median(times.pop("matmul"))
    found = summary(times, "arithlib")
    floor = step_flops(config, len(task.train_pairs)) / rate
    return {"contestants": found, "gflops": rate / 1e9, "floor_share": floor / found["arithlib"]["seconds"]}


def certain() -> dict:
    """A step from the weights of a run that has grokked, with subnormal numbers, and with zeros for them."""
    steps = {}
    for name, kept in (("subnormal numbers are zero", False), ("they are kept", True)):
        model = checkpoints.load("grokking-s0").model.requires_grad_(True)
        step = step_of(model, ours(model, ModularAddition()))
        steps[name] = step if kept else subnormals_as_zero()(step)
    return summary(in_turns(steps, ROUNDS, STEPS), "subnormal numbers are zero")


def by_width(widths=(32, 64, 128, 256, 512)) -> dict:
    """Seconds of a step by d_model, everything else in proportion."""
    steps = {}
    for d in widths:
        model = GrokkingTransformer(GrokkingConfig(d_model=d, n_heads=4, d_head=d // 4, d_mlp=4 * d))
        steps[d] = step_of(model, ours(model, ModularAddition()))
    return growth(widths, [statistics.median(values) for values in in_turns(steps, 5, 3).values()])


def main():
    torch.set_num_threads(2)
    found = contest()
    report(found["contestants"], "arithlib")
    print(f"matmul of the training shape: {found['gflops']:.0f} GFLOP/s; at that rate the matrix products of the '='")
    print(f"position would take {found['floor_share']:.0%} of our step")
    print("from the end of a run:")
    report(certain(), "subnormal numbers are zero")


if __name__ == "__main__":
    main()
