"""The addressed transformer: what each token sees, and that its forward is its definition."""

import math

import pytest
import torch

from arithlib.models.addressed import FAR, AddressedConfig, AddressedTransformer, number_of
from arithlib.models.positions import number_index
from arithlib.tasks.operands import OperandTask
from arithlib.tokenizer import CharacterTokenizer

TINY = dict(d_model=8, n_heads=2, d_mlp=16)


def model(far="masked", **more):
    return AddressedTransformer(AddressedConfig(**TINY, far=far, **more), seed=1).eval().requires_grad_(False)


def encode(*texts):
    return torch.tensor([CharacterTokenizer().encode(text, end=False) for text in texts])


def by_hand(model, tokens):
    """Logits of one text, query by query and key by key, in double precision."""
    m, H = model.double(), model.config.n_heads
    number, index = number_of(tokens[None])[0].tolist(), number_index(tokens[None])[0].tolist()
    x = m.embedding(tokens) + m.numbers.weight[number]
    q, k, v = m.qkv(x).unflatten(-1, (3, H, -1)).unbind(1)
    logits = []
    for t in range(len(tokens)):
        z = []
        for h in range(H):
            weights = []
            for s in range(t + 1):
                distance = index[t] + 1 - index[s]
                outside = max(0, -distance, distance - m.config.window)
                if outside == 0:
                    bias = float(m.near[h, number[s], distance])
                elif m.config.far == "masked":
                    bias = -math.inf
                else:
                    bias = -outside * math.exp(float(m.log_slope[h])) if m.config.far == "decay" else 0.0
                score = float(q[t, h] @ k[s, h]) / math.sqrt(q.shape[-1])
                sharpness = math.log(t + 1) if m.config.far == "scaled" else 1.0
                weights.append(math.exp(sharpness * (score + bias)))
            z.append(sum(w * v[s, h] for s, w in enumerate(weights)) / sum(weights))
        mid = x[t] + m.out(torch.cat(z))
        logits.append(m.unembedding(mid + m.mlp_out(m.mlp_in(mid).clamp(min=0))))
    return torch.stack(logits)


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("window", [1, 2])
def test_the_forward_is_the_definition(far, window):
    tokens = OperandTask(max_digits=4).sample(5, torch.Generator().manual_seed(0)).tokens
    made = model(far, window=window).double()
    torch.testing.assert_close(made(tokens), torch.stack([by_hand(made, row) for row in tokens]))


def test_numbers_and_indices_are_those_of_the_docstring():
    tokens = encode("321+654=975$")
    assert number_of(tokens)[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3]
    assert number_index(tokens)[0].tolist() == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0]


@pytest.mark.parametrize("far", FAR)
def test_a_windowed_answer_depends_on_two_columns_and_its_own_digit_alone(far):
    made, text = model(far), "1234+5678=6802"
    seen_by_last = {3, 8, 13}  # column 4 of both operands, and the token itself: column 5 is empty
    seen_by_eight = {1, 2, 6, 7, 11}  # columns 2 and 3, and itself
    for place, seen in ((13, seen_by_last), (11, seen_by_eight)):
        logits = made(encode(text))[0, place]
        for changed in set(range(place + 1)) - {4, 9}:
            other = text[:changed] + str((int(text[changed]) + 1) % 10) + text[changed + 1 :]
            same = torch.equal(made(encode(other))[0, place], logits)
            assert same == (far == "masked" and changed not in seen), (place, changed)


@pytest.mark.parametrize("far", FAR)
def test_later_tokens_change_nothing_before_them_and_kernels_agree(far):
    made = model(far)
    tokens = encode("12+34=46", "12+34=99")
    torch.testing.assert_close(made(tokens)[0, :6], made(tokens)[1, :6])
    logits, activations = made(tokens, return_activations=True)
    torch.testing.assert_close(logits, made(tokens))
    assert activations["pattern"].shape == (2, 2, 8, 8)
    torch.testing.assert_close(activations["pattern"].sum(-1), torch.ones(2, 2, 8))


def test_without_a_vector_for_its_number_three_equal_digits_and_one_would_look_the_same():
    made = model()
    after_end, after_two_columns = encode("1+2=3"), encode("1133+0=1133")
    logits = [made(text)[0, place] for text, place in ((after_end, 4), (after_two_columns, 9))]
    assert not torch.allclose(*logits)
    torch.nn.init.zeros_(made.numbers.weight)
    # `3` of 33 + nothing reads 3, 3 and itself; with nothing above it, it would read itself alone.
    alone = by_hand_alone(made, token=3)
    torch.testing.assert_close(made(after_two_columns)[0, 9], alone)


def by_hand_alone(made, token):
    """Logits of an answer token that sees nothing but itself."""
    x = made.embedding.weight[token]
    v = made.qkv(x).unflatten(-1, (3, -1))[2]
    mid = x + made.out(v)
    return made.unembedding(mid + made.mlp_out(made.mlp_in(mid).relu()))


def test_the_slope_of_the_unwindowed_model_is_positive_whatever_its_parameter():
    made = model("decay")
    torch.nn.init.constant_(made.log_slope, -3.0)
    bias = made.bias_at(torch.tensor(0), torch.arange(-5, 8))
    assert (bias[:5].diff(dim=0) > 0).all() and (bias[7:].diff(dim=0) < 0).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"n_heads": 3}, "multiple"), ({"window": 0}, "at least 1"), ({"far": "away"}, "masked, decay, flat")],
)
def test_impossible_configurations_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        AddressedConfig(**{**TINY, **wrong})
