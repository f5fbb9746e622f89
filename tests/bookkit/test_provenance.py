"""provenance.json says what a site rests on, and a site or a checkout that differs from it is found out."""

import hashlib
import json
import shutil

import pytest
from tiny_book import KEY, make_tiny_book

from bookkit.build import commands, provenance, staging
from bookkit.build.project import Project

CHAPTER = "10_waves"
PAGES = ("index.html", f"notebooks/{CHAPTER}.html")


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A checkout with a shipped checkpoint, and its published site as far as provenance looks at it."""
    monkeypatch.setattr(staging.pages, "scoreboard_markdown", lambda *_: "# Scoreboard\n")
    build = make_tiny_book(tmp_path)
    (tmp_path / "checkpoints" / "wave").mkdir(parents=True)
    (tmp_path / "checkpoints" / "wave" / "wave-s0.safetensors").write_bytes(b"weights")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "speed.json").write_text("[3]")
    name_inputs(tmp_path, checkpoints=["wave-s[0-9]"], files=["benchmarks/*.json"])
    claim = {"id": "W-01", "verdict": "reproduced", "n": 3, "scale": "cpu", "measured": {"height": [1.0, 1.0, 1.0]}}
    (build / "records" / CHAPTER / "claims").mkdir()
    (build / "records" / CHAPTER / "claims" / "W-01.json").write_text(json.dumps(claim))
    (tmp_path / "tests" / "baselines").mkdir(parents=True)
    (tmp_path / "tests" / "baselines" / "verdicts.json").write_text(json.dumps({f"{CHAPTER}/W-01": "reproduced"}))
    staged = staging.stage(tmp_path, build)
    project = Project(tmp_path)
    (project.site / "_downloads" / "0123").mkdir(parents=True)
    (project.site / "notebooks").mkdir()
    for page in PAGES:
        (project.site / page).write_text(f"<html>{page}</html>")
    provenance.publish(project)
    for kind in ("json", "svg"):
        shutil.copy(staged / "figures" / f"{KEY}.{kind}", project.site / "_downloads" / "0123")
    return project


def name_inputs(root, **patterns):
    for path in (root / "notebooks" / f"{CHAPTER}.ipynb", root / "book" / "_build" / "executed" / f"{CHAPTER}.ipynb"):
        content = json.loads(path.read_text())
        content["metadata"]["bookkit"] = patterns
        path.write_text(json.dumps(content))


def test_it_says_of_a_chapter_what_it_was_made_from_and_how(book):
    stated = json.loads((book.site / provenance.FILE).read_text())
    chapter = stated["chapters"][CHAPTER]
    assert chapter["seconds"] == 93.4 and chapter["parameters"] == {"retrain": True} and chapter["device"] == "cpu"
    assert chapter["checkpoints"] == {"checkpoints/wave/wave-s0.safetensors": hashlib.sha256(b"weights").hexdigest()}
    assert chapter["files"] == {"benchmarks/speed.json": hashlib.sha256(b"[3]").hexdigest()}
    assert set(stated["pages"]) == set(PAGES)
    assert set(chapter["figures"]) == {KEY} and set(chapter["figures"][KEY]) == {"json", "svg"}
    assert chapter["claims"] == {"W-01": {"verdict": "reproduced", "n": 3, "scale": "cpu"}}
    assert stated["packages"]["numpy"] and stated["machine"]["cores"]


def test_what_concerns_one_chapter_stands_apart_and_says_the_same(book):
    whole, own = book.site / provenance.FILE, book.site / "provenance" / f"{CHAPTER}.json"
    stated, part = json.loads(whole.read_text()), json.loads(own.read_text())
    page = stated["pages"][f"notebooks/{CHAPTER}.html"]
    assert part == {"commit": stated["commit"], "page": page} | stated["chapters"][CHAPTER]
    own.write_text(own.read_text().replace("reproduced", "refuted"))
    assert problem(book) == f"{CHAPTER}: provenance/{CHAPTER}.json does not repeat what provenance.json says"
    own.rename(own.with_stem("another"))
    assert provenance.verify(book, book.site) == [
        f"{CHAPTER}: provenance/{CHAPTER}.json does not repeat what provenance.json says",
        "provenance/another.json: provenance.json has no such chapter",
    ]


def test_a_site_that_keeps_to_it_has_no_problem(book, capsys, monkeypatch):
    assert provenance.verify(book, book.site) == []
    monkeypatch.setattr(Project, "find", classmethod(lambda cls: book))
    assert commands.verify([]) == 0 and "rests on what is in this checkout" in capsys.readouterr().out
    assert commands.verify([str(book.root)]) == 1 and "build the book first" in capsys.readouterr().err


def problem(book):
    (found,) = provenance.verify(book, book.site)
    return found


@pytest.mark.parametrize("kind", ["json", "svg"])
def test_a_figure_that_was_exchanged_or_lost_is_found(book, kind):
    offered = book.site / "_downloads" / "0123" / f"{KEY}.{kind}"
    offered.write_text(offered.read_text() + " ")
    assert problem(book) == f"{CHAPTER}: the site's {KEY}.{kind} is not what the chapter made"
    offered.unlink()
    assert problem(book) == f"{CHAPTER}: the site's {KEY}.{kind} is not what the chapter made"


def test_other_weights_are_found(book):
    (book.root / "checkpoints" / "wave" / "wave-s0.safetensors").write_bytes(b"others")
    assert "wave-s0.safetensors of this checkout is another" in problem(book)
    (book.root / "checkpoints" / "wave" / "wave-s0.safetensors").unlink()
    assert "only one of the two has it" in problem(book)


def test_another_file_that_a_chapter_reads_is_found(book):
    (book.root / "benchmarks" / "speed.json").write_text("[4]")
    assert problem(book).startswith(f"{CHAPTER}: benchmarks/speed.json of this checkout is another")
    (book.root / "benchmarks" / "speed.json").unlink()
    assert "benchmarks/speed.json of this checkout is another, or only one of the two has it" in problem(book)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_was_changed_lost_or_added_is_found(book, page):
    said = f"{page}: this page is not the one that was built, or only one of the two is there"
    (book.site / page).write_text("<html>another</html>")
    assert problem(book) == said
    (book.site / page).unlink()
    assert problem(book) == said
    (book.site / page).write_text(f"<html>{page}</html>")
    (book.site / "notebooks" / "more.html").touch()
    assert problem(book).startswith("notebooks/more.html: ")


@pytest.mark.parametrize(
    "damage",
    [
        lambda stated: stated.pop("pages"),
        lambda stated: stated["chapters"][CHAPTER].pop("files"),
        lambda stated: stated["chapters"].update({CHAPTER: None}),
        lambda stated: stated.update(chapters=[]),
    ],
)
def test_one_that_is_damaged_or_of_an_older_book_is_refused_in_words(book, damage, capsys, monkeypatch):
    stated = json.loads((book.site / provenance.FILE).read_text())
    damage(stated)
    (book.site / provenance.FILE).write_text(json.dumps(stated))
    monkeypatch.setattr(Project, "find", classmethod(lambda cls: book))
    assert commands.verify([]) == 1
    assert "html/provenance.json is damaged" in capsys.readouterr().err


def test_another_text_of_a_chapter_and_another_verdict_are_found(book):
    path = book.notebook(CHAPTER)
    path.write_text(path.read_text().replace("A wave", "The wave"))
    assert problem(book) == f"{CHAPTER}: the chapter of this checkout is another"
    path.write_text(path.read_text().replace("The wave", "A wave"))
    stated = json.loads((book.site / provenance.FILE).read_text())
    stated["chapters"][CHAPTER]["claims"]["W-01"]["verdict"] = "refuted"
    provenance.write(book.site, stated)
    assert problem(book) == (
        f"{CHAPTER}: claim W-01 is 'refuted' on the site, and 'reproduced' in the baselines here"
    )


def test_a_chapter_too_many_or_too_few_is_found(book):
    stated = json.loads((book.site / provenance.FILE).read_text())
    stated["chapters"]["99_more"] = stated["chapters"].pop("00_opening")
    provenance.write(book.site, stated)
    assert sorted(provenance.verify(book, book.site)) == [
        "00_opening: the site has no such chapter", "99_more: this checkout has no such chapter",
        "provenance/00_opening.json: provenance.json has no such chapter",
    ]  # fmt: skip
