"""Test files that run side by side do not fight for the cores: two threads each make some tests ten times as slow."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_worker_has_one_thread():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", "import conftest, torch; print(torch.get_num_threads())"],
        cwd=Path(__file__).parent, env=environment | {"PYTEST_XDIST_WORKER": "gw0"}, text=True, capture_output=True,
    )  # fmt: skip
    assert done.stdout == "1\n", done.stderr
