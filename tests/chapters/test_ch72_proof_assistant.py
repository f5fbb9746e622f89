"""Coq accepts the proofs of the three operations, without axioms; its contexts and slots are those of the library.

So are the weights of the network whose forward pass it has, and its logits.
"""

import importlib.util
import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from arithlib.certify import checker
from arithlib.checkpoints import load
from arithlib.models.column import column_distance, difference_slots, page_slots, segment_ids
from arithlib.streaming import OWN, WINDOW_DISTANCE, WINDOW_NUMBER, context_logits
from arithlib.tokenizer import ABSENT, ALPHABET, CharacterTokenizer
from chapters import ch72_proofs
from chapters.ch72_proofs import recorded, statement
from chapters.ch78_long_multiplication import LongMultiplication
from chapters.ch79_differences import Differences

PROOFS = Path(__file__).parents[2] / "proofs"


def script(name):
    specification = importlib.util.spec_from_file_location(f"{name}_proofs", PROOFS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


check, export = script("check"), script("export")

FAMILIES = {"a+b=": ("adder", "compact", "tiny"), "a-b=": "differences", "a*b=": "pages"}
# What Coq computes longest for: a gap in its place is found soonest.
CLOSED = "Lemma columns_closed : closed columns = true.\n"
REPORT = (PROOFS / "Report.v").read_text()
needs_coq = pytest.mark.usefixtures("coq")


@pytest.fixture(scope="module", autouse=True)
def recalled():
    """What Coq said to a file, and compiled, is kept for other proofs in which it and all before it are the same."""
    kept = {}

    def run(command, **options):
        if command[0] != "coqc" or "cwd" not in options:
            return subprocess.run(command, **options)
        folder = Path(options["cwd"])
        known = (*command, *((path.name, path.read_bytes()) for path in sorted(folder.glob("*.v"))))
        compiled = folder / f"{Path(command[-1]).stem}.vo"
        if known not in kept:
            done = subprocess.run(command, **options)
            kept[known] = done, compiled.read_bytes() if compiled.exists() else None
        done, content = kept[known]
        if content is not None:
            compiled.write_bytes(content)
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "subprocess", SimpleNamespace(run=run))
        yield


def test_the_record_is_of_these_proofs_and_names_the_contexts_of_checker_and_certificates():
    record = json.loads(check.RECORD.read_text())
    assert record["sources"] == check.digest_of_sources(), "python3 proofs/check.py --record"
    lists = (checker.contexts(), checker.difference_contexts(), checker.page_contexts())
    for operation, contexts in zip(check.OPERATIONS, lists, strict=True):
        lines = [context + token for context, token in contexts.items()]
        assert record["contexts"][operation] == {"count": len(lines), "sha256": checker.sha256_of(lines)}
        wrong = record["contexts"] | {operation: {"count": 1}}
        assert check.others(wrong) and all(name.startswith(FAMILIES[operation]) for name in check.others(wrong))
    assert check.others(record["contexts"]) == []
    assert record == recorded()


def slots_of_sum(tokens):
    """(T,) which of number and distance every key has for the last token, as `proofs/Report.v` numbers them."""
    number, distance = segment_ids(tokens)[0], column_distance(tokens)[0, -1]
    return torch.where((distance >= 0) & (distance <= 1), 2 * number + distance, ABSENT)


SLOTS = {
    "a+b=": (slots_of_sum, "7809+459=", "14001"),
    "a-b=": (lambda tokens: difference_slots(tokens)[0, -1], "813-0624=", Differences().write(318, 4260)[9:-1]),
    "a*b=": (lambda tokens: page_slots(tokens)[0, -1], "215*934=", LongMultiplication().write(512, 439)[8:-1]),
}


@pytest.mark.parametrize("operation", check.OPERATIONS)
def test_what_coq_takes_to_be_seen_is_what_the_model_sees(operation):
    slots, question, answer = SLOTS[operation]
    found = []
    for length in range(len(answer) + 1):
        text = question + answer[:length]
        of_keys = slots(torch.tensor([CharacterTokenizer().encode(text, end=False)])).tolist()
        seen = zip(of_keys, text, strict=True)
        found.append({str(slot): character for slot, character in seen if slot != ABSENT})
    assert recorded()["seen"][operation] == found


def test_the_weights_in_coq_are_those_of_the_certified_file_and_the_exponentials_are_enclosed():
    content, text = export.PATH.read_bytes(), (PROOFS / "Weights.v").read_text()
    assert export.written(content) == text, "python3 proofs/export.py"
    certificate = json.loads(export.PATH.with_suffix(".certificate.json").read_text())
    assert certificate["sha256"] in text
    weights, sha256 = checker.read(export.PATH)
    assert sha256 == certificate["sha256"]
    exact = export.tensors(content)
    assert {name: values.ravel().tolist() for name, values in weights.items()} == exact
    for score in [*exact["near"], *exact["sink"]]:
        low, high = (end / 2**export.UNIT for end in export.enclosure(score))
        assert low < math.exp(score) * (1 - 2**-17) and math.exp(score) * (1 + 2**-17) < high
    attentive = bytearray(content)
    start = 8 + int.from_bytes(content[:8], "little")
    query = json.loads(content[8:start])["model/qkv.weight"]["data_offsets"][0]
    attentive[start + query : start + query + 4] = b"\x00\x00\x80\x3f"  # 1.0
    with pytest.raises(ValueError, match="queries or keys are not zero"):
        export.written(bytes(attentive))


