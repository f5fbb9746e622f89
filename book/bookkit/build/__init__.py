"""The programs that make the book.

Each holds much in memory and ends soon. By default Python looks through it all for garbage again and again, half of
the time where pages are in memory as trees, and once more at the end.
"""

import atexit
import gc

gc.set_threshold(50_000, 20, 20)
atexit.register(gc.freeze)
