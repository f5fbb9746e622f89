"""The unrolled stack, the probe and the answers of chapter 67 against slower ways and planted truths."""

import dataclasses

import pytest
import torch
from short_runs import seeded, trained

from arithlib import experiments
from arithlib.decoding import greedy
from arithlib.models.looped import LoopedConfig, LoopedTransformer
from arithlib.models.positions import Offsets
from arithlib.tokenizer import END
from arithlib.training import AdamW
from chapters.ch67_loops import (
    LinearProbe,
    addresses_read,
    digit_states,
    logits_in,
    relative_steps,
    share_alike,
    states,
    unrolled,
    write,
)

SMALL = LoopedConfig(d_model=16, n_heads=2, d_mlp=32, n_layers=2, n_loops=3, positions="rotary", injection="none")
INJECTED = dataclasses.replace(SMALL, injection="loop", positions="abacus")


def questions(count=5):
    return torch.cat([torch.randint(10, (count, 8), generator=seeded()), torch.full((count, 1), 13)], 1)


def test_the_states_are_those_of_the_forward_pass():
    model, tokens = LoopedTransformer(INJECTED, 0), questions()
    _, seen = model(tokens, return_activations=True)
    path = states(model, tokens, 3)
    torch.testing.assert_close(path[0], seen["resid_pre"])
    for loop in range(3):
        torch.testing.assert_close(path[loop + 1], seen[f"loops.{loop}.layers.1.resid_post"])


def test_cut_injection_is_a_model_without_it_and_the_model_stays_as_it_was():
    model, tokens = LoopedTransformer(INJECTED, 0), questions()
    bare = LoopedTransformer(dataclasses.replace(INJECTED, injection="none"), 0)
    torch.testing.assert_close(states(model, tokens, 3, inject=False), states(bare, tokens, 3))
    assert not torch.allclose(states(model, tokens, 3), states(bare, tokens, 3)) and model.config == INJECTED


def test_steps_are_a_share_of_the_length_before_them():
    path = torch.tensor([3.0, 6.0, 6.0, 9.0])[:, None, None, None] * torch.tensor([0.6, 0.8])
    torch.testing.assert_close(relative_steps(path), torch.tensor([1.0, 0.0, 0.5]))


def test_the_stack_without_loops_computes_the_same_with_copies_of_the_weights():
    model, tokens = LoopedTransformer(SMALL, 1), questions()
    stack = unrolled(model)
    assert len(stack.layers) == 6 and torch.equal(stack(tokens), model(tokens))
    weights = [sum(w.numel() for w in one.layers.parameters()) for one in (stack, model)]
    assert weights[0] == 3 * weights[1]
    with torch.no_grad():
        stack.layers[4].out.weight += 0.1
    assert not torch.allclose(stack(tokens), model(tokens))


def test_a_model_with_injection_between_loops_has_no_plain_stack():
    with pytest.raises(ValueError, match="injection = 'loop'"):
        unrolled(LoopedTransformer(INJECTED, 0))


def test_a_probe_reads_a_planted_label_and_nothing_where_there_is_none():
    generator = seeded()
    label = torch.randint(6, (2, 400), generator=generator)
    planted = torch.randn(6, 12, generator=generator)[label] + 0.3 * torch.randn(2, 400, 12, generator=generator)
    assert LinearProbe(planted[0], label[0]).share_right(planted[1], label[1]) > 0.95
    scrambled = planted[1][torch.randperm(400, generator=generator)]
    assert LinearProbe(planted[0], label[0]).share_right(scrambled, label[1]) < 0.3


def tiny_adder(**more):
    first = experiments.get("loops-injection-s0")
    model = dataclasses.replace(first.model, d_model=32, n_heads=2, d_mlp=32, **more)
    return dataclasses.replace(
        first, name="loops-tiny", steps=2, evaluate_every=2, optimizer=AdamW.cosine(1e-3, 2), batch_size=4,
        evaluation_count=8, offsets=Offsets("per batch", k=10), model=model, probed_sums=80, probed_loops=3,
    )  # fmt: skip


