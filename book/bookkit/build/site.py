"""From staged pages to the site: Sphinx, on all cores, reads what changed and writes everything.

    python -m bookkit.build.site            the site of the book; any warning fails
    python -m bookkit.build.site CHAPTER    the page of one executed chapter, for itself

Sphinx repeats no warning of a page that it need not read again. So what it remembers of the pages is kept only after
a build without any warning, and only as long as nothing changes beside the pages themselves. All pages are written in
every build, for there their references are resolved: one that another page broke, or whose number another page moved,
is noticed wherever it stands.
"""

import argparse
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from jupyter_book.sphinx import build_sphinx

from bookkit.build import provenance
from bookkit.build.digest import tree_digest
from bookkit.build.project import Project
from bookkit.build.staging import StagingError, stage_page

# What a page may depend on without saying so: settings, contents with the titles of chapters, versions, works cited,
# the code that is described.
STAGED = ["book/_build/stage/_config.yml", "book/_build/stage/_toc.yml"]
GROUND = [*STAGED, "requirements.txt", "book/*.bib", "book/api/*"]
GROUND += ["arithlib/**/*.py", "book/bookkit/**/*.py", "notebooks/**/*.py"]
# How Jupyter Book's page at the top of the site begins, where the first page lies deeper.
LEADS_ON = '<meta http-equiv="Refresh"'
# The theme's script of 2,000 icons, one of them in it (its name, other names, its strokes), and a use of one.
ICONS = "_static/scripts/fontawesome.js"
ICON = re.compile(r'"?([a-z0-9-]+)"?:\[\d+,\d+,\[([^]]*)\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?')
ICONS_ASKED = re.compile(r"(fontawesome\.js\?digest=)\w+")
USED = re.compile(r"\bfa-([a-z0-9-]+)")


def build_site(project: Project) -> int:
    """Make the site from the staged pages; 0 if there was no warning."""
    doctrees = project.build / ".doctrees"
    clean = doctrees / "clean"  # there after a build without a warning; says on which ground
    ground = tree_digest(project.root, GROUND)
    if not clean.is_file() or clean.read_text() != ground:
        shutil.rmtree(doctrees, ignore_errors=True)
        shutil.rmtree(project.site, ignore_errors=True)
    clean.unlink(missing_ok=True)
    status = sphinx(project.build / "stage", project.site, doctrees, strict=True, nitpicky=True)
    if status == 0:
        provenance.publish(project)
        clean.write_text(ground)
    return status


def build_page(project: Project, name: str) -> int:
    """Make a site of one executed chapter, in which references to other chapters are plain text."""
    folder = project.page(name)
    pages, site, doctrees = stage_page(project, name), folder / "html", folder / ".doctrees"
    for made in (site, doctrees):
        shutil.rmtree(made, ignore_errors=True)
    return sphinx(pages, site, doctrees, strict=False, suppress_warnings=["ref", "myst.xref_missing"])


def check_links(project: Project) -> int:
    """Ask for every address on another host; 0 if all are there. What was found is written to _build/links."""
    found = project.build / "links"
    return sphinx(project.build / "stage", found, found / ".doctrees", strict=False, builder="linkcheck")


def sphinx(pages: Path, site: Path, doctrees: Path, strict: bool, builder: str = "html", **settings) -> int:
    """Make `site` from the folder `pages`; 0 if all went well, which takes no warning where it is strict.

    doctrees: what Sphinx remembers of the pages. settings: of Sphinx, besides those of _config.yml.
    """
    for copied in ("_downloads", "_images"):  # every page brings its own again; those of earlier drawings would stay
        shutil.rmtree(site / copied, ignore_errors=True)
    answer = build_sphinx(
        pages,
        site,
        noconfig=True,
        path_config=pages / "_config.yml",
        builder=builder,
        confoverrides={"external_toc_path": str(pages / "_toc.yml"), "latex_individualpages": False, **settings},
        doctreedir=doctrees,
        force_all=True,
        quiet=True,
        warningiserror=strict,
        keep_going=True,
        # Sphinx hands each process one lot of pages, and lots differ: with two a core, few wait for others.
        jobs=2 * (os.cpu_count() or 1),
    )
    name_icon(site)
    trim_icons(site)
    return answer if isinstance(answer, int) else 2  # an exception, which is on the screen already


def name_icon(site: Path) -> None:
    """Let the page that leads on to the first one name the site's icon; else a browser may ask the host for one."""
    home, icon = site / "index.html", next((site / "_static").glob("favicon.*"), None)
    if icon and home.is_file() and (page := home.read_text(encoding="utf-8")).lstrip().startswith(LEADS_ON):
        home.write_text(f'<link rel="icon" href="_static/{icon.name}" />{page}', encoding="utf-8")


def trim_icons(site: Path) -> None:
    """Leave of the theme's icons those that a page or another script names: of 1.5 MB for every reader, 0.1."""
    if not (icons := site / ICONS).is_file():
        return
    naming = [*site.rglob("*.html"), *(path for path in site.glob("_static/**/*.*js") if path != icons)]
    used = {name for path in naming for name in USED.findall(path.read_text(encoding="utf-8"))}
    script = ICON.sub(
        lambda icon: icon[0] if used & {icon[1], *re.findall(r'"([^"]*)"', icon[2])} else "",
        icons.read_text(encoding="utf-8"),
    )
    icons.write_text(re.sub(r"\n?//# sourceMappingURL=.*", "", script), encoding="utf-8")
    icons.with_suffix(".js.map").unlink(missing_ok=True)
    # Pages ask for it by the theme's digest: a browser that has the icons of an earlier build would keep them.
    digest = hashlib.sha256(icons.read_bytes()).hexdigest()[:20]
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(ICONS_ASKED.sub(rf"\g<1>{digest}", text), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bookkit.build.site", description=__doc__.split("\n")[0])
    parser.add_argument("chapter", nargs="?", help="build the page of this chapter alone")
    chapter = parser.parse_args(arguments).chapter
    project = Project.find()
    try:
        return build_page(project, chapter) if chapter else build_site(project)
    except StagingError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
