"""Transformers whose weights are written by hand from the proofs of source 003, corrected where they have to be.

A layer is that of the source (definition 2.1, algorithm 1): causal softmax attention and a ReLU network of one
hidden layer, each added to the residual stream, without layer norm. Weights are sums of named coordinates, so that a
row of a proof is a line of code. Where a score must decide, it is multiplied by `SHARP`, and the softmax is one-hot
to the bit.

Dimensions: B sequences, T tokens, D residual stream, H heads, K width of a head, F neurons, V vocabulary, P elements
of a group, N letters of a word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from arithlib.models.linear import product
from arithlib.tasks.group_words import Group

# Between the best score and the next, at least: exp(-800) is 0 in a float64. That is no more than the rounding of
# attention which the proofs allow themselves; from about 40 on the sums come out the same.
SHARP = 800.0


# ---- a layer, and its coordinates --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """One transformer layer: x + attention, then + MLP.

    W_Q, W_K, W_V, W_O: (H, K, D); head h adds W_O[h].T @ (what W_V[h] reads, averaged by the attention).
    W_1: (F, D), b_1: (F,), W_2: (D, F), b_2: (D,).
    """

    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    W_1: Tensor
    b_1: Tensor
    W_2: Tensor
    b_2: Tensor

    def to(self, dtype: torch.dtype) -> "Layer":
        """The layer with weights of another precision."""
        return Layer(*(getattr(self, field.name).to(dtype) for field in fields(self)))

    def pattern(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, T) attention weights: row i is what token i looks at, up to itself."""
        queries, keys = (torch.einsum("btd,hkd->bhtk", x, W) for W in (self.W_Q, self.W_K))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return (queries @ keys.mT).masked_fill(later, -torch.inf).softmax(-1)

    def attention(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D) what all heads add."""
        values = torch.einsum("btd,hkd->bhtk", x, self.W_V)
        return torch.einsum("bhtk,hkd->btd", self.pattern(x) @ values, self.W_O)

    def mlp(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D) what the MLP adds."""
        # Most coordinates have nothing to do with it, and tokens that agree in the others are one. And few at a time:
        # their neurons stay in the cache.
        reads, writes = self.W_1.any(0), self.W_2.any(1) | (self.b_2 != 0)
        W_1, W_2, b_2 = self.W_1[:, reads], self.W_2[writes], self.b_2[writes]
        different, which = x.flatten(0, 1)[:, reads].unique(dim=0, return_inverse=True)
        hidden = (product(part, W_1, self.b_1).relu_() for part in different.split(32))
        added = torch.zeros_like(x)
        added[..., writes] = torch.cat([product(part, W_2, b_2) for part in hidden])[which].unflatten(0, x.shape[:2])
        return added

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


def random_layer(D: int, H: int, K: int, d_mlp: int, generator: torch.Generator) -> Layer:
    """A layer of normal weights, of a size that keeps a handful of them in a row from growing much."""
    shapes = {"W_Q": (H, K, D), "W_K": (H, K, D), "W_V": (H, K, D), "W_O": (H, K, D)}
    shapes |= {"W_1": (d_mlp, D), "b_1": (d_mlp,), "W_2": (D, d_mlp), "b_2": (D,)}
    weights = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}
    return Layer(**{name: weight / weight.shape[-1] ** 0.5 for name, weight in weights.items()})


def run(layers: Sequence[Layer], x: Tensor) -> list[Tensor]:
    """The residual stream (B, T, D) before the first layer and after each; a looped model repeats one layer."""
    states = [x]
    for layer in layers:
        states.append(layer(states[-1]))
    return states


class Coordinates:
    """Names for parts of the residual stream: `at("place")` is the matrix that reads them, its transpose writes them.

    >>> at = Coordinates(token=2, place=1)
    >>> at("place"), at.D
    (tensor([[0., 0., 1.]], dtype=torch.float64), 3)
    """

    def __init__(self, **widths: int):
        stops = torch.tensor(list(widths.values())).cumsum(0).tolist()
        self.slices = {n: slice(stop - w, stop) for (n, w), stop in zip(widths.items(), stops, strict=True)}
        self.D = stops[-1]

    def __call__(self, *names: str) -> Tensor:
        """(widths in all, D) rows of the identity."""
        return torch.cat([torch.eye(self.D, dtype=torch.float64)[self.slices[name]] for name in names])


