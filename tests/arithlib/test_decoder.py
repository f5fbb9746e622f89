"""The decoder against plain loops, its fast path against the slow one, and edits of every activation."""

import pytest
import torch

from arithlib import checkpoints, experiments
from arithlib.experiments.decoder import DigitExperiment
from arithlib.models.decoder import MLPS, Decoder, DecoderConfig, DigitDecoder, normalise
from arithlib.models.positions import rotate, rotation
from arithlib.tasks.prompts import D_VOCAB_DIGITS, digit_answer, digit_prompt, prompt

SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 2, "d_mlp": 24}


@pytest.fixture(params=MLPS)
def model(request):
    return Decoder(DecoderConfig(mlp=request.param, **SMALL), seed=1).eval()


@pytest.fixture(scope="module")
def prompts():
    a, b = torch.randint(100, (2, 30), generator=torch.Generator().manual_seed(0))
    return prompt(a, b)


def test_the_shared_opening_changes_nothing(model, prompts):
    with torch.no_grad():
        assert torch.allclose(model.answer_logits(prompts), model(prompts), atol=1e-5)


@torch.no_grad()
def test_the_model_is_what_plain_loops_compute(model, prompts):
    tokens, c = prompts[0], model.config
    x = [model.W_E[t] for t in tokens]
    for block in model.blocks:
        normed = [normalise(v) for v in x]
        new = []
        for t in range(4):
            out = x[t].clone()
            for h in range(c.n_heads):
                turned = [
                    rotate((normed[s] @ W[h])[None, None, None], *rotation(torch.tensor([s]), 16))[0, 0, 0]
                    for s, W in [(t, block.W_Q), *((s, block.W_K) for s in range(t + 1))]
                ]
                weights = torch.stack([turned[0] @ key / 4 for key in turned[1:]]).softmax(0)
                out += sum(w * (normed[s] @ block.W_V[h]) for s, w in enumerate(weights)) @ block.W_O[h]
            pre = normed[t] @ block.W_in + block.b_in
            if c.mlp == "gated":
                gate = normed[t] @ block.W_gate
                post = pre * gate * torch.sigmoid(gate)
            else:
                post = pre * (1 + torch.erf(pre / 2**0.5)) / 2
            new.append(out + post @ block.W_out + block.b_out)
        x = new
    assert torch.allclose(normalise(x[-1]) @ model.W_U, model(prompts[:1])[0], atol=1e-4)


def test_an_edit_of_any_activation_changes_the_answer_and_is_what_is_read(model, prompts):
    logits, activations = model(prompts, return_activations=True)
    assert len(activations) == 3 + 2 * (11 if model.config.mlp == "gelu" else 12)
    for name, value in activations.items():
        edited, seen = model(prompts, {name: lambda x: x.roll(1, 0)}, return_activations=True)
        assert torch.equal(seen[name], value.roll(1, 0)), name
        assert not torch.allclose(edited, logits, atol=1e-6), name


def test_putting_an_activation_back_changes_nothing(model, prompts):
    logits, activations = model(prompts, return_activations=True)
    same = model(prompts, {name: lambda x, value=value: value for name, value in activations.items()})
    assert torch.equal(same, logits)


def test_the_parts_of_a_block_add_up(model, prompts):
    _, at = model(prompts, return_activations=True)
    for layer in range(2):
        total = at[f"resid.{layer}"] + at[f"{layer}.attn_out"] + at[f"{layer}.mlp_out"]
        assert torch.allclose(total, at[f"resid.{layer + 1}"], atol=1e-5)


def test_what_comes_later_is_not_seen(model, prompts):
    other = prompts.clone()
    other[:, 2] = (other[:, 2] + 1) % 100
    one, two = (model(p, return_activations=True)[1]["resid.2"][:, :2] for p in (prompts, other))
    assert torch.equal(one, two)


def test_an_unknown_edit_is_refused(model, prompts):
    with pytest.raises(ValueError, match=r"no activation is called \['resid.9'\]"):
        model(prompts, {"resid.9": lambda x: x})


@pytest.mark.parametrize(("wrong", "message"), [({"mlp": "relu"}, "choose one of"), ({"n_heads": 5}, "even d_head")])
def test_a_wrong_config_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        DecoderConfig(**wrong)


def test_plain_and_gated_models_have_as_many_weights():
    sizes = [
        sum(p.numel() for p in experiments.get(name).build().parameters())
        for name in ("decoder-s0", "decoder-gated-s0")
    ]
    assert abs(sizes[0] - sizes[1]) < 0.02 * sizes[0]


@pytest.mark.parametrize("name", ["decoder-s0", "decoder-tasks-s0"])
def test_a_few_steps_lower_the_loss_and_a_batch_depends_on_its_step_alone(name):
    experiment = experiments.get(name)
    model = experiment.build()
    objective = experiment.objective(model, torch.device("cpu"))
    first = objective.loss(model, 5).item()
    assert first == objective.loss(model, 5).item() != objective.loss(model, 6).item()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(12):
        optimizer.zero_grad()
        objective.loss(model, step).backward()
        optimizer.step()
    assert objective.loss(model, 5).item() < first
    measured = objective.evaluate(model)
    assert set(measured) == {f"{s}_{what}" for s in ("train", "test", "others") for what in ("loss", "accuracy")}


def test_digits_are_written_one_by_one_each_from_those_before():
    model = DigitDecoder(DecoderConfig(d_vocab=D_VOCAB_DIGITS, **SMALL), seed=2)
    tokens = digit_prompt(torch.tensor([57, 8]), torch.tensor([42, 99])).tolist()
    written = []
    for row in tokens:
        for _ in range(3):
            row.append(int(model(torch.tensor([row]))[0].argmax()))
        written.append(100 * row[-3] + 10 * row[-2] + row[-1])
    assert model.sums(digit_prompt(torch.tensor([57, 8]), torch.tensor([42, 99]))).tolist() == written
    asked = DigitExperiment(name="digits", about="", steps=1, evaluate_every=1)
    assert asked.add(model, 57, 42) == written[0]
    with pytest.raises(ValueError, match="from 0 to 99"):
        asked.add(model, 100, 1)


def test_the_loss_on_digits_is_that_of_one_digit_after_another():
    experiment = experiments.get("decoder-digits-s0")
    model = experiment.build()
    objective = experiment.objective(model, torch.device("cpu"))
    assert objective.loss(model, 5).item() == objective.loss(model, 5).item() != objective.loss(model, 6).item()
    a, b = experiment.sums.test_pairs[:400].T
    objective.test = digit_prompt(a, b), digit_answer(a + b)
    with torch.no_grad():
        tokens, loss = objective.test[0], 0.0
        for digit in objective.test[1].T:
            loss -= float(model(tokens).log_softmax(1).gather(1, digit[:, None]).mean()) / 3
            tokens = torch.cat([tokens, digit[:, None]], 1)
    assert objective.evaluate(model)["test_loss"] == pytest.approx(loss, rel=1e-5)


def test_all_digits_right_is_what_greedy_decoding_gets_right():
    trained = checkpoints.load_or_train("decoder-digits-s0")
    a, b = trained.experiment.sums.test_pairs.T
    greedy = float((trained.model.sums(digit_prompt(a, b)) == a + b).double().mean())
    assert greedy == pytest.approx(float(trained.history["test_accuracy"][-1]), abs=1e-3)
