"""Where the book's sources are published: found, not typed, so that no button leads nowhere."""

import os
import re
import subprocess
from pathlib import Path

import yaml

# Hosts whose pages the theme can address; the first is the only one that notebooks are launched from.
HOSTS = ("github.com", "gitlab.com", "bitbucket.org")
BUTTONS = ("use_repository_button", "use_issues_button", "use_edit_page_button", "use_source_button")
# https://user:secret@host/owner/name.git, ssh://git@host:22/owner/name, git@host:owner/name
REMOTE = re.compile(r"(?:\w+://)?(?:[^@/]+@)?([\w.-]+)(?::\d+(?=/))?[:/](.+?)(?:\.git)?/?")


def repository(root: Path) -> str | None:
    """Web address of the repository: `url` under `repository` in _config.yml, or else that of git's remote `origin`.

    None where neither is on a public host; what a remote's address says of users and passwords is left out.
    """
    named = (_config(root).get("repository") or {}).get("url")
    found = REMOTE.fullmatch(named or _origin(root))
    return f"https://{found[1]}/{found[2]}" if found and found[1] in HOSTS else None


def config(root: Path) -> bytes:
    """_config.yml with the repository's address; without one, also without the buttons that would lead there.

    Where the site will lie is `baseurl` under `html`, or else the environment's BOOK_SITE, or nobody's knowledge.
    """
    settings, address = _config(root), repository(root)
    if site := os.environ.get("BOOK_SITE"):
        settings["html"] = {"baseurl": site} | settings.get("html", {})
    if address:
        settings["repository"] = (settings.get("repository") or {}) | {"url": address}
    else:
        settings.pop("repository", None)
        for button in BUTTONS:
            settings.get("html", {}).pop(button, None)
    if not (address or "").startswith(f"https://{HOSTS[0]}/"):
        settings.pop("launch_buttons", None)
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True).encode()


def clone(root: Path) -> str:
    """How to get a copy, as markdown: a command where the repository has an address, else words."""
    if address := repository(root):
        folder = address.rpartition("/")[2]
        return f"Get a copy, and change into its folder:\n\n```console\n$ git clone {address}\n$ cd {folder}\n```"
    return "Unpack or clone the repository, and change into its folder."


def _config(root: Path) -> dict:
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")) or {}


def _origin(root: Path) -> str:
    """Of the checkout at `root` itself, not of one around it; empty where there is none, or no git."""
    if not (root / ".git").exists():
        return ""
    try:
        answer = subprocess.run(["git", "-C", root, "remote", "get-url", "origin"], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return answer.stdout.strip()
