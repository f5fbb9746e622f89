"""arithlib: the small library beneath "How transformers do arithmetic: every claim, rerun"."""

__version__ = "0.1.0"


def load(name: str):
    """A trained model from the shipped checkpoints: `arithlib.load("grokking-s0").add(45, 99)` is 31 (mod 113)."""
    from arithlib.checkpoints import load as load_checkpoint

    return load_checkpoint(name)
