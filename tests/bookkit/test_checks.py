"""Each check of the site and of the repository catches the fault it is for, and nothing in a sound one."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookkit.build import checks
from bookkit.build.checks import check_repository, check_site

PAGE = """<!doctype html><html lang="en"><head><title>Waves</title>
<link rel="stylesheet" href="_static/book.css"><script src="_static/doctools.js"></script>HEAD</head>
<body><article><h1 id="top">Waves</h1><a href="#top">up</a> <a href="https://example.org/paper">a paper</a>
<img src="_images/wave.svg" alt="A wave that rises from zero to one">BODY</article></body></html>"""


@pytest.fixture
def site(tmp_path):
    """A sound site of two pages and a redirect."""
    folder = tmp_path / "html"
    for name in ("_static", "_images"):
        (folder / name).mkdir(parents=True)
    (folder / "_static/book.css").write_text("body { background: url(data:image/png;base64,AA==) }")
    (folder / "_static/doctools.js").write_text("// see https://example.org/manual\nlet a = 1;")
    (folder / "_images/wave.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>')
    (folder / "index.html").write_text('<meta http-equiv="Refresh" content="0; url=waves.html">')
    write(folder)
    write(folder, name="other")
    return folder


def write(folder, head="", body="", name="waves"):
    (folder / f"{name}.html").write_text(PAGE.replace("HEAD", head).replace("BODY", body))


def test_a_sound_site_has_no_problems(site):
    assert check_site(site) == []


def test_an_empty_folder_is_no_site(tmp_path):
    assert "no page" in str(check_site(tmp_path)[0])


@pytest.mark.parametrize(
    ("head", "body", "complaint"),
    [
        (
            '<script src="https://cdn.example.org/a.js"></script>',
            "",
            "https://cdn.example.org/a.js from another host",
        ),
        ('<script src="//cdn.example.org/a.js"></script>', "", "//cdn.example.org/a.js from another host"),
        ('<link rel="stylesheet" href="https://fonts.example.org/c">', "", "<link> loads"),
        ('<link rel="preconnect" href="https://fonts.example.org">', "", "<link> loads"),
        ('<script>const THEBE = "https://unpkg.example.org/thebe"</script>', "", "a script names"),
        ("<style>@import url(https://fonts.example.org/css);</style>", "", "a style loads"),
        ("", '<p style="background: url(//example.org/p.png)">p</p>', "a style loads"),
        ("", '<iframe src="https://example.org/video"></iframe>', "<iframe> loads"),
        ("", '<img srcset="https://example.org/w.png 2x" alt="A wave, twice as large">', "<img> loads"),
        ("", '<img src="_images/wave.svg">', "no real alternative text"),
        ("", '<img src="_images/wave.svg" alt="">', "no real alternative text"),
        ("", '<img src="_images/wave.svg" alt="3f2a9c0000000000000000.svg">', "no real alternative text"),
        ("", '<img src="_images/wave.svg" alt="a plot">', "no real alternative text"),
        ("", "<svg><path/></svg>", "neither aria-label nor title"),
        ("", '<a href="nowhere.html">there</a>', "nowhere.html, which is not there"),
        ("", '<a href="other.html#nowhere">there</a>', "no such anchor"),
        ("", '<a href="#nowhere">there</a>', "no such anchor"),
        ("", '<div class="output traceback"><pre>Traceback\nValueError: p</pre></div>', "ValueError: p"),
        ("", "<pre>/home/ada/arithlib/runs</pre>", "names a place on somebody's disk: /home/ada"),
        ("", "<pre>/Users/ada/arithlib/runs</pre>", "names a place on somebody's disk: /Users/ada"),
        ("", r"<pre>C:\Users\ada\runs</pre>", r"names a place on somebody's disk: C:\Users\ada"),
    ],
)
def test_a_fault_on_a_page_is_found(site, head, body, complaint):
    write(site, head, body)
    problems = check_site(site)
    assert [problem.where for problem in problems] == ["waves.html"]
    assert complaint in problems[0].what


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("book.css", "@font-face { src: url('https://fonts.example.org/f.woff') }"),
        ("doctools.js", 'import x from "https://esm.example.org/x.js"'),
        ("doctools.js", 'fetch("https://data.example.org/x.json")'),
        ("doctools.js", 'script.src = "//cdn.example.org/x.js"'),
    ],
)
def test_a_request_inside_a_style_sheet_or_script_is_found(site, name, content):
    (site / "_static" / name).write_text(content)
    (problem,) = check_site(site)
    assert problem.where == f"_static/{name}" and "from another host" in problem.what


def glued(site, shown, prose="It took {glue:text}`epochs`.", recorded="'4,500'"):
    """A chapter whose notebook glued `recorded` as epochs, and whose page shows `shown`."""
    data, note = {"application/papermill.record/text/plain": recorded}, {"scrapbook": {"name": "epochs"}}
    output = new_output("display_data", data=data, metadata=note)
    cells = [new_code_cell("glue(...)", outputs=[output]), new_markdown_cell(prose)]
    (site / "_sources").mkdir()
    nbformat.write(new_notebook(cells=cells), site / "_sources/waves.ipynb")
    write(site, body="".join(f'<span class="pasted-text">{text}</span>' for text in shown))
    return [problem.what for problem in check_site(site)]


@pytest.mark.parametrize(("shown", "recorded"), [("4,500", "'4,500'"), ("64\N{NO-BREAK SPACE}%", "'64 %'")])
def test_a_number_in_prose_that_reads_as_it_was_written_is_no_problem(site, shown, recorded):
    assert glued(site, [shown], recorded=recorded) == []


@pytest.mark.parametrize(
    ("shown", "changes", "complaint"),
    [
        (["(4, 500)"], {}, "shows '(4, 500)' for the glued text 'epochs', which is '4,500'"),
        (["(4, 500)"], {"recorded": "4,500"}, "shows '(4, 500)' for the glued text 'epochs', which is '4,500'"),
        (["0.1"], {"recorded": "0.10"}, "which is '0.10'"),
        ([], {}, "shows 0 glued texts where the notebook has 1"),
        (["4,500"], {"prose": "{glue:text}`steps`"}, "the glued text 'steps', which is None"),
    ],
)
def test_a_number_garbled_on_its_way_into_prose_is_found(site, shown, changes, complaint):
    (problem,) = glued(site, shown, **changes)
    assert complaint in problem


def test_a_request_inside_a_drawing_is_found(site):
    (site / "_images/wave.svg").write_text('<svg><image href="https://example.org/p.png"/></svg>')
    assert "from another host" in check_site(site)[0].what


def test_a_place_in_a_downloadable_notebook_is_found(site):
    (site / "_sources").mkdir()
    (site / "_sources/waves.ipynb").write_text('{"cells": [], "path": "/home/ada/arithlib"}')
    (problem,) = check_site(site)
    assert problem.where == "_sources/waves.ipynb" and "/home/ada" in problem.what


def test_the_place_of_this_very_checkout_is_found(site):
    root = Path(__file__).parents[2]
    write(site, body=f"<pre>{root}/runs</pre>")
    assert "names a place" in str(*check_site(site))


def test_a_script_that_loads_on_every_page_is_found(site):
    (site / "_static/explorer.js").write_text("let weights = [];")
    script = '<script src="_static/explorer.js"></script>'
    write(site, script)
    assert check_site(site) == []  # on one page it may
    write(site, script, name="other")
    assert [problem.where for problem in check_site(site)] == ["_static/explorer.js"]


def test_a_page_that_weighs_too_much_is_found(site, monkeypatch):
    monkeypatch.setattr(checks, "PAGE_BYTES", 2000)
    assert check_site(site) == []
    (site / "_images/wave.svg").write_text("<svg>" + " " * 2000 + "</svg>")
    assert {problem.where for problem in check_site(site)} == {"waves.html", "other.html"}
    assert "weighs" in check_site(site)[0].what


@pytest.fixture
def repository(tmp_path):
    for name in ("notebooks", "book", "checkpoints"):
        (tmp_path / name).mkdir()
    (tmp_path / "README.md").write_text("Run `make book`.")
    return tmp_path


def commit(repository, source, **fields):
    notebook = new_notebook(cells=[new_code_cell(source, **fields)])
    nbformat.write(notebook, repository / "notebooks" / "10_waves.ipynb")


GOOD_FIGURE = '%matplotlib inline\nfigure("wave", fig, data={}, alt="A wave that rises from zero", caption="Wave.")'


def test_a_sound_repository_has_no_problems(repository):
    commit(repository, GOOD_FIGURE + "\nother = plt.figure()")
    assert check_repository(repository) == []


@pytest.mark.parametrize(
    "fields", [{"execution_count": 1}, {"outputs": [new_output("stream", name="stdout", text="1")]}]
)
def test_a_committed_notebook_with_outputs_is_found(repository, fields):
    commit(repository, "1", **fields)
    assert "committed with outputs" in str(*check_repository(repository))


@pytest.mark.parametrize("call", ['figure("wave", fig, caption="Wave.")', 'chapter.figure("wave", fig, alt="wave")'])
def test_a_figure_without_alternative_text_is_found(repository, call):
    commit(repository, call)
    assert "needs alt text" in str(*check_repository(repository))


def test_checkpoints_beyond_the_budget_are_found(repository, monkeypatch):
    commit(repository, GOOD_FIGURE)
    monkeypatch.setattr(checks, "CHECKPOINT_BYTES", 10)
    (repository / "checkpoints/a.safetensors").write_bytes(b"0" * 6)
    assert check_repository(repository) == []
    (repository / "checkpoints/b.safetensors").write_bytes(b"0" * 6)
    assert "checkpoints" in str(*check_repository(repository))


def test_a_place_in_prose_is_found(repository):
    (repository / "book/index.md").write_text("Look in /home/ada/arithlib.")
    assert "/home/ada" in str(*check_repository(repository))


def test_the_command_fails_when_there_are_problems(tmp_path, capsys):
    assert checks.main([str(tmp_path)]) == 1
    assert "no page" in capsys.readouterr().err
