"""`python -m arithlib`."""

import sys

from arithlib_entry import main

sys.exit(main())
