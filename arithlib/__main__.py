"""`python -m arithlib`."""

import sys

from arithlib.cli import main

sys.exit(main())
