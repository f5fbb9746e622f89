"""The column transformer: for all positions its forward is its definition, and shipped weights say what they said."""

import itertools
import json
import math
import random
from pathlib import Path

import pytest
import torch

from arithlib import checkpoints, experiments
from arithlib.models.column import (
    DIFFERENCE_SLOTS,
    GRID,
    PAGE_SLOTS,
    POSITIONS,
    RELATIVE,
    ROTARY,
    TABLES,
    WINDOWED,
    ColumnConfig,
    ColumnTransformer,
    difference_address,
    difference_slots,
    kept_weights,
    page_address,
    page_slots,
    resize,
    segment_ids,
    table_address,
)
from arithlib.models.positions import addresses, coupled, number_index
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import ABSENT, END, CharacterTokenizer
from chapters.ch74_running_totals import LAYOUTS, RunningTotals
from chapters.ch78_long_multiplication import LongMultiplication
from chapters.ch79_differences import Differences

SIZES = dict(d_model=8, n_heads=2, d_mlp=16, n_rows=12)
SUMS = OperandTask(max_digits=4).sample(5, torch.Generator().manual_seed(0)).tokens
GOLDEN = json.loads(Path(__file__).with_name("column_golden.json").read_text())


def made(positions="window", **more):
    config = ColumnConfig(positions, **{**SIZES, **more})
    return ColumnTransformer(config, seed=1).eval().requires_grad_(False)


def encode(*texts):
    return CharacterTokenizer().encode_batch(texts, end=False)


def totals(count=3):
    rng = random.Random(3)
    return encode(*(RunningTotals().write(RunningTotals().sample(rng)) for _ in range(count)))


def pages():
    """Three right ones, and two on which signs stand where none is due."""
    right = (LongMultiplication().write(a, b) for a, b in ((12, 34), (7, 605), (9038, 2)))
    return encode(*right, "21*43=80+400=8*0014=+=1$", "*-7=12=4")


def differences():
    """Three right ones, and three on which signs stand where none is due, or digits are missing or too many."""
    right = (Differences().write(a, b) for a, b in ((12, 34), (605, 7), (4321, 4321)))
    return encode(*right, "21-43=11=-2+2-1=12$", "-7=12=4", "5-16=1222==+-123")


def texts_for(positions):
    special = {"page": pages, "difference": differences}
    return special[positions]() if positions in special else totals() if positions in GRID else SUMS


# ---- the definition ----------------------------------------------------------------------------------------------


def places_of(tokens):
    """Lists over the tokens of one text: number, index in it; part, line and index in a table; those on a page; and
    how many signs there were so far.
    """
    found = segment_ids(tokens[None]), number_index(tokens[None]), *table_address(tokens[None])
    signs = [*itertools.accumulate(int(token >= 10) for token in tokens.tolist())]
    return [*(rows[0].tolist() for rows in found), *page_by_hand(tokens), signs]


def address_by_hand(m, tokens, lines, offset):
    """Row, line or angle of every token; 0 where there is none."""
    index, found = 0, []
    for place, token in enumerate(tokens.tolist()):
        index = index + 1 if token < 10 else 0
        found.append({
            "abacus": index + offset if token < 10 else 0, "coupling": 0 if token == END else index + offset + 1,
            "rotary": index, "rotary-text": place, "line-label": min(lines[place], m.config.n_rows - 1),
        }.get(m.config.positions, 0))  # fmt: skip
    return found


def page_by_hand(tokens):
    """Part, row and step of every token, as (T,) lists, from all before it."""
    found = []
    for stop in range(1, len(tokens) + 1):
        text = CharacterTokenizer().decode(tokens[:stop].tolist())
        digits = next((n for n, sign in enumerate(reversed(text)) if not sign.isdigit()), stop)
        found.append((("*" in text) + ("=" in text), max(text.count("=") - 1, 0), digits))
    return [*zip(*found, strict=True)]


