"""The checker accepts every shipped certificate, and rejects what was tampered with; it stands alone."""

import ast
import hashlib
import itertools
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from forging import nudged
from safetensors.torch import load_file, save_file

import arithlib
from arithlib import checkpoints
from arithlib.certify import addition, certificates, checker
from arithlib.models.column import ColumnConfig, ColumnTransformer

ROOT = Path(__file__).parents[2]
# One of each kind: chapters 72 and 73 check all. Those without a window have tests/test_checker_unwindowed.py, and
# chapter 71.
KINDS = {re.sub(r"-s\d.*", "", path.name): path for path in certificates.shipped() if "unwindowed" not in path.name}
NAME, PAGES, DIFFERENCES = NAMES = ("adder-certified", "pages-s0", "differences-s0")
SINKING = "compact-18-s3-settled"
ANOTHER = {NAME: PAGES, PAGES: DIFFERENCES, DIFFERENCES: NAME}  # whose certificate is about another operation


def files(name):
    folder = checkpoints.find(name)
    return folder / f"{name}.safetensors", certificates.path_of(name, folder)


@pytest.fixture(scope="module", autouse=True)
def recalled():
    """The checker's own contexts and bounds, which take it longest, are kept for weights that no forger changed."""
    kept, leads = {}, checker.leads

    def recall(weights, seen, right, unit, exp_error):
        known = (unit, exp_error, seen.tobytes(), right.tobytes(), *(part.tobytes() for part in weights.values()))
        if known not in kept:
            kept[known] = leads(weights, seen, right, unit, exp_error)
        return kept[known]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "leads", recall)
        for found in (checker.contexts, checker.page_contexts, checker.difference_contexts):
            patch.setattr(checker, found.__name__, cache(found))
        yield


@pytest.mark.parametrize("certificate", KINDS.values(), ids=lambda path: path.name.partition(".")[0])
def test_a_shipped_certificate_holds(monkeypatch, capsys, certificate):
    name = certificate.name.partition(".")[0]
    monkeypatch.setattr(sys, "argv", ["arithlib-check", *map(str, files(name))])
    checker.main()
    does = {"pages": "multiplies", "differences": "subtracts"}.get(name.partition("-")[0], "adds")
    assert capsys.readouterr().out == f"ACCEPTED: {does} every pair of non-negative integers\n"


def test_its_contexts_are_those_of_the_certifier():
    met = addition.reachable()
    ours = {addition.text(c): addition.ALPHABET[t] for c, t in zip(met.contexts, met.right, strict=True)}
    assert checker.contexts() == ours  # of pages and differences: test_certify_multiplication.py, ..._subtraction.py


