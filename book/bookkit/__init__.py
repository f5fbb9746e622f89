"""What makes notebooks a tested book: figures and claims that are recorded, verdicts that a rule computes, a build.

It knows nothing of what the notebooks are about. A notebook says `from bookkit import figure, claim, glue, verdicts`.
"""

from bookkit.figures import figure
from bookkit.judge import claim, published, verdicts
from bookkit.prose import glue, provenance

__all__ = ["claim", "figure", "glue", "provenance", "published", "verdicts"]
