"""The measures of chapter 56 where it is planted what the last token is, and a run that keeps them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from arithlib.models.decoder import Decoder, DecoderConfig
from chapters.ch52_clock import helices
from chapters.ch52_effects import EVERY, study
from chapters.ch56_experiments import LayersExperiment
from chapters.ch56_layers import by_level, measure

CONFIG = DecoderConfig(d_model=16, n_layers=2, n_heads=2, d_mlp=8)


@pytest.fixture(scope="module")
def model():
    return Decoder(CONFIG, seed=1)


def test_each_helix_is_found_after_the_layer_that_writes_it(model):
    s = study(model, data_seed=0, n_periods=2, n_pairs=20)
    s = replace(s, periods=[40.0, 10.0])
    generator = torch.Generator().manual_seed(0)

    def planted(of):
        columns = helices(EVERY, s.periods, of)[:, 1:]
        return columns @ torch.randn(columns.shape[1], 16, generator=generator, dtype=torch.float64)

    first, second = planted("a b"), planted("a+b")
    parts = {
        "0.attn_out": first,
        "0.mlp_out": 0 * first,
        "1.attn_out": second / 4,
        "1.mlp_out": 3 * second / 4 - first,
    }
    s = replace(s, last={"resid.1": first.float(), "resid.2": second.float()} | parts)
    found = by_level(s)
    _, _, both, of_sum = found["fits"].T
    assert both[0] == pytest.approx(1, abs=1e-6) and of_sum[0] < 0.1
    assert of_sum[1] == pytest.approx(1, abs=1e-6) and both[1] < 0.1
    assert (found["shuffled"] < 0.01).all()
    assert found["by_mlp"][1] == pytest.approx(3 / 4, abs=0.01)


def test_a_part_that_writes_nothing_has_no_effect_and_comes_last(model):
    model = Decoder(CONFIG, seed=1)
    with torch.no_grad():
        model.blocks[1].W_O[1] = 0
    found = measure(model, 0)
    assert found["head_total"][1, 1] == pytest.approx(0, abs=1e-5)
    assert found["head_direct"][1, 1] == pytest.approx(0, abs=1e-5)
    assert found["mlp_total"][0] == pytest.approx(0, abs=1e-5)  # it reads nothing but the sign =
    assert sorted(found["head_order"]) == [0, 1, 2, 3] and found["head_curve"][-1] == 1
    alone = found["head_total"].flatten()
    assert (np.diff(alone[found["head_order"]]) <= 0).all()


def test_a_run_keeps_what_is_measured_of_its_model(model):
    run = LayersExperiment(name="decoder-tried", about="", steps=1, evaluate_every=1, model=CONFIG)
    kept = run.finish(model, None)
    assert {name: values.shape[1:] for name, values in kept.items()} == {
        name: values.shape for name, values in measure(model, 0).items()
    }
    assert kept["kept"].shape == (1, 2, 4) and np.isfinite(kept["fits"]).all()
