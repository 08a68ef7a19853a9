"""The syntax of a manifest's ``code``: what Python sees of it, with or without the white space in its SQL."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator

# Methods and functions of PySpark that parse their texts as SQL, so that their meaning is in the plan.
_TAKE_SQL = frozenset({"sql", "expr", "selectExpr", "where", "filter"})
# In Python 3.11, threads count the depth of the trees that they make in one place, and a thread that is
# interrupted by another meanwhile, as it may be when garbage is collected, raises a SystemError.
_MAKING_A_TREE = threading.Lock()
_BODIES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def syntax(code: str) -> str:
    """Return the syntax tree of code, which has no comments and no white space outside of texts.

    Raises:
        SyntaxError: it is not Python.
    """
    return ast.dump(_tree(code))


def syntax_without_blanks(code: str) -> str:
    """Return the syntax tree with white space in SQL as one blank.

    Only texts that are nothing but SQL count: those that are given to a method of PySpark that parses SQL,
    and those of a variable that is used for nothing else. What functions contain does not: they may be UDFs.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = _tree(code)
    arguments = [argument for call in _calls(tree) for argument in call.args]
    names = _only_in(tree, {id(each) for each in arguments if isinstance(each, ast.Name)})
    texts = arguments + [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and all(isinstance(each, ast.Name) and each.id in names for each in node.targets)
    ]
    for text in texts:
        for constant in _constants(text):
            constant.value = re.sub(r"\s+", " ", str(constant.value))
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            text.value = text.value.strip()
    return ast.dump(tree)


def _tree(code: str) -> ast.Module:
    with _MAKING_A_TREE:
        return ast.parse(code)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls, outside of functions, that parse SQL."""
    if isinstance(node, _BODIES):
        return
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _TAKE_SQL:
            yield node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)


def _only_in(tree: ast.AST, arguments: set[int]) -> set[str]:
    """Return the variables that are read as these arguments, and nowhere else."""
    reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return {node.id for node in reads} - {node.id for node in reads if id(node) not in arguments}


def _constants(text: ast.expr) -> Iterator[ast.Constant]:
    """Yield the texts that an expression joins."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        yield text
    elif isinstance(text, ast.JoinedStr):
        for part in text.values:
            yield from _constants(part)
    elif isinstance(text, ast.BinOp):
        yield from _constants(text.left)
        yield from _constants(text.right)