def test_it_imports_neither_torch_nor_this_package():
    tree = ast.parse(Path(checker.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {"argparse", "hashlib", "json", "struct", "sys", "numpy"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_it_runs_by_itself(tmp_path):
    alone = tmp_path / "checker.py"
    alone.write_bytes(Path(checker.__file__).read_bytes())
    result = subprocess.run([sys.executable, "-I", alone, *files(DIFFERENCES)], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "ACCEPTED: subtracts every pair of non-negative integers\n")
    result = subprocess.run(
        [sys.executable, "-I", "-O", alone, files("grokking-s0")[0], files(NAME)[1]], capture_output=True, text=True
    )
    assert result.returncode == 1 and "REJECTED" in result.stderr


def test_it_says_how_it_is_called_and_what_version_it_is(monkeypatch, capsys):
    def answer(*arguments):
        monkeypatch.setattr(sys, "argv", ["arithlib-check", *arguments])
        with pytest.raises(SystemExit) as ended:
            checker.main()
        return ended.value.code, capsys.readouterr()

    status, shown = answer("--help")
    assert status == 0 and "arithlib-check" in shown.out and "CERTIFICATE.json" in shown.out
    status, shown = answer("--version")
    assert (status, shown.out) == (0, f"arithlib-check {arithlib.__version__}\n")
    status, shown = answer("only-one-file")
    assert status != 0 and "CERTIFICATE.json" in shown.err


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def stated(name):
    return json.loads(files(name)[1].read_text())


@pytest.fixture
def forged(tmp_path, name):
    """A function that changes the certificate, and the weights if asked to, and lets the checker look at both."""

    def forge(certificate=None, weight=None, by=0.0, own_up=True):
        content, said = files(name)[0].read_bytes(), stated(name)
        if weight:
            content = nudged(content, *weight, by)
            if own_up:
                said["sha256"] = hashlib.sha256(content).hexdigest()
        (tmp_path / "w.safetensors").write_bytes(content)
        (tmp_path / "c.json").write_text(json.dumps(said | (certificate or {})))
        checker.check(tmp_path / "w.safetensors", tmp_path / "c.json")

    return forge


def test_unchanged_it_is_accepted(forged):
    forged()


def test_a_nudged_weight_is_rejected(forged):
    with pytest.raises(checker.Rejected, match="other weights"):
        forged(weight=("qkv.weight", 17), by=1e-6, own_up=False)


def test_a_nudged_weight_with_a_new_checksum_is_rejected_where_it_matters(forged):
    with pytest.raises(checker.Rejected, match="margin is .* not as stated"):
        forged(weight=("unembedding.bias", 5), by=20.0)


@pytest.mark.parametrize("number", ["margin", "margin_float32"])
def test_an_overstated_margin_is_rejected(forged, name, number):
    with pytest.raises(checker.Rejected, match=f"{number} is .* not as stated"):
        forged({number: 2 * stated(name)[number]})
    with pytest.raises(checker.Rejected, match="not as stated"):
        forged({number: 0.0})


def test_a_missing_context_is_rejected(forged, name):
    found = {PAGES: checker.page_contexts, DIFFERENCES: checker.difference_contexts}.get(name, checker.contexts)()
    lines = [context + token for context, token in found.items()]
    said = {"count": len(lines), "sha256": checker.sha256_of(lines)}
    assert stated(name)["contexts"] == said
    fewer = {"count": len(lines) - 1, "sha256": checker.sha256_of(lines[1:])}
    for other in (fewer, said | {"count": len(lines) - 1}, said | {"sha256": "0" * 64}, {}, None):
        with pytest.raises(checker.Rejected, match="not the contexts that occur"):
            forged({"contexts": other})


def test_the_contexts_of_another_operation_are_rejected(forged, name):
    with pytest.raises(checker.Rejected, match="not the contexts that occur"):
        forged({"contexts": stated(ANOTHER[name])["contexts"]})


def test_a_weaker_hypothesis_is_rejected(forged):
    with pytest.raises(checker.Rejected, match="another error"):
        forged({"exp_error": 0.0})


@pytest.mark.parametrize("words", ["statement", "hypotheses"])
def test_other_words_are_rejected(forged, name, words):
    another = stated(ANOTHER[name])[words]
    for other in (stated(name)[words][:-1], another, None, "", []):
        with pytest.raises(checker.Rejected, match="the certificate (states|assumes) something else"):
            forged({words: other})


def test_its_words_are_those_of_the_certifier():
    assert checker.STATEMENT == certificates.STATEMENT
    assert checker.HYPOTHESES == certificates.HYPOTHESES
    assert checker.FADING_HYPOTHESES == certificates.UNWINDOWED_HYPOTHESES
    assert checker.PRODUCT_STATEMENT == certificates.PRODUCT_STATEMENT
    assert checker.PRODUCT_HYPOTHESES == certificates.PRODUCT_HYPOTHESES
    assert checker.DIFFERENCE_STATEMENT == certificates.DIFFERENCE_STATEMENT
    assert checker.DIFFERENCE_HYPOTHESES == certificates.DIFFERENCE_HYPOTHESES


@pytest.mark.parametrize("value", [True, "0.5", None, [1], float("inf"), float("nan")])
@pytest.mark.parametrize("number", checker.NUMBERS)
def test_what_is_no_number_is_rejected(forged, number, value):
    with pytest.raises(checker.Rejected, match=f"{number} is no number"):
        forged({number: value})


NO_HEADS = json.dumps({"model/near": {"dtype": "F32", "shape": [0, 4, 2], "data_offsets": [0, 0]}}).encode()


def damaged(name):
    """Pairs of files, one of which is no file of its kind."""
    WEIGHTS, CERTIFICATE = (path.read_bytes() for path in files(name))
    without = [{key: value for key, value in stated(name).items() if key != missing} for missing in stated(name)]
    yield from ((WEIGHTS, json.dumps(said).encode()) for said in without if "checkpoint" in said)
    yield from [
        (WEIGHTS, b""),
        (WEIGHTS, b"null"),
        (WEIGHTS, b"[]"),
        (WEIGHTS, b"\xff\xfe"),
        (WEIGHTS, b"[" * 100_000),
        (WEIGHTS, b"1" * 10_000),
        (WEIGHTS, CERTIFICATE[:-9]),
        (WEIGHTS, CERTIFICATE.replace(b'"margin": ', b'"margin": 1e')),
        (b"", CERTIFICATE),
        (WEIGHTS[:7], CERTIFICATE),
        (WEIGHTS[:5000], CERTIFICATE),
        (b"\xff" * 8 + WEIGHTS[8:], CERTIFICATE),
        (len(NO_HEADS).to_bytes(8, "little") + NO_HEADS, CERTIFICATE),
        ((2).to_bytes(8, "little") + b"[]", CERTIFICATE),
    ]


def test_a_malformed_file_is_rejected_in_one_line(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sys, "argv", ["checker.py", str(tmp_path / "w"), str(tmp_path / "c")])
    for weights, certificate in damaged(name):
        (tmp_path / "w").write_bytes(weights)
        (tmp_path / "c").write_bytes(certificate)
        with pytest.raises(SystemExit) as answer:
            checker.main()
        assert str(answer.value).startswith("REJECTED: ") and "\n" not in str(answer.value), certificate[:80]


@pytest.mark.parametrize("tensor", ["unembedding.weight", "embedding.weight", "near", "near_value", "out.weight"])
@pytest.mark.parametrize("by_slot", [PAGES, DIFFERENCES])
def test_weights_of_another_shape_are_no_match(tmp_path, by_slot, tensor):
    """A token or a slot more could win unseen."""
    tensors = load_file(files(by_slot)[0])
    tensors[f"model/{tensor}"] = torch.cat([tensors[f"model/{tensor}"], tensors[f"model/{tensor}"][:1]])
    save_file(tensors, tmp_path / "w")
    with pytest.raises(checker.Rejected, match="no weights of this model"):
        checker.read(tmp_path / "w")


def test_with_a_slot_more_a_difference_is_a_page_and_needs_the_certificate_of_one(tmp_path):
    tensors = load_file(files(DIFFERENCES)[0])
    for name in ("model/near", "model/near_value"):
        tensors[name] = torch.cat([tensors[name], tensors[name][:1]])
    save_file(tensors, tmp_path / "w")
    right = {"sha256": hashlib.sha256((tmp_path / "w").read_bytes()).hexdigest()}
    for certificate, problem in ((DIFFERENCES, "states something else"), (PAGES, "margin is .* not as stated")):
        (tmp_path / "c").write_text(json.dumps(stated(certificate) | right))
        with pytest.raises(checker.Rejected, match=problem):
            checker.check(tmp_path / "w", tmp_path / "c")


@pytest.mark.parametrize(("weights", "certificate"), [*itertools.permutations(NAMES, 2)])
def test_a_certificate_of_another_operation_is_rejected_even_with_the_right_checksum(tmp_path, weights, certificate):
    (tmp_path / "c").write_text(json.dumps(stated(certificate) | {"sha256": stated(weights)["sha256"]}))
    with pytest.raises(checker.Rejected, match="states something else"):
        checker.check(files(weights)[0], tmp_path / "c")


@pytest.mark.parametrize(
    ("name", "sink", "problem"), [(SINKING, 1.0, "not as stated"), (NAME, 0.0, "assumes something")]
)
def test_another_sink_or_one_that_is_not_stated_is_rejected(tmp_path, name, sink, problem):
    tensors = load_file(files(name)[0])
    heads = tensors["model/near"].shape[0]
    save_file(tensors | {"model/sink": torch.full((heads,), sink)}, tmp_path / "w")
    right = {"sha256": hashlib.sha256((tmp_path / "w").read_bytes()).hexdigest()}
    (tmp_path / "c").write_text(json.dumps(stated(name) | right))
    with pytest.raises(checker.Rejected, match=problem):
        checker.check(tmp_path / "w", tmp_path / "c")


@pytest.mark.parametrize("width", [2, 64, 1024])
def test_the_largest_network_that_is_read_stays_finite_in_float32(tmp_path, width):
    """All numbers alike and positive, so that nothing cancels: no network of that width has larger sums."""
    size = (checker.LIMIT / (2 * width**5)) ** (1 / 6)
    network = ColumnTransformer(ColumnConfig("window-sink", d_model=width, n_heads=1, d_mlp=width))
    for grown, accepted in ((0.99, True), (1.01, False)):
        for weights in network.parameters():
            torch.nn.init.constant_(weights, grown * size)
        save_file({f"model/{name}": each.clone() for name, each in network.state_dict().items()}, tmp_path / "w")
        if accepted:
            checker.read(tmp_path / "w")
            with torch.no_grad():
                assert network(torch.tensor([[1, 2, 11, 3, 13]])).isfinite().all()
        else:
            with pytest.raises(checker.Rejected, match="float32 could overflow"):
                checker.read(tmp_path / "w")


@pytest.mark.parametrize("by_slot", [PAGES, DIFFERENCES])
def test_what_reads_slots_and_fades_is_no_match(tmp_path, by_slot):
    tensors = load_file(files(by_slot)[0])
    save_file(tensors | {"model/log_slope": torch.zeros(tensors["model/near"].shape[1])}, tmp_path / "w")
    right = {"sha256": hashlib.sha256((tmp_path / "w").read_bytes()).hexdigest()}
    for more in (right, right | {"cases": {}}):
        (tmp_path / "c").write_text(json.dumps(stated(by_slot) | more))
        with pytest.raises(checker.Rejected, match="no weights of this model"):
            checker.check(tmp_path / "w", tmp_path / "c")


def test_the_file_of_another_checkpoint_is_rejected():
    with pytest.raises(checker.Rejected, match="other weights"):
        checker.check(files("adder-wide-s0")[0], files(NAME)[1])


@pytest.mark.parametrize("other", ["grokking-s0", "adder-unwindowed-s0", "planar-rows-s0"])
def test_the_weights_of_another_kind_of_model_are_rejected(name, other):
    with pytest.raises(checker.Rejected, match="no weights of this model"):
        checker.check(files(other)[0], files(name)[1])


def test_another_place_of_the_smallest_margin_is_rejected(forged):
    for place in (".+=00", "00...=", "00..=", None, ["."]):
        with pytest.raises(checker.Rejected, match="not where the certificate says"):
            forged({"margin_at": place})


def test_weights_that_are_no_numbers_are_rejected(forged):
    with pytest.raises(checker.Rejected, match="not finite"):
        forged(weight=("near", 0), by=np.inf)


def test_what_underflows_lies_within_the_bounds():
    """Products below 2^-150 are zero in float32, however they are summed."""
    x, weight = np.full((1, 40), 2.0**-80), np.full((1, 40), 2.0**-80)
    computed = float((x.astype(np.float32) * weight.astype(np.float32)).sum())
    low, high = checker.linear((x, x), weight, checker.FLOAT32[0])
    assert computed == 0 < (x * weight).sum()
    assert low[0, 0] <= computed <= high[0, 0]


def test_a_matrix_takes_an_interval_to_all_that_its_corners_reach():
    rng = np.random.default_rng(0)
    weight, ends = rng.standard_normal((4, 6)), np.sort(rng.standard_normal((2, 1, 6)), axis=0)
    corners = np.array([ends[list(which), 0, range(6)] for which in itertools.product((0, 1), repeat=6)]) @ weight.T
    low, high = checker.linear(ends, weight, checker.FLOAT32[0])
    assert (low[0] <= corners.min(0)).all() and (corners.max(0) <= high[0]).all()
    np.testing.assert_allclose([low[0], high[0]], [corners.min(0), corners.max(0)], atol=1e-5)
