"""Proof that a model is right wherever it writes an operation out in full (chapters 78 and 79).

A token of such a text sees at most one key in each of R slots, wherever it stands. So there are finitely many
*contexts*; `certify.multiplication` and `certify.subtraction` list them.

Dimensions: C contexts, R slots, V vocabulary.
"""

import numpy as np
import torch

from arithlib.certify import multiplication, subtraction
from arithlib.certify.addition import Examination, token_logits
from arithlib.certify.ball_arithmetic import Ball, margin
from arithlib.models.column import ColumnTransformer, own_token

# By what a model reads: where its contexts are listed.
WRITTEN = {"page": multiplication, "difference": subtraction}


def reachable(model: ColumnTransformer) -> tuple[np.ndarray, np.ndarray]:
    """(C, R) every context that a right text can show, in lexical order, and (C,) the token that has to come next.

    Raises ValueError for a model that reads neither pages nor differences, or more of them than is listed.
    """
    if model.config.positions not in WRITTEN:
        raise ValueError(
            f"positions = {model.config.positions!r}: contexts are listed for one of {', '.join(WRITTEN)}"
        )
    contexts, right = WRITTEN[model.config.positions].reachable()
    if contexts.shape[1] != model.config.n_slots:
        raise ValueError(f"the model reads {model.config.n_slots} slots, and contexts are listed for those of a page")
    return contexts, right


def logits(model: ColumnTransformer, contexts: np.ndarray) -> Ball:
    """(C, R) contexts -> (C, V) logits at the token that asks, with every rounding of a float32 program enclosed."""
    return token_logits(model, contexts, own_token(model.config.positions, torch.from_numpy(contexts)).numpy())


def examine(model: ColumnTransformer) -> Examination:
    """Run a model on all reachable contexts. Raises ValueError as `reachable` does."""
    contexts, right = reachable(model)
    return Examination(*margin(logits(model, contexts), right))
