"""Claims, rules and verdicts: what a rule may say, what it makes of a measurement, and the scoreboard."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from scipy.stats import ttest_ind

from bookkit import claims
from bookkit.claims import Claim, ClaimError, Measurement, Scale, evaluate, load_claims, scoreboard, verdict
from bookkit.judge import lead

ROOT = Path(__file__).parents[2]
RULE = {"reproduced": "0.5 * value <= median <= 2 * value", "partly": "median <= 4 * value", "otherwise": "refuted"}


UNSET = Scale("no setting given", {})


def a_claim(id="M-08", **changes) -> dict:
    entry = {
        "id": id,
        "source": "004",
        "statement": "Grokking takes about 4,000 epochs.",
        "published": "about 4,000 epochs",
        "value": 4000,
        "test": "Train and count.",
        "tier": "C",
        "chapter": "10_grokking",
        "basis": "no setting given",
        "rule": RULE,
    }
    return {key: value for key, value in (entry | changes).items() if value is not ...}


def write_claims(folder: Path, *entries: dict) -> Path:
    claims = folder / "book" / "claims"
    claims.mkdir(parents=True, exist_ok=True)
    (claims / "004.yaml").write_text(yaml.safe_dump(list(entries)), encoding="utf-8")
    return claims


def record(root: Path, id="M-08", notebook="10_grokking", measured=4100.0, verdict="reproduced", **changes) -> None:
    path = root / notebook / "claims" / f"{id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"id": id, "measured": measured, "n": 1, "verdict": verdict, "unit": "epochs"}
    path.write_text(
        json.dumps(content | {"scale": "no setting given", "size": None, "figure": "loss", "note": None} | changes)
    )


# --- verdicts ---


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (4000.0, "reproduced"),
        ([1000, 4000, 40_000], "reproduced"),  # the median, not the mean of 15,000
        ([9000, 10_000], "partly"),
        ([17_000], "refuted"),
    ],
)
def test_the_first_condition_that_holds_decides(measured, expected):
    assert verdict(Claim(**a_claim()), Measurement.of(measured), UNSET) == expected


def test_rules_see_the_statistics_of_named_lists():
    rule = {"reproduced": "acc_min >= low and acc_sd < 0.1 and acc_n == 3 and grokked", "otherwise": "refuted"}
    claim = Claim(**a_claim(value={"low": 0.9}, rule=rule))
    good = {"acc": np.array([0.95, 0.97, 1.0]), "grokked": np.bool_(True)}
    assert verdict(claim, Measurement.of(good), UNSET) == "reproduced"
    assert verdict(claim, Measurement.of(good | {"acc": [0.95, 0.5, 1.0]}), UNSET) == "refuted"


def test_a_measured_name_may_not_hide_a_published_one():
    claim = Claim(**a_claim(value={"acc": 0.9}, rule={"reproduced": "acc > 0.5", "otherwise": "refuted"}))
    with pytest.raises(ClaimError, match="M-08: .*acc.* published and measured"):
        verdict(claim, Measurement.of({"acc": 1.0}), UNSET)


def test_a_claim_without_a_rule_cannot_be_judged():
    with pytest.raises(ClaimError, match="M-08 has no rule"):
        verdict(Claim(**a_claim(rule=...)), Measurement.of(1.0), UNSET)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("1 <= 1 >= 1 and 1 != 2", True),
        ("1 < 1 or 1 > 1 or 1 != 1", False),
        ("not 1 == 2 and (2 > 3 or -1 < 0)", True),
        ("abs(mean - 3) <= 1e-9", True),
        ("max(values) == max and min([4, min]) == min and len(values) == n", True),
        ("all([n > 1, mean > 5])", False),
        ("any([n > 1, mean > 5])", True),
        ("2 ** 3 / 4 == 2", True),
    ],
)
def test_expressions_mean_what_they_mean_in_python(expression, expected):
    names = Measurement.of([2.0, 4.0]).names()
    assert evaluate(expression, names, "X") is expected
    assert (
        eval(
            expression, {"__builtins__": claims.FUNCTIONS} | names | {"max": _Both(max, 4.0), "min": _Both(min, 2.0)}
        )
        is expected
    )


class _Both(float):
    """A number that can also be called, as `min` and `max` are both in a rule."""

    def __new__(cls, function, number):
        self = super().__new__(cls, number)
        self.function = function
        return self

    def __call__(self, *arguments):
        return self.function(*arguments)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "open('file')",
        "values.sort()",
        "values[0] > 1",
        "[x for x in values]",
        "(lambda: 1)()",
        "'text' == 'text'",
        "max(values, key=abs) > 1",
        "mean if n else sd",
        "(x := 1) > 0",
        "f'{mean}' > 0",
        "max() > 1",
        "mean >",
        "1e999 > mean",
    ],
)
def test_anything_beyond_arithmetic_is_refused_before_it_runs(expression):
    with pytest.raises(ClaimError, match="claim M-08: rule "):
        Claim(**a_claim(rule={"reproduced": expression, "otherwise": "refuted"}))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("missing > 1", "reads 'missing', which was not measured; there are max, mean"),
        ("mean / 0 > 1", "cannot be evaluated: .*division by zero"),
        ("9 ** 9 ** 9 ** 9 > 1", "cannot be evaluated"),
        ("sd > 0", "reads 'sd'"),
        ("values > 1", "cannot be evaluated"),
        ("mean + 1", "gives 2.0, not true or false"),
    ],
)
def test_a_rule_that_cannot_be_evaluated_names_claim_and_expression(expression, reason):
    with pytest.raises(ClaimError, match="claim M-08: rule .*" + reason):
        evaluate(expression, Measurement.of(1.0).names(), "M-08")


# --- measurements ---


def test_statistics_agree_with_numpy():
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    numbers = Measurement.of(torch.tensor(values)).statistics()
    expected = {"n": 5, "mean": np.mean(values), "sd": np.std(values, ddof=1), "median": 3.0, "min": 1.0, "max": 5.0}
    assert numbers == pytest.approx(expected)


@pytest.mark.parametrize("measured", [float("nan"), [1.0, float("inf")], [], "4000", None, {"loss": [None]}, [[1.0]]])
def test_only_finite_numbers_count_as_measured(measured):
    with pytest.raises(ClaimError, match="finite numbers|empty list"):
        Measurement.of(measured)


@pytest.mark.parametrize(
    ("measured", "per", "text", "spread", "n"),
    [
        (4120, "seed", "4,120 epochs", "", 1),
        ([4100], "seed", "4,100 epochs", "n = 1 seed", 1),
        ([4000.0, 4100.0, 4200.0], "seed", "4,100 ± 100 epochs", "n = 3 seeds, 4,000 to 4,200", 3),
        ([4000.0, 4100.0, 4200.0], None, "4,100 ± 100 epochs", "n = 3 values, 4,000 to 4,200", 3),
        ([1.5, 2.5], "variant", "1.5, 2.5 epochs", "n = 2 variants, 1.5 to 2.5", 2),
        ([1, 2, 3, 4], "key frequency", "2.5 ± 1.29 epochs", "n = 4 key frequencies, 1 to 4", 4),
        ([1, 2, 3, 4], "circle in a head", "2.5 ± 1.29 epochs", "n = 4 circles in a head, 1 to 4", 4),
        ([1, 2, 3, 4], "pair of frequencies", "2.5 ± 1.29 epochs", "n = 4 pairs of frequencies, 1 to 4", 4),
        ([True, False, True], "head", "yes in 2 of 3 epochs", "n = 3 heads", 3),
        ({"b": [0.5, 0.7], "a": [1, 3]}, "seed", "b: 0.6 ± 0.141; a: 2 ± 1.41", "n = 2 seeds", 2),
        ({"pairs": 12769, "overlap": 0}, None, "pairs: 12,769; overlap: 0", "", 1),
        (
            {"final_loss": 1.5e-7, "acc": [0.5, 0.7], "turns": [3]},
            {"acc": "seed", "turns": "pair of frequencies"},
            "final loss: 1.5e−07; acc: 0.6 ± 0.141 (n = 2 seeds); turns: 3 (n = 1 pair of frequencies)",
            "",
            {"final_loss": 1, "acc": 2, "turns": 1},
        ),
        (
            {"acc": [0.5, 0.7], "loss": [1, 3]},
            {"acc": "seed"},
            "acc: 0.6 ± 0.141 (n = 2 seeds); loss: 2 ± 1.41 (n = 2 values)",
            "",
            2,
        ),
    ],
)
def test_a_measurement_reads_as_values_with_what_was_counted_for_each(measured, per, text, spread, n):
    claim, measurement = Claim(**a_claim(per=per)), Measurement.of(measured, "epochs")
    assert (measurement.text(claim), measurement.spread(claim), measurement.n(claim)) == (text, spread, n)


@pytest.mark.parametrize(
    ("measured", "labels", "text"),
    [
        ([4, 4], "{} frequencies hold 90%", "4 ± 0 frequencies hold 90%"),
        (0.5, "loss over the full loss", "loss over the full loss: 0.5"),
        (
            {"delay_30": 27, "acc": 0.5, "rest": 1},
            {"acc": "accuracy on 20%", "delay_30": "{} times as late"},
            "27 times as late; accuracy on 20%: 0.5; rest: 1",
        ),
        ({"clock": 0.5, "others_seen": 0}, {"others_seen": None}, "clock: 0.5"),
    ],
)
def test_labels_say_what_was_measured_and_leave_out_what_was_not(measured, labels, text):
    claim = Claim(**a_claim(labels=labels))
    assert Measurement.of(measured, "epochs").text(claim) == text


def test_a_count_leaves_out_what_is_not_shown():
    claim = Claim(**a_claim(labels={"others_seen": None}, per="seed"))
    measurement = Measurement.of({"clock": [0.5, 0.7], "others_seen": 0})
    assert (measurement.n(claim), measurement.spread(claim)) == (2, "n = 2 seeds")


# --- the ledger ---


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"verdict": "reproduced"}, "unknown keys .*verdict"),
        ({"statement": ...}, "missing .*statement"),
        ({"statement": " "}, "statement must be text"),
        ({"section": 4}, "section must be text .quote it."),
        ({"value": "4000"}, "value must be a number"),
        ({"value": {"two words": 1}}, "value must be a number"),
        ({"value": ...}, "uses value, but the claim has no single value"),
        ({"labels": {"acc": 4}}, "labels must be a text or names of texts"),
        ({"per": ["seed"]}, "per must be a text or names of texts"),
        ({"answers": {"yes": "Yes."}}, "an answer goes with a verdict, and .'yes'. is none"),
        ({"rule": {"reproduced": "mean > 1"}}, "a rule needs"),
        ({"rule": {"reproduced": "mean > 1", "otherwise": "reproduced"}}, "a rule needs"),
        ({"rule": {"reproduced": "mean > 1", "otherwise": "refuted", "maybe": "n > 1"}}, "not .'maybe'."),
    ],
)
def test_a_malformed_claim_is_refused_with_its_id(tmp_path, changes, reason):
    with pytest.raises(ClaimError, match="M-08.*" + reason):
        load_claims(write_claims(tmp_path, a_claim(**changes)))


def test_an_id_used_twice_is_refused(tmp_path):
    with pytest.raises(ClaimError, match="M-08 stands twice"):
        load_claims(write_claims(tmp_path, a_claim(), a_claim()))


def test_broken_yaml_is_refused(tmp_path):
    (tmp_path / "000.yaml").write_text("- id: [")
    with pytest.raises(ClaimError, match="000.yaml is not valid YAML"):
        load_claims(tmp_path)


def test_files_are_read_in_order_and_again_when_their_content_changes_at_once(tmp_path):
    folder = write_claims(tmp_path, a_claim("M-08"))

    def write(id):
        """A file of one size and one time, as two writes within a tick of the clock leave it."""
        (folder / "000.yaml").write_text(yaml.safe_dump([a_claim(id)]))
        os.utime(folder / "000.yaml", ns=(1, 1))

    write("G-01")
    assert list(load_claims(folder)) == ["G-01", "M-08"]
    write("M-08")
    with pytest.raises(ClaimError, match="M-08 stands twice: in 000.yaml and in 004.yaml"):
        load_claims(folder)


def test_files_that_did_not_change_are_checked_once_and_each_caller_has_a_ledger_of_its_own(tmp_path, monkeypatch):
    folder = write_claims(tmp_path, a_claim("M-08"))
    load_claims(folder).clear()
    monkeypatch.setattr(claims, "Claim", lambda **_: pytest.fail("checked again"))
    assert list(load_claims(folder)) == ["M-08"]


def test_an_unknown_id_names_its_neighbours(tmp_path):
    known = load_claims(write_claims(tmp_path, a_claim("M-08"), a_claim("M-80"), a_claim("G-01")))
    with pytest.raises(ClaimError, match="no claim 'm-8'.*M-08"):
        claims.find_claim(known, "m-8")


def test_the_claims_file_is_found_above_the_working_folder(tmp_path, monkeypatch):
    write_claims(tmp_path, a_claim())
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert claims.repo_root() == tmp_path
    assert list(load_claims()) == ["M-08"]


# --- scale ---

SETTING = {"weights": 1000, "examples": 600}


@pytest.mark.parametrize(
    ("size", "kind", "words"),
    [
        ({"weights": 1000, "examples": 600}, "same setting", "same setting"),
        ({"weights": 500, "examples": 6000, "steps": 1}, "same setting", "same setting"),
        ({"weights": 499, "examples": 600}, "reduced", "reduced: 1/2 of the weights, as many examples"),
        ({"weights": 1000, "examples": 2}, "reduced", "reduced: as many weights, 1/300 of the examples"),
        ({"weights": 2500, "examples": 1e-3}, "reduced", "reduced: 2.5 times the weights, 1/600,000 of the examples"),
    ],
)
def test_the_scale_follows_from_the_numbers(size, kind, words):
    scale = Scale.of(Claim(**a_claim(basis=..., setting=SETTING)), size)
    assert (scale.kind, str(scale), scale.is_smaller) == (kind, words, kind == "reduced")


@pytest.mark.parametrize("basis", claims.BASES)
def test_where_no_number_can_say_it_the_ledger_does(basis):
    rule = RULE | {"otherwise": "not reproduced"}
    scale = Scale.of(Claim(**a_claim(basis=basis, rule=rule)), None)
    assert (scale.kind, str(scale), scale.is_smaller) == (basis, basis, basis == "analogue")


@pytest.mark.parametrize("size", [None, {}, {"weights": 3}])
def test_a_size_that_says_too_little_is_refused(size):
    with pytest.raises(ClaimError, match="M-08: size must say our examples"):
        Scale.of(Claim(**a_claim(basis=..., setting=SETTING)), size)


def test_a_size_that_nothing_can_be_compared_with_is_refused():
    with pytest.raises(ClaimError, match="M-08 has no setting"):
        Scale.of(Claim(**a_claim()), {"weights": 3})


@pytest.mark.parametrize("otherwise", ["refuted", "not reproduced"])
@pytest.mark.parametrize(
    ("scale", "smaller"),
    [
        (Scale("reduced", {"weights": 0.1}), True),
        (Scale("analogue", {}), True),
        (Scale("same setting", {"weights": 1}), False),
        (Scale("arithmetic", {}), False),
        (Scale("proof", {}), False),
        (UNSET, False),
    ],
)
def test_what_a_smaller_setting_does_not_show_is_not_seen(scale, smaller, otherwise):
    claim = Claim(**a_claim(rule=RULE | {"otherwise": otherwise}))
    assert verdict(claim, Measurement.of(40_000), scale) == ("not seen at reduced scale" if smaller else otherwise)
    assert verdict(claim, Measurement.of(4000), scale) == "reproduced"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"basis": ...}, "either a setting or a basis"),
        ({"setting": SETTING}, "either a setting or a basis"),
        ({"basis": "guess"}, "basis is one of analogue, arithmetic, proof, no setting given, not 'guess'"),
        ({"basis": "analogue"}, "an analogue refutes nothing"),
        ({"basis": ..., "setting": {}}, "names of positive numbers"),
        ({"basis": ..., "setting": {"weights": 0}}, "names of positive numbers"),
        ({"basis": ..., "setting": {"weights": "12M"}}, "names of positive numbers"),
        ({"basis": ..., "setting": 12}, "names of positive numbers"),
    ],
)
def test_a_setting_that_cannot_be_compared_is_refused(changes, reason):
    with pytest.raises(ClaimError, match=f"M-08: .*{reason}"):
        Claim(**a_claim(**changes))


@pytest.mark.parametrize(
    ("compare", "reason"),
    [({"size": "mean"}, "compare names .'size'., which value does not have"), ({"value": "men"}, "was not measured")],
)
def test_what_cannot_be_compared_is_refused(compare, reason):
    with pytest.raises(ClaimError, match=f"M-08: .*{reason}"):
        Measurement.of([1, 2]).beside(Claim(**a_claim(compare=compare)))


# --- scoreboard ---


def test_the_scoreboard_has_every_claim_and_what_was_measured(tmp_path):
    open_claim = a_claim("M-09", rule=..., chapter=None)
    known = load_claims(write_claims(tmp_path, a_claim("M-08", per="seed", compare={"value": "mean"}), open_claim))
    record(tmp_path, measured=[3900.0, 4100.0])
    first, second = scoreboard(tmp_path, known)
    assert first == {
        "id": "M-08",
        "source": "004",
        "statement": "Grokking takes about 4,000 epochs.",
        "published": "about 4,000 epochs",
        "measured": "4,000 ± 141 epochs",
        "n": 2,
        "spread": "n = 2 seeds, 3,900 to 4,100",
        "verdict": "reproduced",
        "scale": Scale("no setting given", {}),
        "beside": [("value", 4000, 4000.0)],
        "notebook": "10_grokking",
        "figure": "loss",
    }
    assert second["verdict"] == "not attempted" and second["measured"] is None
    assert first.keys() == second.keys()


def test_a_verdict_that_the_rule_no_longer_gives_is_refused(tmp_path):
    known = load_claims(write_claims(tmp_path, a_claim()))
    record(tmp_path, measured=40_000.0)
    with pytest.raises(ClaimError, match="M-08: 10_grokking recorded 'reproduced'.*now says 'refuted'"):
        scoreboard(tmp_path, known)


def test_a_claim_measured_by_two_notebooks_is_refused(tmp_path):
    record(tmp_path)
    record(tmp_path, notebook="11_circles")
    with pytest.raises(ClaimError, match="measured by 10_grokking and by 11_circles"):
        scoreboard(tmp_path, load_claims(write_claims(tmp_path, a_claim())))


def test_a_record_of_a_claim_that_is_gone_is_refused(tmp_path):
    record(tmp_path, id="M-07")
    with pytest.raises(ClaimError, match="no claim 'M-07'"):
        scoreboard(tmp_path, load_claims(write_claims(tmp_path, a_claim())))


def test_a_damaged_record_is_refused(tmp_path):
    record(tmp_path)
    (tmp_path / "10_grokking" / "claims" / "M-08.json").write_text('{"id": "M')
    with pytest.raises(ClaimError, match="10_grokking/claims/M-08.json is damaged"):
        scoreboard(tmp_path, load_claims(write_claims(tmp_path, a_claim())))


def test_what_a_reader_measured_by_hand_is_not_on_the_scoreboard(tmp_path):
    record(tmp_path, notebook="interactive")
    assert scoreboard(tmp_path, load_claims(write_claims(tmp_path, a_claim())))[0]["verdict"] == "not attempted"


def test_the_table_counts_each_source_and_lists_what_was_measured(tmp_path):
    known = load_claims(write_claims(tmp_path, a_claim(), a_claim("M-09"), a_claim("G-01", source="000")))
    record(tmp_path)
    rows = scoreboard(tmp_path, known)
    counts = claims.tally(rows)
    assert list(counts) == ["004", "000", "all"]
    assert counts["004"]["reproduced"] == counts["004"]["not attempted"] == 1
    assert sum(counts["all"].values()) == 3
    table = claims.score_table(rows)
    head, scale, published, ours = table.splitlines()[-4:]
    assert head == "M-08  reproduced  (10_grokking)" and "G-01" not in table
    assert scale.split(maxsplit=1) == ["scale", "no setting given"]
    assert published.split(maxsplit=1) == ["published", "about 4,000 epochs"]
    assert ours.split(maxsplit=1) == ["ours", "4,100 epochs"]


def test_no_line_of_the_table_is_too_long_for_a_terminal(tmp_path):
    known = load_claims(write_claims(tmp_path, a_claim(published="many words " * 40)))
    record(tmp_path)
    assert max(map(len, claims.score_table(scoreboard(tmp_path, known)).splitlines())) <= 110


# --- the book's own claims ---


def test_every_rule_of_the_book_belongs_to_a_notebook():
    homeless = [
        claim.id
        for claim in load_claims(ROOT / "book" / "claims").values()
        if claim.rule and not (ROOT / "notebooks" / f"{claim.chapter}.ipynb").is_file()
    ]
    assert not homeless


@pytest.mark.parametrize(("ours", "theirs"), [([3.0, 5.0, 8.0], [1.0, 2.0]), (np.arange(10.0) ** 2, [7.0, 7.0, 7.5])])
def test_a_lead_and_its_error_make_the_statistic_of_welch(ours, theirs):
    ahead, error = lead(ours, theirs)
    assert ahead == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert ahead / error == pytest.approx(ttest_ind(ours, theirs, equal_var=False).statistic)