def test_states_of_digits_come_with_their_addresses():
    e = tiny_adder()
    x, label = digit_states(e, e.build(), 50, 3, seed=1)
    assert x.shape == (4, len(label), 32)
    assert label.min() >= 1 and label.max() == e.task.max_digits + 1 + 9, "the longest answer under the last offset"


@pytest.mark.parametrize("planted", [True, False])
def test_addresses_are_read_where_they_are_and_not_where_the_table_is_empty(planted):
    e = tiny_adder(injection="none")
    model = e.build()
    with torch.no_grad():
        model.embedding.weight.mul_(0.1)
        (table,) = model.positions.children()
        table.weight[:32] = torch.eye(32) if planted else 0
        for layer in model.layers:  # that add nothing
            for part in (layer.out, layer.mlp_out):
                part.weight.zero_()
                part.bias.zero_()
    shares = addresses_read(e, model, 80, 3)
    assert len(shares) == 4 and (min(shares) == 1 if planted else max(shares) < 0.25)


def test_a_finished_adder_has_what_the_probe_reads():
    e = tiny_adder()
    model, run = trained(e)
    measured = e.finish(model, run)
    assert measured["address_read"].tolist() == [addresses_read(e, model, 80, 3)]
    assert "exact_match_together" in measured


def test_at_temperature_zero_it_writes_what_greedy_decoding_writes():
    model, tokens = LoopedTransformer(INJECTED, 2), questions()
    with torch.no_grad():
        model.unembedding.bias[END] += 0.3  # so that some answers end before the others
    expected = greedy(model, tokens, 5)
    said = write(model, tokens, 5, END)
    assert torch.equal(said[:, : expected.shape[1]], expected)
    torch.testing.assert_close(
        write(model, tokens, 5, END, loops=1)[:, :1], model(tokens, loops=1)[:, -1:].argmax(-1)
    )


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_prompt_read_once_is_answered_as_if_it_had_been_read_for_each_copy(temperature):
    model, tokens = LoopedTransformer(INJECTED, 2), questions()
    expected = write(model, tokens.repeat_interleave(3, 0), 5, END, temperature, seeded())
    assert torch.equal(write(model, tokens, 5, END, temperature, seeded(), copies=3), expected)


def test_draws_have_the_probabilities_of_the_model():
    model, tokens = LoopedTransformer(SMALL, 3), questions(1)
    with torch.no_grad():
        likely = (model(tokens)[0, -1].double() / 0.5).softmax(-1)
    drawn = write(model, tokens.expand(20_000, -1), 1, END, 0.5, seeded())[:, 0]
    found = torch.bincount(drawn, minlength=len(likely)) / len(drawn)
    assert (found - likely).abs().max() < 0.015


def test_alike_is_the_same_answer_every_time():
    one, other = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 5]])
    assert share_alike([one, one, one]) == 1 and share_alike([one, one, other]) == 0.5


def test_logits_in_another_precision_leave_the_model_as_it_was():
    model, tokens = LoopedTransformer(SMALL, 4), questions()
    usual, before = logits_in(model, tokens, batch=5), model(tokens)
    torch.testing.assert_close(logits_in(model, tokens, batch=2), usual)
    exact = logits_in(model, tokens, batch=5, dtype=torch.float64)
    assert exact.dtype == torch.float64 and 0 < (exact - usual).abs().max() < 1e-4
    assert (logits_in(model, tokens, batch=5, dtype=torch.bfloat16) - usual).abs().max() > 1e-3
    assert torch.equal(model(tokens), before)


def test_logits_by_more_threads_leave_their_number_as_it_was():
    model, tokens = LoopedTransformer(SMALL, 4), questions()
    usual, before, working = logits_in(model, tokens, batch=5), torch.get_num_threads(), []
    model.register_forward_hook(lambda *_: working.append(torch.get_num_threads()))
    torch.testing.assert_close(logits_in(model, tokens, batch=5, threads=before + 1), usual)
    assert working == [before + 1] and torch.get_num_threads() == before
