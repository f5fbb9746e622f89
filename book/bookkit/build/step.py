"""A step of the build, run so that Ctrl-C ends it at once, without a traceback of each of its processes:

    python -m bookkit.build.step site 10_grokking     otherwise as `python -m bookkit.build.site 10_grokking`

A step that was cut off begins anew, so nothing is lost.
"""

import runpy
import signal
import sys


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    del sys.argv[0]
    runpy.run_module(f"bookkit.build.{sys.argv[0]}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