def test_the_logits_in_coq_are_those_of_the_model():
    """With the lower ends of the enclosures as exponentials; Coq rounds down to multiples of 2^-20."""
    model, found = load(export.CHECKPOINT).model.double(), recorded()["logits"]
    exact = export.tensors(export.PATH.read_bytes())
    for name in ("near", "sink"):
        ends = torch.tensor([export.enclosure(score)[0] for score in exact[name]], dtype=torch.double)
        weight = getattr(model, name)
        weight.data = (ends / 2**export.UNIT).log().view_as(weight)
    keys = torch.tensor([[check.TOKENS.index(token) for token in context[:-1]] for context in found])
    keys[keys == len(ALPHABET)] = ABSENT
    logits = context_logits(model, keys[:, OWN], keys, WINDOW_NUMBER, WINDOW_DISTANCE).detach()
    of_coq = torch.tensor([*found.values()], dtype=torch.double) / 2**20
    assert len(found) >= 20
    torch.testing.assert_close(of_coq, logits, rtol=1e-9, atol=2**-19)
    assert [ALPHABET[best] for best in of_coq.argmax(1)] == [context[-1] for context in found]


def test_statements_are_shown_as_they_stand_and_no_others():
    text = (PROOFS / "Adder.v").read_text()
    assert statement("adds_all_numbers") in text and statement("adds_all_numbers").endswith("++ [End].")
    with pytest.raises(KeyError):
        statement("adds_some_numbers")


def test_a_record_of_other_proofs_is_refused(tmp_path, monkeypatch):
    shutil.copytree(PROOFS, tmp_path / "proofs")
    monkeypatch.setattr(ch72_proofs, "PROOFS", tmp_path / "proofs")
    assert recorded()["closed"]
    with (tmp_path / "proofs" / "Slots.v").open("a") as changed:
        changed.write("\n")
    with pytest.raises(ValueError, match="make prove ARGS=--record"):
        recorded()


@needs_coq
def test_coq_accepts_the_proofs_and_they_rest_on_no_axiom():
    recorded = json.loads(check.RECORD.read_text())
    found = check.prove()
    assert {**found, "coq": ""} == {**recorded, "coq": ""}
    proven = {"adds_all_numbers", "adds_if_masked", "subtracts_all_numbers", "multiplies_all_numbers"}
    assert proven | {"table_is_what_occurs", "network_is_right", "network_adds"} <= {*found["closed"]}


@needs_coq
@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("Model", "(j <=? S i).", "(j <=? S (S i)).", "does not accept Model.v"),  # a wider window
        (
            "Contexts",
            f"{CLOSED}Proof. vm_cast_no_check (eq_refl true). Qed.",
            f"{CLOSED}Admitted.",
            "rests on more",
        ),
    ],
)
def test_a_wider_window_and_a_gap_are_noticed(tmp_path, monkeypatch, file, old, new, problem):
    monkeypatch.setattr(check, "FILES", ("Numbers", "Model", "Contexts", "Report"))
    for name in check.FILES:
        shutil.copy(PROOFS / f"{name}.v", tmp_path)
    changed = tmp_path / f"{file}.v"
    text = changed.read_text()
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new))
    # What else is asked need not be waited for.
    names, question = re.search(r"^Definition theorems :=(.*?)\.\s*^(Print .*?\n)", REPORT, re.M | re.S).groups()
    assert "table_is_what_occurs" in re.findall(r"\w+", names)
    alone = f"Definition theorems := (table_is_what_occurs).\n{question}"
    (tmp_path / "Report.v").write_text(f"From Adder Require Import Contexts.\n{alone}")
    with pytest.raises(RuntimeError, match=problem):
        check.prove(tmp_path)


@needs_coq
def test_a_changed_weight_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "FILES", ("Numbers", "Model", "Contexts", "Adder", "Weights", "Network"))
    for name in check.FILES:
        shutil.copy(PROOFS / f"{name}.v", tmp_path)
    text = (tmp_path / "Weights.v").read_text()
    old, new = "Definition neuron_in_bias : Z * Z := (-", "Definition neuron_in_bias : Z * Z := ("
    assert text.count(old) == 1
    (tmp_path / "Weights.v").write_text(text.replace(old, new))
    with pytest.raises(RuntimeError, match="does not accept Network.v"):
        check.prove(tmp_path)
