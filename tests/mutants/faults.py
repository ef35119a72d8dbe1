"""Small faults that can be put into a module: a comparison, a sign or a constant changed, one at a time.

Left out is what no test of behaviour should hold: annotations, texts, error sentences, and the defaults of settings
(the pinned help texts hold those).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
TURNED = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "gt": "ge", "lt": "le", "minimum": "maximum",
          "maximum": "minimum", "cumsum": "cumprod", "any": "all", "all": "any", "clamp_min": "clamp_max"}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One changed expression of a module."""

    module: str
    """Below src/marlab, for example fish/sea/rewards.py."""
    place: str
    """The function it lies in, with its class."""
    start: int
    end: int
    """Where the expression stands in the bytes of the source."""
    old: str
    new: str
    line: int
    statement: str
    """The line of the source that holds it, for people and for the list of equivalent faults."""

    times: int = 1
    """How often the same change was possible in the same line so far, this one included."""

    @property
    def name(self) -> str:
        """The same as long as its line is not edited, wherever in the file it stands."""
        which = f" | no. {self.times}" if self.times > 1 else ""
        return f"{self.module} | {self.place} | {self.statement} | {self.old} -> {self.new}{which}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


def faults_in(module: str, source: bytes) -> list[Fault]:
    """Every fault that could be put into a module, in the order of its text."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.decode().splitlines()
    found = []
    seen: Counter[str] = Counter()
    for place, node in _expressions(tree, ""):
        for changed in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            old, new = source[start:end].decode(), ast.unparse(changed)
            text = new if _stands_alone(node) else f"({new})"
            fault = Fault(
                module, place, start, end, " ".join(old.split()), text, node.lineno, lines[node.lineno - 1].strip()
            )
            seen[fault.name] += 1
            found.append(replace(fault, times=seen[fault.name]))
    return sorted(found, key=lambda fault: (fault.start, fault.end, fault.new))


def _stands_alone(node: ast.expr) -> bool:
    """Whether the new text needs no brackets around it, whatever it stands in."""
    return isinstance(node, ast.Constant | ast.Call | ast.Attribute | ast.Name)


class _Body(ast.Module):
    """What is done in a function or a class."""

    def __init__(self, body: list[ast.stmt], of_class: bool) -> None:
        super().__init__(body, [])
        self.of_class = of_class


def _expressions(node: ast.AST, place: str) -> Iterator[tuple[str, Any]]:
    """(where it lies, expression) for every expression that decides what the module does."""
    for child in ast.iter_child_nodes(node):
        inside = place
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inside = f"{place}.{child.name}".lstrip(".")
        if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a text that explains
        if isinstance(child, ast.AnnAssign):
            if (isinstance(node, _Body) and node.of_class) or child.value is None:
                continue  # a setting and its default, or a name and its type
            yield from _whole(child.value, inside)
            continue
        if isinstance(child, ast.FunctionDef | ast.ClassDef):  # without decorators, bases and annotations
            if isinstance(child, ast.FunctionDef):
                for default in (*child.args.defaults, *child.args.kw_defaults):
                    if default is not None:
                        yield from _whole(default, inside)
            yield from _expressions(_Body(list(child.body), isinstance(child, ast.ClassDef)), inside)
            continue
        if isinstance(child, ast.expr):
            yield from _whole(child, inside)
            continue
        yield from _expressions(child, inside)


def _whole(node: ast.expr, place: str) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.JoinedStr):
        return
    yield place, node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "cast"):
        return  # types, which a type checker holds
    yield from _expressions(node, place)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            ops = [*node.ops[:i], COMPARISONS[type(operator)](), *node.ops[i + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _is_text(node):
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _other_constant(node.value))
    elif isinstance(node, ast.Call):
        yield from _other_call(node)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str)
               for side in (node.left, node.right))  # fmt: skip


def _other_constant(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield 2 * value if value else 1.0


def _other_call(node: ast.Call) -> Iterator[ast.expr]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in TURNED:
        other = TURNED[name]
        func = ast.Attribute(node.func.value, other) if isinstance(node.func, ast.Attribute) else ast.Name(other)
        yield ast.Call(func, node.args, node.keywords)
    if name == "clamp":
        turned = [ast.keyword(TURNED.get(k.arg or "", k.arg), k.value) for k in node.keywords]
        if turned:
            yield ast.Call(node.func, node.args, turned)
