"""What the cells of a notebook say: their code as syntax trees, and the parameters they define and read."""

import ast
import symtable
from collections.abc import Mapping

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

MAGIC = ("run_line_magic", "run_cell_magic")


class BadParameter(ValueError):
    """The parameters of a notebook are not what the build believes them to be."""


class BadCell(ValueError):
    """A code cell that is no Python, or a verdict that a reader would not see."""


def code_of(cell: NotebookNode) -> list[ast.stmt]:
    """The statements of a code cell, none of any other; those behind a magic such as `%%time` are among them."""
    if cell.cell_type != "code":
        return []
    try:
        return statements(cell.source)
    except SyntaxError as error:
        raise BadCell(f"a cell is no Python ({error.msg}): {(error.text or cell.source).strip()}") from error


def statements(source: str) -> list[ast.stmt]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # IPython's own syntax, then, which is slow to translate
        source = TransformerManager().transform_cell(source)
        tree = ast.parse(source)
    if not any(magic in source for magic in MAGIC):
        return tree.body
    found = []
    for statement in tree.body:
        found.append(statement)
        for node in ast.walk(statement):
            # IPython turns `%time f(x)` into run_line_magic("time", "f(x)"), and `%%time` likewise with the cell.
            match node:
                case ast.Call(func=ast.Attribute(attr=attr), args=[*_, ast.Constant(value=str(code))]) if (
                    attr in MAGIC
                ):
                    try:
                        found += statements(code)
                    except SyntaxError:
                        pass  # another language, as after `%%bash`
    return found


def parameters_index(notebook: NotebookNode) -> int:
    """Position of the one code cell tagged `parameters`."""
    tagged = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1 or notebook.cells[tagged[0]].cell_type != "code":
        raise BadParameter(
            f"{len(tagged)} cells are tagged `parameters` (cells {tagged}); expected one code cell. "
            "Tag the cell of literals near the top."
        )
    return tagged[0]


def default_parameters(notebook: NotebookNode) -> dict[str, object]:
    """Names and literal values assigned by the cell tagged `parameters`."""
    defaults = {}
    for statement in code_of(notebook.cells[parameters_index(notebook)]):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                raise BadParameter(
                    f"the parameters cell holds `{ast.unparse(statement)}`; expected only assignments "
                    "`name = literal`. Move everything else to a later cell."
                )
        try:
            defaults[name] = ast.literal_eval(value)
        except ValueError as error:
            raise BadParameter(
                f"the parameter {name} is `{ast.unparse(value)}`, which is no literal; papermill would inject new "
                "values after it had been computed. Derive it in a later cell."
            ) from error
    return defaults


def unread_parameters(notebook: NotebookNode) -> set[str]:
    """Parameters that no later cell reads before assigning them anew: a value injected there would change nothing."""
    names = set(default_parameters(notebook))
    read, rebound = set(), set()
    for cell in notebook.cells[parameters_index(notebook) + 1 :]:
        for statement in code_of(cell):
            scope = scope_of(statement)
            read |= global_reads(scope) - rebound
            rebound |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_assigned()}
    return names - read


def scope_of(statement: ast.stmt) -> symtable.SymbolTable:
    """The names of a statement, those of a comprehension in a scope of its own."""
    apart = Generators().visit(ast.parse(ast.unparse(statement)))
    return symtable.symtable(ast.unparse(apart), "cell", "exec")


class Generators(ast.NodeTransformer):
    """Makes a generator of every comprehension, for since Python 3.12 the others share the scope around them."""

    def visit_ListComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def global_reads(scope: symtable.SymbolTable) -> set[str]:
    """Global names read in a scope or in any function inside it."""
    top = scope.get_type() == "module"
    own = {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (top or s.is_global())}
    return own.union(*map(global_reads, scope.get_children()))


def check_parameters(notebook: NotebookNode, parameters: Mapping[str, object]) -> dict[str, object]:
    """The values the notebook will run with; an unknown or unread parameter is an error."""
    defaults = default_parameters(notebook)
    if unknown := set(parameters) - set(defaults):
        raise BadParameter(
            f"unknown parameter {', '.join(sorted(unknown))}: the parameters cell defines "
            f"{', '.join(sorted(defaults)) or 'none'}. Correct the name or add it to that cell."
        )
    if unread := unread_parameters(notebook):
        raise BadParameter(
            f"no later cell reads the parameter {', '.join(sorted(unread))}, so its value changes nothing. "
            "Use it in a later cell (before assigning it anew) or remove it."
        )
    return defaults | dict(parameters)


def check_verdicts(notebook: NotebookNode) -> None:
    """Every verdict is shown where it is given, and again in the table: `verdicts` names what `claim` does.

    A cell shows its last value alone, so that whatever stands after a claim hides its verdict.
    """
    named = {"claim": set(), "verdicts": set()}
    for number, cell in enumerate(notebook.cells):
        code = code_of(cell)
        for statement in code[:-1]:
            match statement:
                case ast.Expr(value=ast.Call(func=ast.Name(id="claim"), args=[id, *_])):
                    raise BadCell(
                        f"cell {number} does not show the verdict of claim({ast.unparse(id)}, ...): a cell shows its "
                        "last value alone. End the cell with that call, and give what follows a cell of its own."
                    )
        for node in (node for statement in code for node in ast.walk(statement)):
            match node:
                case ast.Call(func=ast.Name(id="claim" | "verdicts" as function), args=given):
                    texts = (each.value for each in given if isinstance(each, ast.Constant))
                    named[function].update(text for text in texts if isinstance(text, str))
    for id in sorted(named["claim"] ^ named["verdicts"]):
        there, missing = ("claim", "verdicts") if id in named["claim"] else ("verdicts", "claim")
        raise BadCell(f"{there}(...) names {id}, and {missing}(...) does not. Name it in both, written out.")