def page_slot_by_hand(part, row, step, t, s):
    """Which of PAGE_SLOTS key s is in for query t, None where it is not seen."""
    place, asks_for_a_carry = step[t] // 2, part[t] == 2 and step[t] % 2 == 1
    slot = None
    if s == t:
        slot = "own digit" if asks_for_a_carry else "own sign"
    elif s == t - 1 and asks_for_a_carry:
        slot = "before"
    elif part[t] == 2 and part[s] == 0 and step[s] == place - row[t] + 1:
        slot = "first factor"
    elif part[t] == 2 and part[s] == 1 and step[s] == row[t] + 1:
        slot = "second factor"
    elif part[t] == part[s] == 2 and row[s] == row[t] - 1 and step[s] == 2 * place + 1:
        slot = "above"
    return slot and PAGE_SLOTS.index(slot)


def difference_slot_by_hand(part, index, t, s):
    """Which of DIFFERENCE_SLOTS key s is in for query t, None where it is not seen."""
    slot, column = None, index[t] + 1
    if part[s] == part[t] == 4 and index[s] == 0:
        slot = "sign"
    elif s == t:
        slot = "own"
    elif part[t] in (2, 4) and part[s] in (0, 1) and index[s] == column:
        slot = ("first number", "second number")[part[s]]
    elif part[s] == 2 and index[s] > 0:
        if (part[t] == 4 and index[s] == column - 1) or (part[t] == 3 and s == t - 1):
            slot = "below"
    return slot and DIFFERENCE_SLOTS.index(slot)


def slot_by_hand(m, places, t, s):
    """The relative position of key s for query t, None where it is not seen."""
    _, _, part, line, index, *page, signs = places
    near, up, left = range(m.config.window + 1), line[t] - line[s], index[t] + 1 - index[s]
    if m.config.positions == "page":
        return page_slot_by_hand(*page, t, s)
    if m.config.positions == "difference":
        return difference_slot_by_hand(signs, index, t, s)
    if m.config.positions == "distance":
        return min(t - s, m.config.n_rows)
    if m.config.positions == "grid":
        return (part[s] * len(near) + up) * len(near) + left if up in near and left in near else None
    return part[s] * len(near) + left if left in near else None


