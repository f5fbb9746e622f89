"""What a stranger installs works alone: the wheel, without this checkout, and in an empty folder."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import arithlib

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from arithlib import AbacusExperiment, LoopedConfig, OperandTask, load, make, register
from arithlib.training import AdamW
import arithlib

assert load("adder-certified").add(10**50 - 1, 1) == 10**50
assert load("abacus-cpu-s0").add(123456789012345, 987654321098765) == 1111111110111110
assert load("grokking-s0").add(45, 99) == 31
# A model of one's own, trained for a moment, and read back by its name.
register([AbacusExperiment(
    name="mine", about="a trial", steps=4, evaluate_every=4, batch_size=8, evaluation_count=8,
    task=OperandTask(max_digits=2), model=LoopedConfig(d_model=16, n_heads=2, d_mlp=32),
    optimizer=AdamW.cosine(1e-3, 4, warmup_steps=1))])
made = make("mine", device="cpu", progress=False)
assert (load("mine").model.embedding.weight == made.model.embedding.weight).all()
print(arithlib.__file__)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The content of the wheel, as pip lays it out."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    source = folder / "source"  # setuptools builds inside the folder it is given
    for room in ("arithlib", "book/bookkit", "notebooks/chapters", "notebooks/presets"):
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE.md"):
        shutil.copy(ROOT / name, source)
    subprocess.run([*build, str(source)], check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_loads_its_models_and_trains_one_of_ones_own(installed, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    assert Path(answer.stdout.strip()).is_relative_to(installed)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["mine.json", "mine.safetensors"]


def test_three_models_travel_in_the_wheel(installed):
    names = {path.stem for path in (installed / "arithlib" / "weights").glob("*.safetensors")}
    assert names == {"abacus-cpu-s0", "adder-certified", "grokking-s0"}


@pytest.mark.parametrize("name", arithlib.__all__)
def test_every_name_of_the_front_door_opens(name):
    assert getattr(arithlib, name).__doc__
