"""What a stranger installs works alone: the wheel, without this checkout or the book, and in an empty folder."""

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
import without_the_book
from arithlib import AbacusExperiment, LoopedConfig, OperandTask, load, make, register
from arithlib.training import AdamW
import arithlib

assert load("adder-certified").add(10**50 - 1, 1) == 10**50
assert load("pages-s0").multiply(10**20 - 1, 101) == (10**20 - 1) * 101
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


# What the script of a console command does, with the arguments of this program.
COMMAND = """
import without_the_book
from importlib.metadata import distribution
import sys

name = sys.argv[0] = sys.argv.pop(1)
(command,) = distribution("arithlib").entry_points.select(group="console_scripts", name=name)
sys.exit(command.load()())
"""
WEIGHTS_BYTES = 2_000_000


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


@pytest.fixture
def alone(installed, tmp_path):
    """Runs a program in an empty folder, with the wheel and without what the book needs; gives what it printed."""
    found = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), str(ROOT / "tests")])}

    def run(program, *arguments):
        command = [sys.executable, "-c", program, *arguments]
        answer = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    return run


def test_the_wheel_loads_its_models_and_trains_one_of_ones_own(alone, installed, tmp_path):
    assert Path(alone(PROGRAM)).is_relative_to(installed)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["mine.json", "mine.safetensors"]


def test_the_commands_of_the_wheel_answer(alone, installed):
    assert alone(COMMAND, "arithlib", "add", "adder-certified", "9" * 50, "1") == "1" + "0" * 50
    files = [
        str(installed / "arithlib" / "weights" / f"pages-s0.{end}") for end in ("safetensors", "certificate.json")
    ]
    assert alone(COMMAND, "arithlib-check", *files) == "ACCEPTED: multiplies every pair of non-negative integers"


def test_a_certificate_of_an_installed_model_is_written_to_the_working_folder(alone, installed, tmp_path):
    inside = installed / "arithlib" / "weights" / "adder-certified.certificate.json"
    before = inside.stat().st_mtime_ns
    written = tmp_path / inside.name
    assert alone(COMMAND, "arithlib", "certify", "adder-certified").startswith(f"{written}: right at every length")
    assert inside.stat().st_mtime_ns == before and written.read_bytes() == inside.read_bytes()


def test_what_is_shipped_from_an_installed_package_leaves_it_as_it_is(alone, installed, tmp_path):
    inside = installed / "arithlib" / "weights"
    before = {path: path.stat().st_mtime_ns for path in inside.iterdir()}
    (tmp_path / "runs").mkdir()
    for end in ("json", "safetensors"):
        shutil.copy(inside / f"grokking-s0.{end}", tmp_path / "runs")
    shipped = tmp_path / "checkpoints" / "grokking" / "grokking-s0.safetensors"
    assert alone(COMMAND, "arithlib", "ship", "grokking-s0").startswith(f"{shipped}  ")
    assert {path: path.stat().st_mtime_ns for path in inside.iterdir()} == before


def test_three_small_models_travel_in_the_wheel(installed):
    weights = installed / "arithlib" / "weights"
    assert {path.stem for path in weights.glob("*.safetensors")} == {"adder-certified", "grokking-s0", "pages-s0"}
    assert sum(path.stat().st_size for path in weights.iterdir()) < WEIGHTS_BYTES


def test_what_is_tested_is_this_checkout_where_pytest_is_pointed_to_it_and_else_what_is_installed(pytestconfig):
    of_checkout = Path(arithlib.__file__).parent == ROOT / "arithlib"
    assert of_checkout == (ROOT in pytestconfig.getini("pythonpath"))


@pytest.mark.parametrize("name", arithlib.__all__)
def test_every_name_of_the_front_door_opens(name):
    assert getattr(arithlib, name).__doc__