def score_by_hand(m, places, address, q, k, t, s, h):
    """Score of key s for query t in head h; None where it is masked."""
    kind, K = m.config.positions, q.shape[-1]
    number, index, *_ = places
    if kind in ROTARY:  # pairs of entries, turned as complex numbers
        pairs = [torch.complex(y[: K // 2], y[K // 2 :]).tolist() for y in (q[t, h], k[s, h])]
        angles = [1e4 ** (-2 * i / K) * (address[t] - address[s]) for i in range(K // 2)]
        return sum((a * b.conjugate() * complex(math.cos(x), math.sin(x))).real
                   for a, b, x in zip(*pairs, angles, strict=True)) / math.sqrt(K)  # fmt: skip
    score, distance = float(q[t, h] @ k[s, h]) / math.sqrt(K), index[t] + 1 - index[s]
    if kind in GRID:
        slot = slot_by_hand(m, places, t, s)
        return None if slot is None else score + float(m.near[slot, h])
    if kind in TABLES:
        return score
    outside = max(0, -distance, distance - m.config.window)
    if outside == 0:
        score += float(m.near[h, number[s], distance])
    elif kind in WINDOWED:
        return None
    elif kind == "alibi":
        score -= outside * math.exp(float(m.log_slope[h]))
    return score * (math.log(t + 1) if kind == "log-scaled" else 1.0)


def by_hand(m, tokens, offset=0):
    """Logits of one text in double precision, query by query and key by key."""
    places, x = places_of(tokens), m.embedding(tokens)
    number, _, _, lines, *_ = places
    address = address_by_hand(m, tokens, lines, offset)
    if m.config.positions not in GRID:
        x = x + m.numbers.weight[number]
    if m.config.positions in TABLES:
        x = x + m.rows.weight[address]
    if m.config.positions == "line-label":
        x = x + m.lines.weight[address]
    q, k, v = m.qkv(x).unflatten(-1, (3, m.config.n_heads, -1)).unbind(1)
    logits = []
    for t in range(len(tokens)):
        z = []
        for h in range(m.config.n_heads):
            scores = {s: score_by_hand(m, places, address, q, k, t, s, h) for s in range(t + 1)}
            weights = {s: math.exp(score) for s, score in scores.items() if score is not None}
            values = {s: v[s, h] for s in weights}
            if m.config.positions in GRID:
                values = {s: v[s, h] + m.near_value[slot_by_hand(m, places, t, s), h] for s in weights}
            sunk = math.exp(float(m.sink[h])) if m.config.positions == "window-sink" else 0.0
            z.append(sum(w * values[s] for s, w in weights.items()) / (sum(weights.values()) + sunk))
        mid = x[t] + m.out(torch.cat(z))
        logits.append(m.unembedding(mid + m.mlp_out(m.mlp_in(mid).clamp(min=0))))
    return torch.stack(logits)


@pytest.mark.parametrize("more", [{}, {"window": 2, "n_rows": 9}])
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_forward_is_the_definition(positions, more):
    model, tokens = made(positions, **more).double(), texts_for(positions)
    logits, activations = model(tokens, return_activations=True)
    torch.testing.assert_close(logits, torch.stack([by_hand(model, row) for row in tokens]), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(model(tokens), logits)
    B, T = tokens.shape
    kept = activations["pattern"].sum(-1)
    if positions == "window-sink":
        assert (kept > 0).all() and (kept < 1).all()
    else:
        torch.testing.assert_close(kept, torch.ones(B, 2, T).double())
    assert set(activations) == {"resid_pre", "resid_mid", "resid_post", "pattern"}
    torch.testing.assert_close(model.add_neurons(activations["resid_mid"]), activations["resid_post"])
    torch.testing.assert_close(model.unembedding(activations["resid_post"]), logits)


@pytest.mark.parametrize("positions", POSITIONS)
def test_later_tokens_change_nothing_before_them(positions):
    tokens = encode("12+34=46=", "12+34=99+")
    first, second = made(positions)(tokens)
    torch.testing.assert_close(first[:6], second[:6])


def test_numbers_and_indices_are_those_of_the_docstring():
    tokens = encode("321+654=975$")
    assert segment_ids(tokens)[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3]
    assert number_index(tokens)[0].tolist() == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0]


def test_parts_and_lines_are_those_of_the_docstring():
    part, line, index = (row[0].tolist() for row in table_address(encode("21+43+5=21=64=15=$")))
    assert part == [0] * 7 + [1] * 11
    assert line == [0, 0, 1, 1, 1, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert index == [1, 2, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0]


def test_parts_rows_and_steps_are_those_of_the_docstring():
    part, row, step = (line[0].tolist() for line in page_address(encode("21*43=80400=8001400=$")))
    assert part == [0] * 2 + [1] * 3 + [2] * 16
    assert row == [0] * 11 + [1] * 8 + [2] * 2
    assert step == [1, 2, 0, 1, 2, *range(6), *range(8), 0, 0]


def test_parts_and_indices_of_a_difference_are_those_of_the_docstring():
    part, index = (line[0].tolist() for line in difference_address(encode("21-43=11=-22$")))
    assert part == [0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 4, 5]
    assert index == [1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 1, 2, 0]


# ---- what is seen ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", RELATIVE)
def test_a_windowed_answer_depends_on_two_columns_and_its_own_digit_alone(positions):
    model, text = made(positions), "1234+5678=6802"
    seen_by_last = {3, 8, 13}  # column 4 of both operands, and the token itself: column 5 is empty
    seen_by_eight = {1, 2, 6, 7, 11}  # columns 2 and 3, and itself
    for place, seen in ((13, seen_by_last), (11, seen_by_eight)):
        logits = model(encode(text))[0, place]
        for changed in set(range(place + 1)) - {4, 9}:
            other = text[:changed] + str((int(text[changed]) + 1) % 10) + text[changed + 1 :]
            same = torch.equal(model(encode(other))[0, place], logits)
            assert same == (positions in WINDOWED and changed not in seen), (place, changed)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_answer_token_in_the_grid_depends_on_seven_tokens_alone(layout):
    model, tokens = made("grid"), encode(RunningTotals(layout=layout).write([123, 456, 789]))
    slots = model.slots(tokens)[0]
    for place in ((table_address(tokens)[0] == 1) & (tokens != END))[0].nonzero()[:, 0].tolist():
        seen = set((slots[place] != ABSENT).nonzero()[:, 0].tolist())
        assert place in seen and len(seen) <= 7 and max(seen) == place
        for changed in range(place + 1):
            if tokens[0, changed] < 10:  # a sign would change addresses
                other = tokens.clone()
                other[0, changed] = (tokens[0, changed] + 1) % 10
                same = torch.equal(model(other)[0, place], model(tokens)[0, place])
                assert same == (changed not in seen), (place, changed)


def test_a_token_of_a_page_depends_on_one_key_a_slot_alone():
    model, tokens = made("page"), pages()[:1]
    slots = page_slots(tokens)[0]
    for place in range(tokens.shape[1]):
        seen = (slots[place] != ABSENT).nonzero()[:, 0].tolist()
        found = slots[place, seen].tolist()
        assert place in seen and max(seen) == place and len({*found}) == len(found) <= 5
        for changed in range(place + 1):
            if tokens[0, changed] < 10:
                other = tokens.clone()
                other[0, changed] = (tokens[0, changed] + 1) % 10
                same = torch.equal(model(other)[0, place], model(tokens)[0, place])
                assert same == (changed not in seen), (place, changed)


def test_a_token_of_a_difference_depends_on_one_key_a_slot_alone():
    model, tokens = made("difference"), differences()[:1]
    slots = difference_slots(tokens)[0]
    for place in range(tokens.shape[1]):
        seen = (slots[place] != ABSENT).nonzero()[:, 0].tolist()
        found = slots[place, seen].tolist()
        assert place in seen and max(seen) == place and len({*found}) == len(found)
        for changed in range(place + 1):
            if tokens[0, changed] < 10:
                other = tokens.clone()
                other[0, changed] = (tokens[0, changed] + 1) % 10
                same = torch.equal(model(other)[0, place], model(tokens)[0, place])
                assert same == (changed not in seen), (place, changed)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_reach_leaves_what_is_near_and_the_rest_keeps_its_proportions(positions):
    model, tokens = made(positions), SUMS[:1, :10]
    free, held = (model(tokens, reach=reach, return_activations=True)[1]["pattern"][0] for reach in (None, 1))
    index = number_index(tokens)[0].tolist()
    for t in range(len(index)):
        kept = [s for s in range(t + 1) if -1 <= index[t] + 1 - index[s] <= 2]
        lost = [s for s in range(len(index)) if s not in kept]
        assert (held[:, t, lost] == 0).all()
        held_there, free_there = (one[:, t, kept] / one[:, t, kept].sum(-1, keepdim=True) for one in (held, free))
        torch.testing.assert_close(held_there, free_there)


def test_without_a_vector_for_its_number_three_equal_digits_and_one_would_look_the_same():
    model = made()
    after_end, after_two_columns = encode("1+2=3"), encode("1133+0=1133")
    logits = [model(text)[0, place] for text, place in ((after_end, 4), (after_two_columns, 9))]
    assert not torch.allclose(*logits)
    torch.nn.init.zeros_(model.numbers.weight)
    # `3` of 33 + nothing reads 3, 3 and itself; with nothing above it, it would read itself alone.
    x = model.embedding.weight[3]
    alone = model.unembedding(model.add_neurons(x + model.out(model.qkv(x).unflatten(-1, (3, -1))[2])))
    torch.testing.assert_close(model(after_two_columns)[0, 9], alone)


def test_the_slope_is_positive_whatever_its_parameter():
    model = made("alibi")
    torch.nn.init.constant_(model.log_slope, -3.0)
    bias = model.bias_at(torch.tensor(0), torch.arange(-5, 8))
    assert (bias[:5].diff(dim=0) > 0).all() and (bias[7:].diff(dim=0) < 0).all()


# ---- addresses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_only_tables_feel_an_offset(positions):
    model, offset = made(positions).double(), torch.tensor([[3]])
    logits = model(SUMS, offset)
    assert torch.equal(model(SUMS), logits) == (positions not in TABLES)
    torch.testing.assert_close(logits[0], by_hand(model, SUMS[0], offset=3), rtol=1e-6, atol=1e-6)


def test_addresses_are_those_of_the_looped_adders_schemes():
    offset = torch.tensor([[2]])
    for positions, known in (("abacus", addresses), ("coupling", coupled)):
        assert torch.equal(made(positions).address(SUMS, offset), known(SUMS, offset))


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="address 13: the table ends at 11"):
        made("coupling")(torch.tensor([[1, 2, 3]]), torch.tensor([[9]]))
    with pytest.raises(ValueError, match="'rotary-text' do not follow"):
        made("rotary-text").address_at(torch.tensor(1), torch.tensor(1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_heads": 3}, "not a multiple of n_heads = 3"),
        ({"d_model": 6, "positions": "rotary"}, "not a multiple of 2 n_heads = 4"),
        ({"window": 0}, "at least 1"),
        ({"n_rows": 0}, "at least 1"),
        ({"positions": "polar"}, "window, window-sink, alibi, full, log-scaled, abacus"),
    ],
)
def test_impossible_configurations_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        ColumnConfig(**{**SIZES, **wrong})


# ---- other sizes -------------------------------------------------------------------------------------------------

SMALL = ColumnConfig(d_model=3, n_heads=1, d_mlp=4, tied=True)
WIDE = ColumnConfig(d_model=6, n_heads=1, d_mlp=9, tied=True)


def test_tied_tables_count_once():
    model = ColumnTransformer(SMALL)
    assert model.unembedding.weight is model.embedding.weight
    d, f = SMALL.d_model, SMALL.d_mlp
    expected = 15 * d + 4 * d + 4 * 2 + 3 * (d * d + d) + d * d + (d * f + f) + (f * d + d) + 15
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_the_state_has_tied_tables_apart_so_that_safetensors_can_keep_them():
    state = ColumnTransformer(SMALL).state_dict()
    assert state["unembedding.weight"].data_ptr() != state["embedding.weight"].data_ptr()
    assert torch.equal(state["unembedding.weight"], state["embedding.weight"])


def test_cutting_off_weights_that_are_zero_changes_no_output():
    model, tokens = ColumnTransformer(SMALL, seed=1), encode("321+654=97")
    expected, wide = model(tokens), resize(model, WIDE)
    assert model.config == SMALL and not torch.allclose(wide(tokens), expected)
    kept = kept_weights(wide, SMALL)
    assert sum(int(mask.sum()) for mask in kept.values()) == sum(value.numel() for value in model.parameters())
    with torch.no_grad():
        for name, value in wide.named_parameters():
            value.mul_(kept[name])
    torch.testing.assert_close(wide(tokens), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(resize(wide, SMALL)(tokens), expected, rtol=1e-5, atol=1e-5)


def test_several_heads_are_not_resized():
    two = ColumnConfig(d_model=4, n_heads=2)
    with pytest.raises(ValueError, match="n_heads = 2"):
        resize(ColumnTransformer(two), SMALL)
    with pytest.raises(ValueError, match="n_heads = 2"):
        resize(ColumnTransformer(SMALL), two)


# ---- recorded numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_initial_weights_are_the_recorded_draws(positions):
    model = ColumnTransformer(ColumnConfig(positions, d_model=16, n_heads=2, d_mlp=12, n_rows=9), seed=3)
    found = {name: float(value.detach().double().sum()) for name, value in model.named_parameters()}
    assert found == pytest.approx(GOLDEN["initial"][positions], abs=1e-5)


@pytest.mark.parametrize("name", GOLDEN["logits"])
def test_a_shipped_model_gives_the_recorded_logits(name):
    model = checkpoints.read(name).model.double()
    kind = model.config.positions
    text = GOLDEN["texts"][kind if kind in GOLDEN["texts"] else "totals" if kind in GRID else "sum"]
    with torch.no_grad():
        logits = model(encode(text))[0].mean(0)
    assert logits.tolist() == pytest.approx(GOLDEN["logits"][name], rel=1e-5, abs=1e-5)


def test_every_shipped_column_transformer_has_recorded_logits():
    shipped = {
        path.stem for path in checkpoints.shipped()
        if isinstance(getattr(experiments.get(path.stem), "model", None), ColumnConfig)
        and experiments.get(path.stem).ships_weights
    }  # fmt: skip
    assert shipped == set(GOLDEN["logits"])
