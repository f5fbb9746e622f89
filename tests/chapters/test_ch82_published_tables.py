"""The published tables: every run at the published width has its row, its cost, and is trained on request."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import presets
from arithlib import checkpoints, experiments
from arithlib.checkpoints import Trained
from chapters import ch82_published_tables
from chapters.ch82_published_tables import (
    here,
    hops,
    networks,
    percent,
    petaflops,
    show_large,
    side_by_side,
    sums,
    tables,
    teraflops,
)

NOTEBOOKS = Path(presets.__file__).parents[1]
ROWS = [row for rows in tables().values() for row in rows]

# What the kernel of a test runs first: every run for a GPU that is not here keeps its name and its task, and becomes
# tiny.
TINY = """
from dataclasses import replace
from pathlib import Path

from arithlib import checkpoints, experiments
from arithlib.experiments import abacus

abacus.CELL = 1
checkpoints.local_folder = lambda: Path({folder!r})
for run in experiments.match("*"):
    if run.scale == "gpu" and hasattr(run.model, "n_loops") and not checkpoints.is_here(run.name):
        model = replace(run.model, d_model=8, n_heads=2, d_mlp=8, n_layers=1, n_loops=min(run.model.n_loops, 2))
        steps = dict(steps=1, evaluate_every=1, batch_size=len(getattr(run, "counts", "1")), evaluation_count=4)
        optimizer = replace(run.optimizer, schedule="constant", warmup_steps=1)
        experiments.EXPERIMENTS[run.name] = replace(run, model=model, optimizer=optimizer, **steps)
"""

# Before that, where no run for a GPU is to be here.
UNSHIPPED = """
from arithlib import checkpoints

