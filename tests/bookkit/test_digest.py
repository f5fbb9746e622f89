"""A notebook runs again when, and only when, something it is made from has other content."""

import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookkit.build.digest import notebook_digest, reached_modules, syntax, tree_digest

SETTINGS = {"threads": 1, "parameters": {"steps": 5}, "checkpoints": ["wave-*"]}

FILES = {
    "arithlib/__init__.py": '__version__ = "1"\n',
    "arithlib/circles.py": '"""Circles."""\nfrom arithlib import fourier\n\ncircle = fourier.basis\n',
    "arithlib/fourier.py": "def basis():\n    from .tasks.modular import residues\n\n    return residues\n",
    "arithlib/tasks/__init__.py": "",
    "arithlib/tasks/modular.py": "residues = 113\n",
    "arithlib/petals.py": "petals = 5\n",
    "arithlib/book.mplstyle": "font.size: 11\n",
    "checkpoints/wave-0.safetensors": "weights",
    "checkpoints/wave-0.json": "{}",
    "checkpoints/other.safetensors": "other weights",
    "requirements.txt": "# numbers\nnumpy==2.4.6\ntorch==2.13.0\n",
    "claims.yaml": """\
- {id: M-01, chapter: 10_waves, value: 1}
- {id: M-02, chapter: null, value: 1}
- {id: N-07, chapter: null, value: 1}
""",
}


def notebook(**changes):
    code = changes.get("code", 'from arithlib.circles import circle\nprint(circle(), published("N-07"))')
    result = new_notebook(
        cells=[
            new_markdown_cell(changes.get("prose", "# Waves"), id="a"),
            new_code_cell("steps = 3", id="b", metadata={"tags": ["parameters"]}),
            new_code_cell(code, id="c", metadata=changes.get("metadata", {})),
        ]
    )
    if "output" in changes:
        result.cells[2].outputs = [new_output("stream", text=changes["output"])]
        result.cells[2].execution_count = 7
        result.metadata["kernelspec"] = {"name": "elsewhere", "display_name": "Elsewhere"}
    return result


@pytest.fixture
def root(tmp_path):
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    write_notebook(tmp_path)
    return tmp_path


def write_notebook(root, **changes):
    (root / "notebooks").mkdir(exist_ok=True)
    nbformat.write(notebook(**changes), root / "notebooks" / "10_waves.ipynb")


def digest(root, settings=SETTINGS):
    return notebook_digest(root, "10_waves", settings)


def test_modules_are_followed_through_each_other_and_into_functions(root):
    reached = reached_modules(root, [syntax(root / "arithlib" / "circles.py")])
    assert list(reached) == ["arithlib", "arithlib.fourier", "arithlib.tasks", "arithlib.tasks.modular"]


@pytest.mark.parametrize(
    "name, content",
    [
        ("arithlib/circles.py", FILES["arithlib/circles.py"].replace("fourier.basis", "fourier.basis()")),
        ("arithlib/fourier.py", FILES["arithlib/fourier.py"].replace("return residues", "return -residues")),
        ("arithlib/tasks/modular.py", "residues = 59\n"),
        ("arithlib/tasks/__init__.py", "import torch\n"),
        ("arithlib/book.mplstyle", "font.size: 12\n"),
        ("checkpoints/wave-0.safetensors", "other"),
        ("checkpoints/wave-0.json", '{"steps": 1}'),
        ("checkpoints/wave-1.safetensors", "one more seed"),
        ("requirements.txt", FILES["requirements.txt"].replace("2.13.0", "2.13.1")),
        ("claims.yaml", FILES["claims.yaml"].replace("10_waves, value: 1", "10_waves, value: 2")),
        (
            "claims.yaml",
            FILES["claims.yaml"].replace("N-07, chapter: null, value: 1", "N-07, chapter: null, value: 2"),
        ),
    ],
)
def test_it_runs_again_when_something_it_reaches_changes(root, name, content):
    before = digest(root)
    (root / name).write_text(content)
    assert digest(root) != before


@pytest.mark.parametrize(
    "name, content",
    [
        ("arithlib/petals.py", "petals = 6\n"),
        (
            "arithlib/circles.py",
            '"""Circles, described at length."""\n' + FILES["arithlib/circles.py"].partition("\n")[2],
        ),
        ("arithlib/tasks/modular.py", "# how many there are\nresidues = (113)\n"),
        ("checkpoints/other.safetensors", "changed"),
        ("requirements.txt", "torch==2.13.0\nnumpy==2.4.6  # numbers\n"),
        (
            "claims.yaml",
            FILES["claims.yaml"].replace("M-02, chapter: null, value: 1", "M-02, chapter: null, value: 2"),
        ),
    ],
)
def test_it_does_not_run_again_for_what_it_does_not_reach_or_compute(root, name, content):
    before = digest(root)
    assert (root / name).read_text() != content
    (root / name).write_text(content)
    assert digest(root) == before


def test_time_stamps_do_not_count(root):
    before = digest(root)
    for name in FILES:
        os.utime(root / name, (1, 1))
    assert digest(root) == before


@pytest.mark.parametrize(
    "changes", [{"code": "print(1)"}, {"prose": "# Waves, again"}, {"metadata": {"tags": ["hide-input"]}}]
)
def test_it_runs_again_when_its_cells_change(root, changes):
    before = digest(root)
    write_notebook(root, **changes)
    assert digest(root) != before


def test_imports_behind_a_magic_are_seen(root):
    write_notebook(root, code="%%time\nfrom arithlib.petals import petals\nprint(petals)")
    before = digest(root)
    (root / "arithlib" / "petals.py").write_text("petals = 6\n")
    assert digest(root) != before


@pytest.mark.parametrize("changes", [{"output": "113"}, {"metadata": {"scrolled": True}}])
def test_stored_outputs_and_other_metadata_do_not_count(root, changes):
    before = digest(root)
    write_notebook(root, **changes)
    assert digest(root) == before


def test_parameters_count_and_threads_do_not(root):
    before = digest(root)
    assert digest(root, SETTINGS | {"threads": 2}) == before
    assert digest(root, SETTINGS | {"parameters": {"steps": 6}}) != before


def test_a_tree_digest_sees_contents_and_names_but_not_what_was_built(root):
    def pages():
        return tree_digest(root, ["book/**/*"], without=root / "book" / "_build")

    (root / "book" / "_build").mkdir(parents=True)
    (root / "book" / "index.md").write_text("# Book")
    first = pages()
    (root / "book" / "_build" / "site.html").write_text("built")
    assert pages() == first
    (root / "book" / "index.md").rename(root / "book" / "intro.md")
    renamed = pages()
    (root / "book" / "intro.md").write_text("# Book, revised")
    assert len({first, renamed, pages()}) == 3
