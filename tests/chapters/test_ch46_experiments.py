"""Experiments on small language models: what is learned, what is measured, and that runs are repeatable."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from short_runs import seeded, trained

from arithlib import experiments
from arithlib.experiments.depth import IGNORE_INDEX
from arithlib.models.looped import LoopedConfig
from arithlib.training import AdamW
from chapters import ch47_similarity as similarity
from chapters.ch46_assignments import Assignments
from chapters.ch46_experiments import DeeperExperiment, LanguageExperiment, ShortExperiment
from chapters.ch46_text import CHARACTERS, decode

SMALL = LanguageExperiment(
    name="language-tiny", about="a test", steps=4, evaluate_every=2, n_ctx=16, text=2, others=(2, 2, 2, 2, 2),
    model=LoopedConfig(d_vocab=len(CHARACTERS),
        d_model=16, n_heads=2, d_mlp=32, n_layers=4, n_loops=1, positions="rotary", injection="none"
    ),
    optimizer=AdamW.cosine(1e-3, 4, warmup_steps=2), evaluation_count=64,
)  # fmt: skip

SMALL_SHORT = ShortExperiment(
    **{f.name: getattr(SMALL, f.name) for f in dataclasses.fields(SMALL) if f.name != "others"}, others=(2, 4)
)

SMALL_DEEPER = DeeperExperiment(
    **{f.name: getattr(SMALL, f.name) for f in dataclasses.fields(SMALL) if f.name != "others"},
    others=(3, 4),
    later=3,
)


def test_of_text_every_character_is_asked_and_of_the_rest_the_answers():
    text, *others = SMALL.batch(seeded())
    assert text[0].shape == (2, 16) and text[0][:, 1:].equal(text[1][:, :-1])
    for (tokens, targets), kind in zip(others, SMALL.kinds(), strict=True):
        whole = torch.cat([tokens, tokens.new_full((len(tokens), 1), CHARACTERS.index("\n"))], 1)
        asked = {place for answer in kind.answers for place in range(answer.start, answer.stop)}
        assert {i + 1 for i in range(targets.shape[1]) if targets[0, i] != IGNORE_INDEX} == asked
        for row, wanted in zip(whole, targets, strict=True):
            for answer in kind.answers:
                assert decode(row[answer]) == decode(wanted[answer.start - 1 : answer.stop - 1])


def test_the_score_is_the_share_of_first_answers_right_in_every_character():
    class Knows(torch.nn.Module):
        """Says what follows in one text, whatever it reads."""

        def __init__(self, text):
            super().__init__()
            self.text = text

        def forward(self, tokens):
            follows = self.text[1 : tokens.shape[1] + 1].expand(len(tokens), -1)
            return torch.nn.functional.one_hot(follows, len(CHARACTERS)).float()

    made, facts = SMALL.objective(None, torch.device("cpu")), SMALL.kinds()[0]
    homes = facts.homes()
    same = torch.tensor([0, int((homes[1:] == homes[0]).nonzero()[0]) + 1, int((homes != homes[0]).nonzero()[0])])
    rows = facts.write(same)
    assert made.right(Knows(rows[0]), rows, facts) == pytest.approx(2 / 3)
    almost = rows[0].clone()
    almost[8] = 0  # the last letter of the city
    assert made.right(Knows(almost), rows, facts) == 0


def test_a_step_fixes_its_batch_and_seeds_and_steps_differ():
    model = SMALL.build()
    made = SMALL.objective(model, torch.device("cpu"))
    assert made.loss(model, 3) == made.loss(model, 3) != made.loss(model, 4)
    other = dataclasses.replace(SMALL, seed=1).objective(model, torch.device("cpu"))
    assert other.loss(model, 3) != made.loss(model, 3)


def test_a_pull_is_added_to_the_loss():
    model = SMALL.build()
    pulled = dataclasses.replace(SMALL, strength=10.0)
    losses = [e.objective(model, torch.device("cpu")).loss(model, 0).item() for e in (SMALL, pulled)]
    assert losses[1] - losses[0] == pytest.approx(-10 * similarity.mean_over_groups(model.layers, 2).item(), abs=1e-4)


def test_the_end_of_a_run_measures_more_and_compares_blocks():
    model, run = trained(SMALL)
    assert run.history["assigned"].shape == (3, 3)
    found = SMALL.finish(model, run)
    assert found["cosines"].shape == found["distances"].shape == (1, 6, 2)
    assert found["corpus"].dtype == np.int64 and found["assigned_final"].shape == (1, 3)
    for i in (2, 3):  # a loop already: putting its first block in the place of each changes nothing
        model.layers[i].load_state_dict(model.layers[i - 2].state_dict())
    assert SMALL.finish(model, run)["looped_log_perplexity"][0] == pytest.approx(
        SMALL.finish(model, run)["log_perplexity_final"][0]
    )


def test_a_small_model_learns_which_characters_are_frequent():
    experiment = dataclasses.replace(
        SMALL, steps=40, evaluate_every=40, optimizer=AdamW.cosine(1e-2, 40, warmup_steps=4)
    )
    history = trained(experiment)[1].history
    assert history["log_perplexity"][-1] < history["log_perplexity"][0] - 0.5


def test_looped_models_and_their_partners_differ_in_shape_alone():
    made = [experiments.get(f"language-deeper-{shape}-s0") for shape in ("4x1", "1x1", "1x4", "2x1", "2x2")]
    assert len({(e.steps, e.optimizer, e.n_ctx, e.others, e.seed, e.model.d_model) for e in made}) == 1
    assert [e.model.n_layers * e.model.n_loops for e in made] == [4, 1, 4, 2, 4]


def test_the_short_mix_asks_for_facts_and_for_values_that_the_text_gives():
    e = experiments.get("language-short-2x1-s0")
    assert isinstance(e, ShortExperiment) and len(e.kinds()) == len(e.others) == 2
    text, facts, lookups = e.batch(seeded())
    assert [len(tokens) for tokens, _ in (text, facts, lookups)] == [e.text, *e.others]
    assert "assigned" not in trained(SMALL_SHORT)[1].history
    for tokens, targets in zip(*lookups, strict=True):
        read, asked = decode(tokens), targets != IGNORE_INDEX
        told = dict(zip(read[0:6:2], read[1:6:2], strict=True))
        assert [told[read[i]] for i in asked.nonzero().flatten().tolist()] == list(decode(targets[asked]))


def test_the_models_of_table_3_pass_through_twelve_layers():
    found = [
        experiments.get(f"language-twelve-{shape}-s0") for shape in ("12x1", "6x2", "4x3", "6x1", "4x1", "middle")
    ]
    assert all(isinstance(e, ShortExperiment) and len(e.kinds()) == len(e.others) == 2 for e in found)
    built = {e.name.split("-")[2]: e.build() for e in found}
    passed = {name: model.config.n_layers * model.config.n_loops for name, model in built.items() if name != "middle"}
    assert passed == {"12x1": 12, "6x2": 12, "4x3": 12, "6x1": 6, "4x1": 4}
    middle = built["middle"].config
    ends = 2 * middle.n_ends
    assert ends == 4 and ends + (middle.n_layers - ends) * middle.n_loops == 12
    weights = {name: sum(p.numel() for p in model.parameters()) for name, model in built.items()}
    assert weights["middle"] == weights["6x2"] == weights["6x1"]


def test_the_models_of_table_4_differ_from_twelve_layers_in_what_draws_them_together_alone():
    free = experiments.get("language-twelve-12x1-s0")
    found = experiments.match("language-twelve-pulled*-s0")
    for e in found:
        assert dataclasses.replace(e, name=free.name, strength=free.strength, block=free.block) == free
        assert e.name == f"language-twelve-pulled{e.block}-{e.strength:.0f}-s0"
    # half of the source's blocks of 4, 6, 8 and 12 of 24 layers, and its weaker row
    assert {(e.block, e.strength) for e in found} == {(2, 1.0), (2, 10.0), (3, 10.0), (4, 10.0), (6, 10.0)}


def test_the_deeper_mix_asks_for_the_value_of_every_variable_that_is_given_on():
    *_, (tokens, targets) = SMALL_DEEPER.batch(seeded())
    assert targets.shape == (4, Assignments(1).width - 1)
    for row, wanted in zip(tokens, targets, strict=True):
        text = decode(row)
        values = dict(zip(text[0:6:2], text[1:6:2], strict=True))
        values |= {name: values[source] for name, source in zip(text[6:12:2], text[7:12:2], strict=True)}
        after = (wanted != IGNORE_INDEX).nonzero().flatten().tolist()
        assert after == [*Assignments(1).sources, 13, 15, 17] and [7, 9, 11] == Assignments(1).sources
        read = [text[i] for i in after]
        assert decode(wanted[wanted != IGNORE_INDEX]) == "".join(values[name] for name in read)


def test_each_depth_is_learned_from_its_step_on():
    model = SMALL.build()
    assert [SMALL_DEEPER.live(step) for step in (0, 2, 3, 5, 6, 100)] == [1, 1, 2, 2, 2, 2]
    assert set(trained(SMALL_DEEPER)[1].history) >= {"log_perplexity", "assigned"}
    early, late = (
        dataclasses.replace(SMALL_DEEPER, later=later).objective(model, torch.device("cpu")).loss(model, 1)
        for later in (2, 1)
    )
    parts = SMALL_DEEPER.batch(seeded(1))
    losses = [F.cross_entropy(model(t).flatten(0, 1), a.flatten(), ignore_index=IGNORE_INDEX) for t, a in parts]
    assert early.item() == pytest.approx(torch.stack(losses[:2]).mean().item())
    assert late.item() == pytest.approx(torch.stack(losses).mean().item())
