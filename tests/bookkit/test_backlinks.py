"""Links between chapters and library are read from the code itself."""

from bookkit.sphinx.backlinks import library_names, plain_text

MODULAR = "arithlib.tasks.modular"


def test_a_name_is_found_however_it_was_imported():
    for code in (
        f"from {MODULAR} import ModularAddition\nModularAddition(p=7)",
        f"from {MODULAR} import ModularAddition as Task\nTask(p=7)",
        f"import {MODULAR} as modular\nmodular.ModularAddition(p=7)",
        f"import {MODULAR}\n{MODULAR}.ModularAddition(p=7)",
        "from arithlib.tasks import modular\nmodular.ModularAddition(p=7).pairs.shape",
    ):
        assert library_names([code]) == [f"{MODULAR}.ModularAddition"]


def test_a_name_imported_in_one_cell_is_found_in_another():
    assert library_names([f"from {MODULAR} import ModularAddition", "ModularAddition()"]) == [
        f"{MODULAR}.ModularAddition"
    ]


def test_what_is_imported_and_never_used_other_libraries_and_plain_values_are_left_out():
    assert library_names([f"from {MODULAR} import ModularAddition"]) == []
    assert library_names(["%matplotlib inline\nimport numpy as np\nnp.sin(1)"]) == []
    assert library_names(["import arithlib\narithlib.__version__\narithlib.nothing_of_that_name"]) == []


def shown(docstring):
    lines = docstring.split("\n")
    plain_text(None, "function", "f", None, None, lines)
    return "\n".join(lines)


def test_lines_that_describe_arguments_stay_apart():
    given = "Sum.\n\na, b: residues\n    of one modulus.\np: the modulus.\n\nSee: below\nand above."
    wanted = "Sum.\n\n| a, b: residues\n    of one modulus.\n| p: the modulus.\n\n| See: below\n| and above."
    assert shown(given) == wanted


def test_signs_of_arithmetic_are_no_markup_but_code_stays_code():
    assert shown("|x| * y, *args and W_ beside `p * |q|`.") == r"\|x\| \* y, \*args and W\_ beside `p * |q|`."


def test_an_indented_paragraph_is_code_and_an_example_is_left_alone():
    assert shown("Call\n\n    f(*x)\n    g(y)") == "Call\n\n::\n\n    f(*x)\n    g(y)"
    assert shown(">>> 2 * 3\n6") == ">>> 2 * 3\n6"


def test_a_block_that_the_text_announces_itself_is_announced_once():
    assert shown("A rule::\n\n    rule:\n      a: 1\n    per: b") == "A rule::\n\n    rule:\n      a: 1\n    per: b"
