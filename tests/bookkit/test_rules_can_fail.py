"""A rule that any measurement would satisfy is no test: every rule meets some hundred random measurements.

They are drawn around what was measured, what was published and the thresholds of the rule, for every name on its own,
so that each of them is plausible and none is likely to be meant.
"""

import ast
import math
import random

import pytest

from bookkit.claims import (
    PARTLY,
    PROOF,
    REPRODUCED,
    Claim,
    Measurement,
    Scale,
    load_claims,
    parse,
    read_records,
    repo_root,
    verdict,
)

DRAWS, TOO_OFTEN = 500, 0.95
# Fewer where the first ones leave no doubt: of 100, a share of 0.95 gives 80 or fewer once in ten million.
FIRST, FAR_FROM = 100, 0.8
CLAIMS = load_claims()


def thresholds(claim) -> list[float]:
    """The numbers that a rule compares with, published ones and its own."""
    trees = [parse(expression, claim.id) for expression in claim.conditions().values()]
    own = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [*claim.published_names().values(), *own]


def another(value, near: list[float], rng: random.Random):
    """A number of the same kind: a neighbour, one of the neighbours but larger or smaller, or any in their range."""
    if isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, int) and value == 0:
        return rng.choice((0, 0, 0, 1, 2, rng.randint(3, 20)))
    neighbour = (
        rng.choice([number for number in near if number] or [1.0]) if rng.random() < 0.5 or not value else value
    )
    top = 2 * max(map(abs, (value, *near)))
    drawn = rng.choice((neighbour, neighbour * math.exp(rng.gauss(0, 0.7)), rng.uniform(-top / 4, top)))
    return round(drawn) if isinstance(value, int) else drawn


def plausible(measured, near: list[float], rng: random.Random):
    """A measurement of the same names and lengths; some of it as it was, a list around a mean of its own."""
    if isinstance(measured, dict):
        return {name: plausible(value, near, rng) for name, value in measured.items()}
    if rng.random() < 0.4:
        return measured
    if not isinstance(measured, list) or all(isinstance(value, bool) for value in measured):
        return (
            [another(value, near, rng) for value in measured]
            if isinstance(measured, list)
            else another(measured, near, rng)
        )
    centre, spread = another(rng.choice(measured), near, rng), rng.choice((0.0, 0.02, 0.1, 0.5))
    values = [centre * (1 + rng.gauss(0, spread)) for _ in measured]
    return list(map(round, values)) if isinstance(centre, int) else values


def share_that_pass(claim, measured) -> float:
    """Of random measurements like this one, the share that a rule calls reproduced, or partly so."""
    rng, near = random.Random(claim.id), thresholds(claim)

    def passed(draws: int) -> int:
        drawn = (Measurement.of(plausible(measured, near, rng)) for _ in range(draws))
        # As in the setting of the claim: what is asked is the rule, not the scale.
        return sum(verdict(claim, one, Scale(PROOF, {})) in (REPRODUCED, PARTLY) for one in drawn)

    first = passed(FIRST)
    if first <= FAR_FROM * FIRST:
        return first / FIRST
    return (first + passed(DRAWS - FIRST)) / DRAWS


@pytest.mark.built
def test_every_rule_can_fail():
    records = read_records(repo_root() / "book" / "_build" / "records")
    shares = {id: share_that_pass(CLAIMS[id], record["measured"]) for id, record in records.items()}
    assert len(shares) > 200
    assert {id: share for id, share in shares.items() if share > TOO_OFTEN} == {}


def test_a_rule_that_anything_meets_is_seen():
    common = dict(source="000", statement="It adds.", test="Count.", tier="C", value=90, basis=PROOF)
    strict, lax = (
        Claim("G-01", **common, rule={"reproduced": rule, "otherwise": "not reproduced"})
        for rule in ("mean >= value", "mean >= value or mean < 100 * value")
    )
    assert 0.05 < share_that_pass(strict, [40.0, 60.0]) < 0.9
    assert share_that_pass(lax, [40.0, 60.0]) == 1
