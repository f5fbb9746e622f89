"""What the browser tests share beside the fixtures in conftest.py: screens, and a server for a folder."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder: Path):
    """Serve a folder on this machine for as long as the context lasts; gives its address, with a final slash."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
