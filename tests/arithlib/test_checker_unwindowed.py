"""Without a window, too, the checker accepts what is shipped, and rejects what was tampered with."""

import hashlib
import json

import numpy as np
import pytest
import torch
from forging import nudged
from safetensors.torch import load_file, save_file

from arithlib import checkpoints
from arithlib.analysis.dilution import read
from arithlib.certify import checker
from arithlib.certify.case_split import Neighbours, _assured
from arithlib.certify.rounding import rounding
from arithlib.certify.tail_bounds import Bound
from arithlib.streaming import columns
from arithlib.tasks.operands import OperandTask

NAME = "adder-unwindowed-s1"  # the one with the fewest cases; chapter 71 checks all
FOLDER = checkpoints.find(NAME)
WEIGHTS, CERTIFICATE = FOLDER / f"{NAME}.safetensors", FOLDER / f"{NAME}.certificate.json"
STATED = json.loads(CERTIFICATE.read_text())


@pytest.fixture(scope="module")
def settled():
    """What the checker finds by itself, in all cases."""
    return checker.settle(checker.Fading(checker.read(WEIGHTS)[0]), checker.contexts(), STATED["margin"])


@pytest.fixture
def forged(tmp_path, monkeypatch, settled):
    """A function that changes certificate or weights and lets the checker look, with the cases found before."""
    monkeypatch.setattr(checker, "settle", lambda *_: settled)

    def forge(certificate=None, weight=None, by=0.0, own_up=True):
        content = WEIGHTS.read_bytes()
        stated = STATED | (certificate or {})
        if weight:
            content = nudged(content, *weight, by)
            if own_up:
                stated["sha256"] = hashlib.sha256(content).hexdigest()
        (tmp_path / "w").write_bytes(content)
        (tmp_path / "c").write_text(json.dumps(stated))
        checker.check(tmp_path / "w", tmp_path / "c")

    return forge


def test_the_shipped_certificate_holds(forged):
    forged()


@pytest.mark.parametrize("seed", range(3))
def test_a_certificate_states_what_the_checker_bounds_by_itself(seed):
    name = f"adder-unwindowed-s{seed}"
    stated = json.loads((FOLDER / f"{name}.certificate.json").read_text())
    fading = checker.Fading(checker.read(FOLDER / f"{name}.safetensors")[0])
    lead, keys = fading.astray(*checker.FLOAT32, checker.SLOPE_ERROR)
    ours = rounding(checkpoints.load(name).model)
    assert lead == pytest.approx(ours.lead, rel=0.02) and keys == ours.keys == stated["keys"]
    assert lead <= stated["rounding"] < stated["margin"] - stated["margin_float32"]


def test_its_bound_on_cases_is_the_certifiers_and_holds_in_real_sums():
    bound, near, fading = Bound(checkpoints.load(NAME).model), Neighbours(), checker.Fading(checker.read(WEIGHTS)[0])
    few = torch.arange(0, len(near.own), 23)
    cases = near.own[few, None], near.next[few, None]
    expected = _assured(bound, near, *cases, near.right[few])
    found = fading.leads(near.columns[cases[0]].numpy(), near.pairs[cases[1]].numpy(), near.right[few].numpy())
    for ours, theirs in zip(expected, found, strict=True):
        np.testing.assert_allclose(theirs, ours.numpy(), atol=1e-9)
    problems = OperandTask(max_digits=30).sample(40, torch.Generator().manual_seed(1))
    lines, reading = (
        columns(problems.a, problems.b).numpy(),
        read(checkpoints.load(NAME).model, problems.a, problems.b),
    )
    place = np.concatenate([np.arange(n) for n in reading.row.bincount().tolist()])
    row = reading.row.numpy()
    right, behind, ahead = lines[row, 2, place + 1], lines[row, :, place][:, None], lines[row, :2, place + 1][:, None]
    assured = fading.leads(behind, ahead, right)[0]
    assert (reading.margin.numpy() >= assured - 1e-9).all()


def test_a_nudged_weight_is_rejected(forged):
    with pytest.raises(checker.Rejected, match="other weights"):
        forged(weight=("log_slope", 2), by=1e-6, own_up=False)


def test_slopes_made_gentler_under_a_new_checksum_are_rejected(forged):
    with pytest.raises(checker.Rejected, match=r"(rounding is|keys have weight)"):
        forged(weight=("log_slope", 0), by=-2.0)


