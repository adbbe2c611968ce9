"""The messages of a Python file, whole where that is possible: the parts of an f-string that are texts themselves, as
literals, conditional expressions or local names, stand in it. `…` stands for each other part.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

GAP = "…"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_messages(tree: ast.Module, left_out: set[ast.AST]) -> Iterator[str]:
    """Yield each message and its variants. A text that is part of another one isn't yielded alone."""
    reader = _Reader()
    found = [(node, reader.render(node, names)) for node, names in _find_texts(tree, {}) if node not in left_out]
    for node, variants in found:
        if node not in reader.parts and node not in left_out:
            yield from dict.fromkeys(variants)


@dataclass
class _Names:
    """The texts that are assigned to a name, and those that are appended to it."""

    assigned: list[ast.expr] = field(default_factory=list[ast.expr])
    appended: list[ast.expr] = field(default_factory=list[ast.expr])


Scope = Mapping[str, _Names]


def _find_texts(node: ast.AST, names: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """Yield all nodes that can be texts, with the names of their scope, the outer nodes first."""
    if isinstance(node, (ast.Module, *FUNCTION)):
        names = {**names, **_read_names(node)}
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(op=ast.Add()) | ast.AugAssign(op=ast.Add()):
            yield node, names
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _find_texts(child, names)


def _read_names(scope: ast.AST) -> dict[str, _Names]:
    names: dict[str, _Names] = {}
    for node in scope.body if isinstance(scope, ast.Module) else ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names.setdefault(name, _Names()).assigned.append(value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                names.setdefault(name, _Names()).appended.append(value)
            case _:
                pass
    return names


@dataclass
class _Reader:
    parts: set[ast.AST] = field(default_factory=set[ast.AST])
    """Texts that are part of another one."""

    def render(self, node: ast.AST, names: Scope) -> list[str]:
        """Return the variants of a text; empty: it is none."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=values):
                self.parts.update(values)
                return _combine([self._render_part(part, names) for part in values])
            case ast.FormattedValue(value=value):
                return self._render_part(value, names)
            case ast.AugAssign(target=ast.Name() as target):
                return self.render(target, names)
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, op=ast.Add(), right=other):
                if not self.render(one, names) and not self.render(other, names):
                    return []
                sides = [self._render_part(side, names) for side in (one, other)]
                return [*sides[0], *sides[1]] if isinstance(node, ast.IfExp) else _combine(sides)
            case ast.Name(id=name) if name in names:
                return self._render_name(name, names)
            case _:
                return []

    def _render_part(self, node: ast.AST, names: Scope) -> list[str]:
        variants = self.render(node, names)
        if not variants:
            return [GAP]
        self.parts.add(node)
        return variants

    def _render_name(self, name: str, names: Scope) -> list[str]:
        others = {other: texts for other, texts in names.items() if other != name}
        texts = names[name]
        found = [(node, self.render(node, others)) for node in texts.assigned]
        variants = [text for _, some in found for text in some]
        self.parts.update(node for node, some in found if some)
        start = variants[0] if variants else GAP
        for node in texts.appended:
            more = self.render(node, others)
            self.parts.update([node] if more else [])
            variants += [start + text for text in more]
        return variants


def _combine(parts: Sequence[Sequence[str]]) -> list[str]:
    """Join the parts; each variant of a part occurs in at least one text."""
    count = max((len(variants) for variants in parts), default=1)
    return ["".join(variants[number % len(variants)] for variants in parts) for number in range(count)]
