"""Characters, the texts of this machine, facts and stories."""

import torch
from short_runs import seeded

from chapters.ch46_text import CHARACTERS, CITIES, GOODS, Facts, Stories, decode, encode, names, standard_library


def test_printable_text_comes_back_and_anything_else_is_a_question_mark():
    text = 'def f(x):\n    return "~"'
    assert decode(encode(text)) == text
    assert decode(encode("é\t\x00")) == "???"
    assert len(set(CHARACTERS)) == len(CHARACTERS) == 96


def test_the_standard_library_is_read_once_and_its_held_out_files_are_others():
    corpus = standard_library()
    assert corpus is standard_library()
    assert len(corpus.train) > 5 * len(corpus.held_out) > 100_000
    assert 0 <= corpus.digest < 2**60
    train = decode(corpus.train)
    lines = decode(corpus.held_out[:20_000]).splitlines()
    unseen = [line for line in lines if len(line) > 60 and line not in train]
    assert len(unseen) > 50
    assert "import" in train


def test_windows_are_pieces_of_the_text():
    corpus = standard_library()
    windows = corpus.windows(4, 50, seeded())
    train, held_out = decode(corpus.train), decode(corpus.held_out)
    assert all(decode(window) in train for window in windows)
    assert all(decode(window) in held_out for window in corpus.windows(4, 50, seeded(), held_out=True))


def test_names_are_different_and_the_same_in_every_run():
    found = names(256)
    assert len(set(found)) == 256 and found[:100] == names(100)
    assert all(len(name) == 4 and name.istitle() for name in found)
    assert len(set(names(4900))) == 4900
    assert len(set(CITIES)) == len(set(GOODS)) == 16 and not {*CITIES} & {*GOODS}


def test_a_fact_never_changes_and_the_cities_are_about_equally_frequent():
    facts = Facts()
    first, again = facts.sample(500, seeded()), facts.sample(500, seeded(1))
    told = [dict(decode(row).rstrip("\n").split(":") for row in drawn) for drawn in (first, again)]
    assert all(told[0][name] == told[1][name] for name in told[0].keys() & told[1].keys())
    assert facts.homes().bincount(minlength=16).max() < 3 * 256 / 16
    row = facts.write(torch.tensor([7]))[0]
    assert len(row) == facts.width and decode(row[facts.answers[0]]) in CITIES


def test_a_story_says_the_same_twice_in_another_order_and_asks_the_goods():
    stories, moved = Stories(), 0
    for row in stories.sample(100, seeded()):
        told, retold = (part.split(",") for part in decode(row).rstrip("\n").split(";"))
        assert sorted(told) == sorted(retold) and len(set(told)) == 3
        assert [decode(row[place]) for place in stories.answers] == [pair.split()[1] for pair in retold]
        assert len({pair.split()[0] for pair in told}) == 3 and len({pair.split()[1] for pair in told}) == 3
        moved += told != retold
    assert moved > 60 and stories.width == len(row)
