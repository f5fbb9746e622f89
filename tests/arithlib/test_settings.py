"""Settings are told apart by what differs from the defaults, and a note of them gives them back."""

import dataclasses
import json
from dataclasses import dataclass, field

import pytest

from arithlib import experiments, settings
from arithlib.settings import KINDS, UnknownSettings, from_json, identity, of_kind, remark, to_json


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch):
    experiments.get("abacus-live")  # whose search imports the kinds of all presets, before they are copied
    monkeypatch.setattr(settings, "KINDS", dict(KINDS))


def make(**more):
    """Settings of two levels, defined anew; `more` are further fields of the inner ones, with their defaults."""

    for name in ("test-inner", "test-outer"):
        settings.KINDS.pop(name, None)

    @of_kind("test-inner")
    @dataclass(frozen=True)
    class Inner:
        width: int = 8
        rates: tuple[float, ...] = (0.1, 0.2)

    if more:
        settings.KINDS.pop("test-inner")
        fields = [(name, type(value), field(default=value)) for name, value in more.items()]
        Inner = of_kind("test-inner")(dataclasses.make_dataclass("Inner", fields, bases=(Inner,), frozen=True))

    @of_kind("test-outer")
    @dataclass(frozen=True)
    class Outer:
        steps: int
        name: str = remark("")
        inner: Inner = field(default_factory=Inner)

    return Outer, Inner


def test_what_is_written_is_read():
    Outer, Inner = make()
    outer = Outer(5, "a name", Inner(width=9))
    plain = json.loads(json.dumps(to_json(outer)))
    assert plain == {
        "kind": "test-outer",
        "steps": 5,
        "inner": {"kind": "test-inner", "width": 9, "rates": [0.1, 0.2]},
    }
    assert from_json(plain) == dataclasses.replace(outer, name="")


def test_every_setting_counts_and_a_name_does_not():
    Outer, Inner = make()
    hashes = {
        identity(Outer(5)),
        identity(Outer(6)),
        identity(Outer(5, inner=Inner(9))),
        identity(Outer(5, inner=Inner(rates=()))),
    }
    assert len(hashes) == 4
    assert identity(Outer(5, "one")) == identity(Outer(5, "other"))


def test_a_new_option_leaves_earlier_runs_what_they_were():
    Outer, Inner = make()
    before, note = identity(Outer(5, inner=Inner(9))), to_json(Outer(5, inner=Inner(9)))
    Outer, Inner = make(dropout=0.0)
    assert identity(Outer(5, inner=Inner(9))) == before
    assert identity(Outer(5, inner=Inner(9, dropout=0.5))) != before
    assert from_json(note) == Outer(5, inner=Inner(9, dropout=0.0))


def test_a_default_that_changes_does_not_change_what_a_note_says():
    """The hash alone would not see it: the note holds every field."""
    Outer, _ = make(dropout=0.0)
    note = to_json(Outer(5))
    Outer, _ = make(dropout=0.5)
    assert from_json(note).inner.dropout == 0.0 and from_json(note) != Outer(5)


def test_a_field_or_a_kind_that_is_gone_is_named():
    Outer, _ = make(dropout=0.0)
    note = to_json(Outer(5))
    make()
    with pytest.raises(UnknownSettings, match="kind 'test-inner' have no dropout"):
        from_json(note)
    with pytest.raises(UnknownSettings, match="kind 'nobody' are known here: import the module that defines them"):
        from_json({"kind": "nobody"})


def test_a_class_needs_a_kind_of_its_own():
    Outer, _ = make()

    class Child(Outer):
        pass

    with pytest.raises(TypeError, match="Child has no kind"):
        to_json(Child(5))
    with pytest.raises(ValueError, match="the kind 'test-outer' is .*Outer; give .*Child another name"):
        of_kind("test-outer")(Child)


@pytest.mark.parametrize("name", ["abacus-times-divided-s0", "language-twelve-middle-s0", "grokking-circles2-s1"])
def test_an_experiment_is_rebuilt_from_its_own_settings(name):
    experiment = experiments.get(name)
    plain = json.loads(json.dumps(experiment.settings()))
    labels = {key: getattr(experiment, key) for key in ("name", "about", "scale", "ships_weights")}
    assert from_json(plain | labels) == experiment