def heads(*weights: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(W_Q, W_K, W_V, W_O) of each head, of any number of rows -> the same, stacked and padded to (H, K, D)."""
    K = max(len(W) for head in weights for W in head)
    return tuple(torch.stack([F.pad(W, (0, 0, 0, K - len(W))) for W in kind]) for kind in zip(*weights, strict=True))


def neurons(*groups: tuple[Tensor, float | Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Groups of neurons, each (incoming (F, D), bias, outgoing (F, D)) -> W_1, b_1, W_2 of them side by side."""
    incoming, bias, outgoing = zip(*groups, strict=True)
    b_1 = torch.cat(
        [torch.as_tensor(b, dtype=torch.float64).expand(len(W)) for b, W in zip(bias, incoming, strict=True)]
    )
    return torch.cat(incoming), b_1, torch.cat(outgoing).T.contiguous()


def bits(numbers: Tensor, width: int) -> Tensor:
    """(...) numbers -> (..., width) of -1 and 1, lowest bit first."""
    return 2.0 * (numbers[..., None].long() >> torch.arange(width) & 1).double() - 1


# ---- theorem 2.1: a product of n elements of a group -------------------------------------------------------------


class GroupComposer:
    """Theorem 2.1: one layer which, looped ceil(log2 n) times, multiplies n elements of a finite group.

    In every loop token i replaces its element by the product of two, those of tokens 2i-n-1 and 2i-n (0 where that is
    negative; token 0 is the identity). Neighbours merge towards the end, and the last token holds the product of all.

    group: whose elements. n: letters of a word. sharp: how much of its score one wrong bit costs a position.
    """

    def __init__(self, group: Group, n: int, sharp: float = SHARP):
        self.group, self.n, P = group, n, group.order
        m, K = (P - 1).bit_length(), n.bit_length()  # ceil(log2 P) and ceil(log2(n + 1))
        self.loops = (n - 1).bit_length()  # ceil(log2 n)
        self.at = at = Coordinates(element=m, position=K, left_position=K, right_position=K, left=m, right=m)
        self.codes = codes = bits(torch.arange(P), m)

        def fetch(side: str):
            return sharp / 2 * at(f"{side}_position"), at("position"), at("element"), at(side)

        both = (codes @ at("left"))[:, None] + codes @ at("right")  # (P, P, D) reads how well left and right fit
        old = at("element", "left", "right")
        W_1, b_1, W_2 = neurons(
            (both.flatten(0, 1), 1.0 - 2 * m, codes[group.table.flatten()] @ at("element")),  # fires where both fit
            (old, 0.0, -old),  # these two take away what was there: -x = -relu(x) + relu(-x)
            (-old, 0.0, old),
        )
        self.layer = Layer(
            *heads(fetch("left"), fetch("right")), W_1, b_1, W_2, torch.zeros(at.D, dtype=torch.float64)
        )

    def embed(self, words: Tensor) -> Tensor:
        """(B, N) words -> (B, N + 1, D): the identity, then the letters, each with three positions in binary."""
        i, K = torch.arange(self.n + 1), self.n.bit_length()
        elements = self.codes[F.pad(words, (1, 0))] @ self.at("element")
        places = {"position": i, "left_position": 2 * i - self.n - 1, "right_position": 2 * i - self.n}
        return elements + sum(bits(place.clamp(min=0), K) @ self.at(name) for name, place in places.items())

    def elements(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T) the element that each token holds: that of the nearest code."""
        return (x.double() @ self.at("element").T @ self.codes.T).argmax(-1)

    def states(self, words: Tensor, loops: int | None = None) -> Tensor:
        """(B, N) words -> (loops + 1, B, N + 1) elements before and after each loop; `self.loops` by default."""
        loops = self.loops if loops is None else loops
        x = self.embed(words).to(self.layer.W_Q.dtype)
        return torch.stack([self.elements(state) for state in run([self.layer] * loops, x)])

    def __call__(self, words: Tensor, loops: int | None = None) -> Tensor:
        """(B, N) words -> (B,) the element at the last token after all loops."""
        return self.states(words, loops)[-1, :, -1]


# ---- theorem 2.2: many layers, few of them different, as one looped layer ----------------------------------------


def as_one_layer(layers: Sequence[Layer], order: Sequence[int], bound: float) -> Layer:
    """Theorem 2.2: one layer which, looped len(order) times, does what layers[order[0]], layers[order[1]], ... do.

    Behind the D coordinates stand three more things: for each of the R layers whether it is off, a counter of loops
    from 1, and whether the token is the dummy at the front. A head whose layer is off looks at the dummy, which is
    zero; a neuron whose layer is off is pushed below zero.

    layers: R layers. order: whose turn it is, L numbers from 0 to R - 1.
    bound: more than any score (in absolute value) and any input of a neuron of the layers reaches.
    Returns a layer of D + R + 2 coordinates, R H heads of width K + 1, and R F + L + 2 + R neurons.
    """
    R, L, D = len(layers), len(order), layers[0].W_Q.shape[-1]
    at = Coordinates(old=D, off=R, loop=1, dummy=1)
    old, off, loop, dummy = (at(name) for name in at.slices)
    weights, groups = [], []
    for r, layer in enumerate(layers):
        # The last row of queries and keys adds a multiple of 2 L off - loop to the score of the dummy: with the layer
        # on it is out of sight, with the layer off nothing else is in sight. The counter, from 1, serves as constant.
        steer = 2 * L * off[r : r + 1] - loop
        for W_Q, W_K, W_V, W_O in zip(layer.W_Q, layer.W_K, layer.W_V, layer.W_O, strict=True):
            seen = 2 * (bound + SHARP) * dummy
            weights.append((torch.cat([W_Q @ old, steer]), torch.cat([W_K @ old, seen]), W_V @ old, W_O @ old))
        closed = bound * (off[r] + dummy)  # (1, D + R + 2) for a layer that is off, and for the dummy
        groups.append((layer.W_1 @ old - closed, layer.b_1, layer.W_2.T @ old))
        groups.append((-off[r : r + 1] - dummy, 1.0, (layer.b_2 @ old)[None]))
    # Who is off after loop l is a function of l alone: a sum of hats, each 1 at its own l and 0 at every other.
    turn = torch.eye(R, dtype=torch.float64)[list(order)]
    change = F.pad(turn - turn.roll(-1, 0), (0, 0, 1, 1))  # (L + 2, R) from each loop to the next
    hats = torch.stack([change.roll(-1, 0), -2 * change, change.roll(1, 0)]).sum(0)
    groups.append((loop.expand(L + 2, -1), -torch.arange(L + 2.0, dtype=torch.float64), hats @ off))
    W_1, b_1, W_2 = neurons(*groups)
    return Layer(*heads(*weights), W_1, b_1, W_2, loop[0])


def with_dummy(x: Tensor, R: int, first: int) -> Tensor:
    """(B, T, D) -> (B, T + 1, D + R + 2) what `as_one_layer` starts from: the dummy in front, layer `first` on."""
    D = x.shape[-1]
    x = F.pad(x, (0, R + 2, 1, 0))
    x[..., D : D + R] = 1
    x[..., D + first] = 0
    x[..., -2] = 1
    x[:, 0, -1] = 1
    return x


# ---- corollary 2.3: p-hop by doubling pointers -------------------------------------------------------------------


class Hopper:
    """Corollary 2.3: p-hop by one layer looped about log2 p times, in two ways.

    First every token finds where its hop leads. Then each loop doubles: a token looks where its pointer points, and
    takes over the pointer it finds there, so that after s such loops its pointer leads 2^s hops away. In loops that
    stand for a 1 in a binary number it takes over the token carried there as well, and at the end it carries the
    token p hops away.

    The first hop takes an induction head two layers of one head: *shift* tells every token which token stands before
    it, *match* looks for the latest one that stands behind a token like one's own. That makes ceil(log2 p) + 2 loops.
    Where p is a power of two that is what the corollary says, with 3 layers of one head.

    Without `induction`, *find* makes the first hop in one layer of ceil(log2(n + 1)) heads, and every p takes
    floor(log2 p) + 2 loops, again of 3 different layers.

    p: hops, at least 1. n: tokens of a sequence, at most. alphabet: V.
    """

    def __init__(self, p: int, n: int, alphabet: int = 4, induction: bool = False):
        if p < 1:
            raise ValueError(f"p = {p}: at least 1 hop")
        self.p, self.n, self.alphabet, self.K = p, n, alphabet, n.bit_length()
        more = {"previous": alphabet} if induction else dict.fromkeys(("position", "near", "seen"), self.K)
        self.at = Coordinates(
            token=alphabet, one=1, start=1, place=1, square=1, pointer=1, carried=alphabet, next_pointer=1,
            next_carried=alphabet, **more,
        )  # fmt: skip
        first, hops = ([self._shift(), self._match()], p - 1) if induction else ([self._find()], p)
        digits = [hops >> s & 1 for s in range(hops.bit_length())]  # lowest first
        names = list(range(len(first))) + [len(first) + digit for digit in digits]
        used = sorted(set(names))
        self.layers = [(first + [self._double(0), self._double(1)])[name] for name in used]
        self.order = [used.index(name) for name in names]
        self.loops = len(self.order)
        self.looped = as_one_layer(self.layers, self.order, bound=(2 * self.K + 5) * SHARP * n**2)

    def _layer(self, *weights, groups) -> Layer:
        return Layer(*heads(*weights), *neurons(*groups), torch.zeros(self.at.D, dtype=torch.float64))

    def _fetch(self, query: Tensor, key: Tensor, place: str, token: str | None) -> Layer:
        """One head that fetches what becomes the pointer and, if there is a token to fetch, the carried token."""
        at = self.at
        pairs = [("pointer", "next_pointer", place)] + [("carried", "next_carried", token)] * (token is not None)
        old, new, value = (at(*names) for names in zip(*pairs, strict=True))
        return self._layer((SHARP * query, key, value, new), groups=[(new, 0.0, old - new), (old, 0.0, -old)])

    def _place_is(self, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Query and key with the score -(wanted - place)^2, up to what is the same for all places."""
        return torch.cat([2 * wanted, self.at("one")]), torch.cat([self.at("place"), -self.at("square")])

    def _double(self, digit: int) -> Layer:
        return self._fetch(*self._place_is(self.at("pointer")), "pointer", "carried" if digit else None)

    def _shift(self) -> Layer:
        at = self.at
        query, key = self._place_is(at("place") - at("one"))
        return self._layer(
            (SHARP * query, key, at("token"), at("previous")), groups=[(at("one")[:0], 0.0, at("one")[:0])]
        )

    def _match(self) -> Layer:
        """2 n for a match outweighs any place; among matches the latest wins, and without one the start token."""
        at, n = self.at, self.n
        query = torch.cat([2 * n * at("token"), at("one"), at("one")])
        return self._fetch(query, torch.cat([at("previous"), at("place"), 2 * n * at("start")]), "place", "token")

    def _find(self) -> Layer:
        """The latest earlier token of the same kind, and the place after it.

        A token always matches itself best, so it is kept from looking at itself: head k sees only places that share
        the bits of its own above bit k and differ in bit k. Each earlier place is in sight of one head, and a lower
        head sees nearer ones.
        """
        at, n, K = self.at, self.n, self.K
        place, one, near, seen = at("place"), at("one"), at("near"), at("seen")
        weights = []
        for k in range(K):
            bit = torch.arange(K)
            wanted = ((bit > k).double() - (bit == k).double()).diag() @ at("position")
            # What has all bits right and the right token scores its place, the start token 0, anything else less,
            # up to what is the same for all.
            query = SHARP * torch.cat([n * wanted, 2 * n * at("token"), one, one])
            key = torch.cat([at("position"), at("token"), place, n * (K - k + 2) * at("start")])
            weights.append((query, key, torch.cat([place + one, one]), torch.cat([near[k : k + 1], seen[k : k + 1]])))
        nearer = torch.ones(K, K, dtype=torch.float64).tril(-1) @ seen  # (K, D) how many lower heads have seen one
        scratch = at("near", "seen")
        groups = [(near - (n + 1) * nearer, 0.0, at("pointer").expand(K, -1)), (scratch, 0.0, -scratch)]
        return self._layer(*weights, groups=groups)

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B, T + 1, D): a start token at place 0, then the tokens at places 1 to T.

        Raises ValueError for more than n tokens, whose places would have too few bits.
        """
        if tokens.shape[1] > self.n:
            raise ValueError(f"{tokens.shape[1]} tokens: this hopper is made for {self.n} at most")
        at, i = self.at, torch.arange(tokens.shape[1] + 1.0, dtype=torch.float64)[:, None]
        kinds = F.pad(F.one_hot(tokens, self.alphabet).double(), (0, 0, 1, 0)) @ (at("token") + at("carried"))
        start = (i == 0).double()
        places = start * at("start") + (1 - start) * at("one") + i * at("place") + i**2 * at("square")
        if "position" in at.slices:  # the start token has no bits: no head takes it for a neighbour
            places = places + (1 - start) * (bits(i[:, 0], self.K) @ at("position"))
        return kinds + places

    def states(self, tokens: Tensor, loops: int | None = None) -> tuple[Tensor, Tensor]:
        """Pointers and carried tokens before and after each loop of the one looped layer.

        tokens: (B, T). loops: `self.loops` by default. Returns two (loops + 1, B, T): places from 1, 0 for nowhere,
        and tokens, -1 for none.
        """
        x = with_dummy(self.embed(tokens), len(self.layers), self.order[0])
        states = torch.stack(run([self.looped] * (self.loops if loops is None else loops), x))[:, :, 2:, : self.at.D]
        carried = states @ self.at("carried").T
        pointers = (states @ self.at("pointer").T)[..., 0].round().long()
        return pointers, torch.where(carried.amax(-1) > 0.5, carried.argmax(-1), -1)

    def __call__(self, tokens: Tensor, loops: int | None = None) -> Tensor:
        """(B, T) tokens -> (B, T) the token p hops from each, -1 where they lead nowhere; hop_p is the last."""
        return self.states(tokens, loops)[1][-1]


# ---- lemmas B.2 to B.4: ReLU networks ----------------------------------------------------------------------------

Network = list[tuple[Tensor, Tensor]]  # (W, b) of each linear map, with a ReLU between one and the next


def apply(network: Network, x: Tensor) -> Tensor:
    """(..., inputs) -> (..., outputs) of a ReLU network."""
    for W, b in network[:-1]:
        x = F.relu(F.linear(x, W, b))
    return F.linear(x, *network[-1])


def argmax_network(d: int, p: int) -> Network:
    """Lemma B.2: three layers, d (d - 1) neurons, which map d numbers to the unit vector of the largest.

    p: the largest must lead by 2^-p at least. Each number is held against all others, and one that loses to nobody
    by anything is the largest.
    """
    i, j = (~torch.eye(d, dtype=torch.bool)).nonzero().T
    unit = torch.eye(d, dtype=torch.float64)
    lead = torch.full((d,), 2.0**-p, dtype=torch.float64)
    zero = torch.zeros(d * (d - 1), dtype=torch.float64)
    return [(unit[j] - unit[i], zero), (-unit[i].T, lead), (2.0**p * unit, 0 * lead)]


def decode_and_embed(W_U: Tensor, W_E: Tensor, p: int) -> Network:
    """Lemma B.3: from a residual stream to the embedding of the token with the largest logit.

    W_U: (D, V), W_E: (V, D). p: the largest logit must lead by 2^-p at least.
    """
    (compare, zero), judge, (choose, none) = argmax_network(len(W_E), p)
    return [(compare @ W_U.T, zero), judge, (W_E.T @ choose, W_E.T @ none)]


def gate_network(bound: float) -> Network:
    """Lemma B.4: two layers, (x, y, M) -> x where M = 1 and y where M = 0, for |x|, |y| <= bound."""
    W = torch.tensor([[1, 0, bound], [-1, 0, bound], [0, 1, -bound], [0, -1, -bound]], dtype=torch.float64)
    b = torch.tensor([-bound, -bound, 0, 0], dtype=torch.float64)
    return [(W, b), (torch.tensor([[1.0, -1, 1, -1]], dtype=torch.float64), torch.zeros(1, dtype=torch.float64))]


# ---- theorem B.1: loops instead of chain-of-thought steps --------------------------------------------------------


@dataclass(frozen=True)
class Decoder:
    """A transformer that writes one token after another, the largest logit each time (definitions B.1, B.2).

    layers: not looped. W_E: (V, D) tokens. W_pos: (T, D) places. W_U: (D, V) logits.
    """

    layers: Sequence[Layer]
    W_E: Tensor
    W_pos: Tensor
    W_U: Tensor

    def logits(self, tokens: Tensor) -> Tensor:
        """(B, T) tokens -> (B, T, V)."""
        return run(self.layers, self.W_E[tokens] + self.W_pos[: tokens.shape[1]])[-1] @ self.W_U

    def write(self, tokens: Tensor, steps: int) -> Tensor:
        """(B, N) tokens -> (B, N + steps), each new token after a pass over all before: chain of thought."""
        for _ in range(steps):
            tokens = torch.cat([tokens, self.logits(tokens)[:, -1:].argmax(-1)], 1)
        return tokens


def random_decoder(L: int, V: int, n_ctx: int, generator: torch.Generator) -> Decoder:
    """A decoder of L layers with 8 coordinates, 2 heads and 16 neurons, and normal weights throughout."""
    layers = [random_layer(8, 2, 4, 16, generator) for _ in range(L)]
    shapes = (V, 8), (n_ctx, 8), (8, V)
    return Decoder(layers, *(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes))


class CotLooper:
    """Theorem B.1: a block of L + 3 layers which, looped m times over a prompt and m dummies, writes what m steps do.

    In every loop the L layers run as they are; then each token's answer is read (lemma B.2), moved one place on
    (lemma B.5), and let in only where the dummy's turn has come (lemma B.4). What stands there becomes the input of
    the next loop.

    decoder: what is imitated. n: tokens of the prompt. p: the largest logit must lead by 2^-p at least.
    """

    def __init__(self, decoder: Decoder, n: int, p: int = 30):
        self.decoder, self.n = decoder, n
        V, D = decoder.W_E.shape
        self.K = K = (len(decoder.W_pos) - 1).bit_length()
        self.at = at = Coordinates(
            work=D, place=D, token=V, lead=V, next=V, moved=V, ahead=1, loop=1, gate=1, position=K, before=K
        )
        work, place, token, gate = at("work"), at("place"), at("token"), at("gate")
        nothing = torch.zeros(at.D, dtype=torch.float64)
        blind = heads((0 * gate, 0 * gate, 0 * gate, 0 * gate))

        (compare, zero), (judge, lead), (choose, _) = argmax_network(V, p)
        read = Layer(*blind, *neurons((compare @ decoder.W_U.T @ work, zero, judge.T @ at("lead"))), nothing)
        turn = at("ahead") - at("loop")  # from 0 on this token may change
        answer = Layer(*blind, *neurons(
            (at("lead"), lead, choose @ at("next")),
            (-at("lead"), 0.0, at("lead")),
            (torch.cat([turn, turn]), torch.tensor([1.0, 0.0]), torch.cat([gate, -gate])),
        ), nothing)  # fmt: skip

        move = SHARP / 2 * at("before"), at("position"), at("next"), at("moved")
        (W, b), (out, _) = gate_network(1.0)
        chosen = [
            (torch.cat([W[f : f + 1, 0] * at("moved") + W[f, 1] * token + W[f, 2] * gate]), b[f]) for f in range(4)
        ]
        lands = token + decoder.W_E @ work  # (V, at.D) a token, and what it looks like to the L layers
        groups = [(incoming, bias, out[0, f] * lands) for f, (incoming, bias) in enumerate(chosen)]
        over = at("work", "token", "next", "moved", "gate")
        groups += [(sign * over, 0.0, -sign * over) for sign in (1, -1)]
        groups += [(sign * place, 0.0, sign * work) for sign in (1, -1)]
        write = Layer(*heads(move), *neurons(*groups), at("loop")[0])
        self.block = [self._widened(layer) for layer in decoder.layers] + [read, answer, write]

    def _widened(self, layer: Layer) -> Layer:
        """A layer of the decoder on the coordinates it works on, blind to all others."""
        work = self.at("work")
        wide = {name: getattr(layer, name) @ work for name in ("W_Q", "W_K", "W_V", "W_O", "W_1", "b_2")}
        return replace(layer, **wide, W_2=work.T @ layer.W_2)

    def embed(self, tokens: Tensor, m: int) -> Tensor:
        """(B, N) prompt -> (B, N + m, at.D): the prompt, and m dummies that are no token."""
        at, i = self.at, torch.arange(self.n + m)
        known = F.pad(F.one_hot(tokens, len(self.decoder.W_E)).double(), (0, 0, 0, m))
        place = self.decoder.W_pos[: self.n + m]
        fixed = (
            place @ (at("place") + at("work"))
            + bits(i, self.K) @ at("position")
            + bits((i - 1).clamp(min=0), self.K) @ at("before")
        )
        return (
            known @ (at("token") + self.decoder.W_E @ at("work"))
            + fixed
            + (i[:, None] + 1.0 - self.n) * at("ahead")
            + at("loop")
        )

    def states(self, tokens: Tensor, m: int) -> Tensor:
        """(B, N) prompt -> (m + 1, B, N + m) tokens before and after each loop, -1 for a dummy."""
        x = torch.stack(run(self.block * m, self.embed(tokens, m))[:: len(self.block)])
        held = x @ self.at("token").T
        return torch.where(held.amax(-1) > 0.5, held.argmax(-1), -1)

    def __call__(self, tokens: Tensor, m: int) -> Tensor:
        """(B, N) prompt -> (B, N + m) tokens after m loops."""
        return self.states(tokens, m)[-1]
