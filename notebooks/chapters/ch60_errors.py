"""Which digits of an answer are wrong, and how exact match falls with the number of steps (chapter 60).

Dimensions: S models, B sums, P places of an answer, units first.
"""

import numpy as np


def wrong_places(answers: np.ndarray, right: np.ndarray, places: int) -> np.ndarray:
    """(S, B) answers and (B,) right sums -> (S, B, P) whether the digit at each place differs.

    The answer -1, which is no number, is wrong everywhere. One with more digits than there are places is wrong at
    the highest, as one is that lacks it.
    """
    worth = 10 ** np.arange(places)
    said, asked = answers[..., None] // worth, right[:, None] // worth
    differ = np.concatenate([said[..., :-1] % 10 != asked[..., :-1] % 10, said[..., -1:] != asked[..., -1:]], -1)
    return differ | (answers < 0)[..., None]


def single_errors(wrong: np.ndarray) -> tuple[float, float, np.ndarray]:
    """(B, P) of one model -> of its wrong sums, percent with exactly one wrong digit, and with that one at the most
    frequent place; and percent (P,) at each place. Raises ValueError where no sum is wrong.
    """
    wrong = wrong[wrong.any(1)]
    if not len(wrong):
        raise ValueError("no sum is wrong")
    at = 100 * wrong[wrong.sum(1) == 1].sum(0) / len(wrong)
    return float(at.sum()), float(at.max()), at


def fit_power(steps: np.ndarray, right: np.ndarray, asked: np.ndarray) -> tuple[float, float]:
    """(c, power) of the likeliest exp(-c n^power), `right` of `asked` sums of n steps being right; power to 0.01.

    An exponential fall has power 1. Powers are tried from 0 to 16, and for each the best c, in steps of 2 %.
    """
    powers = np.arange(0, 16.005, 0.01)
    # By its accuracy at the longest n, so that the same rates serve every power.
    rates = np.exp(np.arange(np.log(1e-6), np.log(1e6), 0.02))
    best = []
    for power in powers:
        loss = rates[:, None] * (np.asarray(steps) / max(steps)) ** power
        log_wrong = np.log(-np.expm1(-loss) + 1e-12)
        likelihood = (asked - right) @ log_wrong.T - right @ loss.T
        best.append((float(likelihood.max()), float(power), float(rates[likelihood.argmax()])))
    _, power, rate = max(best)
    return rate / max(steps) ** power, power
