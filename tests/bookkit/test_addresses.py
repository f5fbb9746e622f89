"""The addresses of the published book are found, and where there is none no button is shown."""

import shutil
import subprocess

import pytest
import yaml

from bookkit.build.addresses import clone, config, repository

WANTED = {
    "title": "Größen",
    "html": {"favicon": "icon.svg", "use_repository_button": True, "use_issues_button": True},
    "repository": {"branch": "main"},
    "launch_buttons": {"colab_url": "https://colab.example"},
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout that asks for every button; call it with the address of its remote."""
    monkeypatch.delenv("BOOK_SITE", raising=False)
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(WANTED, allow_unicode=True), encoding="utf-8")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def cloned_from(address):
        subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", address], check=True)
        return tmp_path

    return cloned_from


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/owner/the-book",
        "https://github.com/owner/the-book.git",
        "https://someone:secret@github.com/owner/the-book.git/",
        "git@github.com:owner/the-book.git",
        "ssh://git@github.com:22/owner/the-book.git",
        "git://github.com/owner/the-book",
    ],
)
def test_the_remote_says_where_the_repository_is_and_keeps_its_secrets(checkout, address):
    root = checkout(address)
    assert repository(root) == "https://github.com/owner/the-book"
    settings = yaml.safe_load(config(root))
    assert settings == WANTED | {"repository": {"branch": "main", "url": "https://github.com/owner/the-book"}}


@pytest.mark.parametrize("address", ["/home/me/the-book", "../the-book", "https://intern.example/owner/the-book"])
def test_without_a_public_address_there_is_no_button(checkout, address):
    root = checkout(address)
    assert repository(root) is None
    assert yaml.safe_load(config(root)) == {"title": "Größen", "html": {"favicon": "icon.svg"}}
    assert clone(root) == "Unpack or clone the repository, and change into its folder."


def test_a_group_on_another_host_has_a_repository_and_nothing_to_launch(checkout):
    settings = yaml.safe_load(config(checkout("git@gitlab.com:group/part/the-book.git")))
    assert settings["repository"]["url"] == "https://gitlab.com/group/part/the-book"
    assert settings["html"] == WANTED["html"] and "launch_buttons" not in settings


def test_where_there_is_an_address_a_reader_is_told_how_to_clone_it(checkout):
    root = checkout("https://someone:secret@github.com/owner/the-book.git")
    assert "$ git clone https://github.com/owner/the-book\n$ cd the-book\n" in clone(root)


def test_an_address_in_the_settings_counts_more_than_the_remote(checkout):
    root = checkout("https://github.com/fork/the-book")
    named = WANTED | {"repository": {"url": "https://github.com/owner/the-book"}}
    (root / "_config.yml").write_text(yaml.safe_dump(named), encoding="utf-8")
    assert repository(root) == "https://github.com/owner/the-book"


def test_an_unpacked_archive_has_no_address(checkout, monkeypatch):
    root = checkout("https://github.com/owner/the-book")
    monkeypatch.setenv("PATH", "")
    assert repository(root) is None  # git is not there
    shutil.rmtree(root / ".git")
    assert repository(root) is None


def test_the_site_lies_where_the_settings_say_or_else_the_environment(checkout, monkeypatch):
    """Which the workflow that publishes sets: without a whole address no card has its picture."""
    root = checkout("https://github.com/owner/the-book")
    assert "baseurl" not in yaml.safe_load(config(root))["html"]
    monkeypatch.setenv("BOOK_SITE", "https://owner.example/the-book/")
    assert yaml.safe_load(config(root))["html"] == WANTED["html"] | {"baseurl": "https://owner.example/the-book/"}
    own = WANTED | {"html": {"baseurl": "https://book.example"}}
    (root / "_config.yml").write_text(yaml.safe_dump(own), encoding="utf-8")
    assert yaml.safe_load(config(root))["html"]["baseurl"] == "https://book.example"
