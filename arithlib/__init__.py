"""arithlib: the small library beneath "How transformers do arithmetic: every claim, rerun"."""

__version__ = "0.1.0"


def load(name: str):
    """A trained model by its name: `arithlib.load("adder-certified").add(45, 99)` is 144.

    Gives an `arithlib.checkpoints.Trained`: `.model` is the network, `.experiment` its settings, `.history` what was
    measured in training, and `.add(a, b)` asks it for a sum.
    """
    from arithlib.checkpoints import load as load_checkpoint

    return load_checkpoint(name)