shipped = checkpoints.find
checkpoints.find = lambda name: None if "-gpu-" in name else shipped(name)
"""


def test_every_run_at_the_published_width_is_in_one_row():
    listed = [run.name for row in ROWS for run in experiments.match(row.large)]
    large = [run.name for run in experiments.match("*") if run.scale == "gpu"]
    assert sorted([*listed, "grokking-gpu"]) == sorted(large)  # that one is of no published table


def test_the_small_runs_are_another_kind_of_the_same_task():
    for row in ROWS:
        if row.small is not None:
            (large, *_), small = experiments.match(row.large), experiments.match(row.small)
            assert {run.scale for run in small} == {"cpu"}
            assert {type(run) for run in small} == {type(large)}


@pytest.mark.parametrize("name", ["depth-gpu-hop16-3x2-s0", "graphs-gpu-2x4-s0"])
def test_the_cost_of_a_training_by_hand(name):
    """Tokens x (12 d² a layer, attention over all places, the last matrix), two operations each, thrice."""
    run = experiments.get(name)
    model = run.build()
    shapes = [tokens.shape for tokens, _ in run.batch(run.generator(0))]
    operations = 0
    for texts, places in shapes:
        d, tokens = run.model.d_model, texts * places
        layer = tokens * (4 * d * d + 2 * d * run.model.d_mlp) + 2 * texts * places**2 * d
        operations += 2 * (run.model.n_loops * run.model.n_layers * layer + tokens * model.unembedding.weight.numel())
    assert petaflops(run) == pytest.approx(3 * operations * run.steps / 1e15, rel=0.01)


def planted(name, **history):
    return Trained(experiments.get(name), None, {key: np.array(value) for key, value in history.items()}, {})


def test_the_column_that_a_table_prints():
    adder = planted("abacus-gpu-s0", diagonal=[[0.1] * 99 + [0.25] + [0.1] * 19])
    products = planted("abacus-gpu-times-s0", exact_match_by_length=[[0.1, 0.2], [0.9, 0.3]])
    sums = planted("depth-gpu-add-1x12-s0", accuracy_by_count=[[0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7]])
    assert sorted(sums.experiment.counts + sums.experiment.further)[5] == 32
    twice = planted("depth-gpu-hop16-2x3-s0", accuracy_by_loops=[[[0.1, 0.3], [0.2, 0.4], [0.8, 0.9], [1, 1]]])
    assert [percent(run) for run in (adder, products, sums, twice)] == pytest.approx([25, 30, 50, 85])


def test_an_adder_with_weights_is_asked_the_longest_sums_on_trained_rows(monkeypatch):
    """Both numbers five times as long as in training, under an offset that leaves a trained row for every digit."""
    asked = []

    def grid(model, task, rows, columns, *, count, offsets):
        asked.append((rows, columns, offsets.value))
        return np.array([[0.4]])

    monkeypatch.setattr("chapters.ch82_published_tables.length_grid", grid)
    assert percent(planted("abacus-cpu-s1")) == pytest.approx(40)
    assert asked == [([100], [100], 19)]  # row 119 is the last that training showed on an operand


def test_a_run_has_the_rate_of_the_deepest_measured_one_of_its_width_or_the_next_below():
    rates = {"depth-gpu-hop16-6x1-s0": 3, "depth-gpu-hop16-1x1-s0": 1, "abacus-gpu-s0": 50}
    assert teraflops(experiments.get("graphs-gpu-8x1-s0"), rates) == 3  # width 128
    assert teraflops(experiments.get("depth-gpu-add-1x12-s0"), rates) == 3  # 256
    assert teraflops(experiments.get("abacus-gpu-1x16-s0"), rates) == 50  # 1024


def test_a_large_run_stands_beside_the_small_ones_once_it_is_here(monkeypatch, capsys):
    """In the chapters of its table, and no table where there is none."""
    name = "depth-gpu-hop16-1x6-s0"
    run = planted(name, accuracy_by_loops=np.linspace(0.4, 0.9, 6)[None])
    asked = []

    def trained(pattern, train=""):
        asked.append(train)
        return [run] if pattern and pattern.startswith("depth-gpu-hop16-1x6") else []

    monkeypatch.setattr(ch82_published_tables, "here", trained)
    [(title, rows)] = hops(16).items()
    table, runs = side_by_side(title, rows)
    assert runs == [run] and set(asked) == {""}
    assert sorted(row[-1] for row in table.rows) == ["90.0 (1)"] + (len(rows) - 1) * ["not yet"]
    assert table.caption == title and "minutes" not in table.columns
    assert show_large(sums() | hops(16) | hops(32), train=False) == [run] and set(asked) == {""}
    printed = capsys.readouterr().out
    assert printed.splitlines() == [
        'Sums of 32 numbers: none yet; preset = "gpu" trains them',
        *repr(table).splitlines(),
        '32 hops among 256 tokens: none yet; preset = "gpu" trains them',
    ]
    show_large(sums(), train=True)
    assert "*" in asked


def test_a_stack_of_networks_stands_beside_the_small_ones_once_it_is_here(monkeypatch):
    """Two of three have learned: one at the second evaluation, one at the third."""
    small = planted("grokking-s0", step=[0, 50, 100], test_accuracy=[0.1, 0.995, 1.0])
    stack = planted("grokking-gpu", step=[0, 100, 200], test_accuracy=[[0, 0, 0], [0.5, 1, 0.2], [1, 1, 0.4]])
    known = {"grokking-s?": [small], "grokking-gpu": []}
    monkeypatch.setattr(ch82_published_tables, "here", lambda pattern, train="": known[pattern])
    table, runs = networks()
    assert runs == [] and table.rows[1][1] == "not yet"
    assert [str(cell) for cell in table.rows[0]] == ["on a core", "1", "100.00 (100.00)", "50"]
    known["grokking-gpu"] = [stack]
    table, runs = networks()
    assert runs == [stack]
    assert [str(cell) for cell in table.rows[1]] == ["large", "3", "80.00 (40.00)", "200"]


@pytest.mark.parametrize("chapter", ["40_adding_many_numbers", "41_hopping", "42_grade_school_graphs"])
def test_the_chapters_on_loops_take_the_preset(chapter):
    cells = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in cells}
    assert 'preset = "cpu"' in sources["cell-02"] and 'train=preset == "gpu")' in sources["published-width"]


def test_nothing_is_trained_unasked(tmp_path, monkeypatch):
    for folder in ("shipped_folder", "local_folder"):
        monkeypatch.setattr(checkpoints, folder, lambda: tmp_path)
    monkeypatch.setattr(checkpoints, "make", lambda name, **_: pytest.fail(f"{name} was trained"))
    assert here(None) == [] == here("abacus-gpu-s?")


@pytest.fixture
def papermill(tmp_path, monkeypatch):
    """Runs a chapter with tiny models; what it trained, and what it printed."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("BOOKKIT_RECORDS", str(tmp_path / "records"))

    def run(chapter, before="", **parameters):
        startup = tmp_path / "ipython/profile_default/startup"
        startup.mkdir(parents=True)
        (startup / "tiny.py").write_text(before + TINY.format(folder=str(tmp_path / "runs")), encoding="utf-8")
        command = [sys.executable, "-m", "papermill", f"{chapter}.ipynb", str(tmp_path / "out.ipynb")]
        command += [word for name, value in parameters.items() for word in ("-p", name, str(value))]
        done = subprocess.run(command, cwd=NOTEBOOKS, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        cells = json.loads((tmp_path / "out.ipynb").read_text(encoding="utf-8"))["cells"]
        printed = json.dumps([cell.get("outputs") for cell in cells])
        return sorted(path.stem for path in (tmp_path / "runs").glob("*.json")), printed

    return run


def test_papermill_trains_what_is_missing_with_preset_gpu(papermill):
    """As the chapter says it, with tiny models: of each table the smallest, and one on two operands."""
    found, printed = papermill("82_at_the_published_size", preset="gpu", only="*-gpu-*1x1*-s0")
    trained = [
        "abacus-gpu-1x16-s0", "depth-gpu-add-1x1-s0", "depth-gpu-add-1x12-s0", "depth-gpu-hop16-1x1-s0",
        "depth-gpu-hop32-1x1-s0", "graphs-gpu-1x1-s0",
    ]  # fmt: skip
    assert found == trained
    for name in trained:
        assert f"Training {name} (" in printed
    missing = [row for row in ROWS if not any(checkpoints.is_here(run.name) for run in experiments.match(row.large))]
    assert printed.count("<td>not yet</td>") == len(missing) - len(trained) + 1  # the stack of networks


def test_papermill_puts_the_questions_of_chapter_34_to_the_large_adder_with_preset_gpu(papermill):
    """One that is not here, and is tiny; of its other models those that are."""
    few = dict(base_seeds=2, seeds=2, long_seeds=1, long_sums=2)
    found, printed = papermill("34_what_makes_it_work", before=UNSHIPPED, preset="gpu", **few)
    assert found == ["abacus-gpu-s0"] and "Training abacus-gpu-s0 (" in printed


@pytest.mark.parametrize("preset", ["cpu", "gpu"])
def test_the_adder_of_chapters_31_to_34_has_both_sizes(preset):
    for seed in range(3):
        assert experiments.get(f"abacus-{preset}-s{seed}").scale == preset
