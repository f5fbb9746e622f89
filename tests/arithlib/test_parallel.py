"""Two processes that share every batch follow the loss curve of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from arithlib.files import load_tensors

SCRIPT = """
import dataclasses, sys
from pathlib import Path
sys.path.insert(0, "tests/arithlib")
import torch
torch.set_num_threads(1)
from test_abacus_experiments import TINY
from arithlib import checkpoints, experiments
from arithlib.models.looped import ProgressiveLoss
from arithlib.training import OutOfTime, ScheduledAdamW

steps = 40
experiments.EXPERIMENTS["abacus-tiny"] = dataclasses.replace(
    TINY, steps=steps, evaluate_every=1, batch_size=15, loss=ProgressiveLoss(0.5),
    optimizer=ScheduledAdamW(lr=3e-3, steps=steps, warmup_steps=5))
folder, name = Path(sys.argv[1]), sys.argv[2]
minutes = 0.01
while True:
    try:
        checkpoints.make(name, folder, device="cpu", progress=False, minutes=minutes)
        break
    except OutOfTime:
        minutes = None
"""


def launch(folder, processes, name="abacus-tiny"):
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    script = folder / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, *(several if processes > 1 else []), str(script), str(folder), name]
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", "PYTHONPATH": "."}
    return subprocess.run(
        command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, timeout=3000
    )


def test_two_processes_follow_the_curve_of_one_also_when_stopped_and_continued(tmp_path):
    curves = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        result = launch(folder, processes)
        assert result.returncode == 0, result.stderr
        tensors, _ = load_tensors(folder / "abacus-tiny.safetensors")
        curves.append(tensors["history/loss"].numpy())
        assert not list(folder.glob("*.state.*"))
        assert json.loads((folder / "abacus-tiny.json").read_text())["steps"] == 40
    assert curves[0][-1] < curves[0][0] - 0.3
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-3)


def test_what_trains_on_one_full_batch_is_not_shared(tmp_path):
    result = launch(tmp_path, 2, "grokking-live")
    assert (
        result.returncode != 0 and "grokking-live trains in one process: start it without torchrun" in result.stderr
    )
