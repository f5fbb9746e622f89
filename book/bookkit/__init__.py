"""What makes notebooks a tested book: figures and claims that are recorded, verdicts that a rule computes, a build.

It knows nothing of what the notebooks are about. A notebook says `from bookkit import figure, claim, glue, verdicts`.
"""

__all__ = ["claim", "figure", "glue", "provenance", "published", "table", "verdicts"]


def __getattr__(name):
    # A step of the build draws nothing: it need not wait until matplotlib is imported.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bookkit.figures import figure
    from bookkit.judge import claim, published, verdicts
    from bookkit.prose import glue, provenance
    from bookkit.tables import table

    found = (claim, figure, glue, provenance, published, table, verdicts)
    globals().update(zip(__all__, found, strict=True))
    return globals()[name]
