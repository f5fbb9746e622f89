"""One training step of the grokking model: ours against a plain implementation and against TransformerLens.

    python -m arithlib bench grokking_step

Same configuration, same weights, prebuilt tensors, no test loss in the step. Before anything is timed, the losses of
all contestants must agree to 1e-6. Timed in turns (A B C A B C ...), so that a busy machine slows all of them; what
counts are the ratios. TransformerLens takes part if it is installed (`pip install "transformer-lens<4"`).
"""

import statistics
import time

import torch

from arithlib.evaluation import cross_entropy
from arithlib.experiments import ModularObjective
from arithlib.models.grokking import GrokkingConfig, GrokkingTransformer
from arithlib.tasks.modular import ModularAddition
from arithlib.training import AdamW

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


def matmul_rate(rows: int, inner: int, columns: int) -> float:
    """Measured GFLOP/s of a float32 matrix product."""
    x, w = torch.randn(rows, inner), torch.randn(inner, columns)
    for _ in range(5):
        x @ w
    started = time.perf_counter()
    repeats = 100
    for _ in range(repeats):
        x @ w
    return 2 * rows * inner * columns * repeats / (time.perf_counter() - started) / 1e9


def step_flops(config: GrokkingConfig, rows: int) -> float:
    """Operations of one step at `=` only: W_O, W_in, W_out and W_U on each row, once forward and twice back."""
    per_row = config.n_heads * config.d_head * config.d_model + config.d_model * (2 * config.d_mlp + config.p + 1)
    return 3 * 2 * rows * per_row


def main():
    torch.set_num_threads(2)
    task, config = ModularAddition(), GrokkingConfig()
    contestants = {}
    for name, make in (
        ("plain, three positions", plain),
        ("'=' only, no mixing", without_mixing),
        ("arithlib", ours),
    ):
        model = GrokkingTransformer(config)
        contestants[name] = (model, make(model, task))
    try:
        contestants["TransformerLens"] = transformer_lens(GrokkingTransformer(config), config, task)
    except ImportError:
        print('TransformerLens is not installed (pip install "transformer-lens<4"): left out.')
    losses = {name: loss().item() for name, (_, loss) in contestants.items()}
    assert max(losses.values()) - min(losses.values()) < 1e-6, losses
    print("loss", {name: round(value, 9) for name, value in losses.items()})

    steps = {}
    for name, (model, loss) in contestants.items():
        optimizer = AdamW().build([p for p in model.parameters() if p.requires_grad])

        def step(loss=loss, optimizer=optimizer):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

        for _ in range(5):
            step()
        steps[name] = step
    times = {name: [] for name in steps}
    rates = []
    for _ in range(ROUNDS):
        for name, step in steps.items():
            started = time.perf_counter()
            for _ in range(STEPS):
                step()
            times[name].append((time.perf_counter() - started) / STEPS)
        rates.append(matmul_rate(3830, 128, 512))

    own = times["arithlib"]
    print(f"matmul of the training shape: {statistics.median(rates):.0f} GFLOP/s")
    for name, values in times.items():
        ratio = statistics.median(a / b for a, b in zip(values, own, strict=True))
        low, _, high = (1e3 * quartile for quartile in statistics.quantiles(values, n=4))
        print(f"{name:24} {1e3 * statistics.median(values):7.1f} ms  ({low:.1f} to {high:.1f})  {ratio:5.2f} x ours")
    floor = step_flops(config, len(task.train_pairs)) / (statistics.median(rates) * 1e9)
    share = floor / statistics.median(own)
    print(f"matrix products of '=' only at that rate: {1e3 * floor:.1f} ms, {share:.0%} of our step")


if __name__ == "__main__":
    main()
