"""`make links` asks whether what the book links to on other hosts is there; here a server of this machine answers."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
THERE = b"<!DOCTYPE html><html><body><h1 id='found'>Here</h1></body></html>"


@pytest.fixture
def host():
    """The address of a server that has one page, /there, with one place in it, #found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/there" else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(THERE)

        def do_HEAD(self):
            self.send_response(200 if self.path == "/there" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def ask(root, text):
    """Exit status of `links` for a staged book of one page, and what it says."""
    stage = root / "book" / "_build" / "stage"
    for folder in (stage, root / "book" / "claims"):
        folder.mkdir(parents=True)
    (root / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (stage / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (stage / "_config.yml").write_text("title: Tiny\nexecute:\n  execute_notebooks: 'off'\n")
    (stage / "index.md").write_text(f"# Tiny\n\n{text}\n")
    found = os.environ | {"PYTHONPATH": str(BOOK), "NO_PROXY": "127.0.0.1"}
    answer = subprocess.run(
        [sys.executable, "-m", "bookkit", "links"],
        cwd=root,
        env=found,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return answer.returncode, answer.stdout


def test_links_that_lead_somewhere_are_no_problem(tmp_path, host):
    status, said = ask(tmp_path, f"See [this]({host}/there) and [its place]({host}/there#found).")
    assert status == 0, said
    assert (tmp_path / "book/_build/links/output.txt").read_text() == ""


@pytest.mark.parametrize("lost", ["/gone", "/there#lost"])
def test_one_that_leads_nowhere_is_named(tmp_path, host, lost):
    status, said = ask(tmp_path, f"See [this]({host}/there) and [that]({host}{lost}).")
    assert status != 0 and f"{host}{lost}" in said