@pytest.mark.parametrize(
    ("name", "by", "problem"),
    [
        ("near", 60_000.0, "float32 could overflow"),
        ("qkv.bias", 100.0, "scores are beyond what exp can take"),
        ("log_slope", -6.0, "too many for this bound"),
    ],
)
def test_numbers_beyond_what_the_bounds_speak_of_are_rejected(tmp_path, name, by, problem):
    """Scores that exp makes infinite, or inexact next to 0, and sums of more terms than their bound is for."""
    tensors = load_file(WEIGHTS)
    tensors[f"model/{name}"] += by
    save_file(tensors, tmp_path / "w")
    with pytest.raises(checker.Rejected, match=problem):
        checker.Fading(checker.read(tmp_path / "w")[0]).astray(*checker.FLOAT32, checker.SLOPE_ERROR)


@pytest.mark.parametrize("name", ["unembedding.weight", "embedding.weight", "near", "qkv.bias", "log_slope"])
def test_weights_of_another_shape_are_no_match(tmp_path, name):
    """A token more could win unseen; one number where several are due would be spread over all."""
    tensors = load_file(WEIGHTS)
    tensors[f"model/{name}"] = torch.cat([tensors[f"model/{name}"], tensors[f"model/{name}"][:1]])
    save_file(tensors, tmp_path / "w")
    with pytest.raises(checker.Rejected, match="no weights of this model"):
        checker.read(tmp_path / "w")


def test_a_network_that_is_wrong_is_rejected_under_its_own_checksum(monkeypatch):
    monkeypatch.setattr(checker, "MOST_COLUMNS", 2)
    weights = checker.read(WEIGHTS)[0]
    weights["unembedding.bias"][7] += 12
    with pytest.raises(checker.Rejected, match="cases are open"):
        checker.settle(checker.Fading(weights), checker.contexts(), STATED["margin"])


def test_a_fault_where_all_is_known_is_named():
    weights = checker.read(WEIGHTS)[0]
    one_sum = {".+=00": "0", "000..": "$"}  # 0 + 0, and nothing else
    assert checker.settle(checker.Fading(weights), one_sum, STATED["margin"]) == (2, [])
    with pytest.raises(checker.Rejected, match="nothing else is there"):
        checker.settle(checker.Fading(weights), one_sum | {"000..": "7"}, STATED["margin"])


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("margin_float32", STATED["margin_float32"] + 0.05, "margin_float32 is .* not as stated"),
        ("margin_float32", 0.0, "not as stated"),
        ("margin", STATED["margin"] - 2, "not as stated"),
        ("rounding", STATED["rounding"] / 2, "rounding is .* not as stated"),
        ("keys", STATED["keys"] - 1, "keys have weight"),
        ("slope_error", 0.0, "another error to slopes"),
        ("zero_below", -50.0, "float32 end elsewhere"),
        ("exp_error", 0.0, "another error to exp"),
        ("contexts", STATED["contexts"] | {"count": STATED["contexts"]["count"] - 1}, "not the contexts"),
        ("cases", STATED["cases"] | {"count": STATED["cases"]["count"] - 1}, "not the cases"),
        ("cases", STATED["cases"] | {"split": STATED["cases"]["split"] - 1}, "not the cases"),
    ],
)
def test_a_false_statement_is_rejected(forged, name, value, problem):
    with pytest.raises(checker.Rejected, match=problem):
        forged({name: value})


def test_a_case_left_unsplit_is_rejected(forged, settled):
    fewer = settled[1][1:]
    with pytest.raises(checker.Rejected, match="not the cases"):
        forged({"cases": STATED["cases"] | {"split": len(fewer), "sha256": checker.sha256_of(fewer)}})


def test_the_file_of_another_seed_is_rejected():
    with pytest.raises(checker.Rejected, match="other weights"):
        checker.check(FOLDER / "adder-unwindowed-s0.safetensors", CERTIFICATE)


@pytest.mark.parametrize("name", ["adder-certified", "adder-flat-s0"])
def test_weights_that_do_not_fade_are_no_match(name):
    with pytest.raises(checker.Rejected, match="no weights of this model"):
        checker.check(checkpoints.find(name) / f"{name}.safetensors", CERTIFICATE)
