"""What Sphinx has to be told to read these pages as GitHub does, and to find every public name.

Pages of the reference list names as users write them, in blocks of their own:

    ```{names}
    js.solve_tsp
    js.solve_qap
    ```

Such a block becomes a table of the first lines of their docstrings and, below, the docstrings.
"""

import ast
import inspect
import itertools
import pathlib
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Literal, get_origin

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent

_PACKAGE = "jaxopt_search."
_NAMES = re.compile(r"^```\{names\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(?<![`:\w])`((?:(?!\n\s*\n)[^`])+)`(?!`)(?=(\w?))")
# Pages that include files from outside of `docs`.
_INCLUDED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_COLON = "\0"
# In docstrings they are mostly methods of parts.
_AMBIGUOUS = {"init", "best"}


def names_of(text: str) -> list[str]:
    """Returns the names that a page of the reference lists, in order."""
    return [name for block in _NAMES.findall(text) for name in block.split()]


def all_names() -> list[str]:
    """Returns the names of all pages of the reference."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    return [name for page in pages for name in names_of(page.read_text(encoding="utf-8"))]


def found(name: str) -> Any:
    """Returns what a name such as `js.random.below` stands for.

    Raises:
      AttributeError: if there is no such thing.
    """
    import jaxopt_search

    _, *parts = name.split(".")
    thing: Any = jaxopt_search
    for part in parts:
        thing = getattr(thing, part)
    return thing


def public_modules(package: ModuleType, name: str = "js") -> Iterator[tuple[str, ModuleType]]:
    """Yields a package and the modules among its public names, at any depth, by these names."""
    yield name, package
    for own in package.__all__:
        thing = getattr(package, own)
        if isinstance(thing, ModuleType):
            yield from public_modules(thing, f"{name}.{own}")


def directive(name: str) -> str:
    """Returns how Sphinx documents what a name stands for."""
    thing, options = found(name), []
    if not callable(thing) or get_origin(thing) or name.split(".")[-1] != thing.__name__:
        return _data(name)
    kind = "function"
    if inspect.isclass(thing):
        kind, options = "class", ["members"]
        if issubclass(thing, Exception):
            kind, options = "exception", []
        elif hasattr(thing, "__members__"):  # of an enumeration
            options.append("undoc-members")
    return "\n".join([f".. auto{kind}:: {name}", *(f"   :{option}:" for option in options), ""])


def _data(name: str) -> str:
    """Returns an entry for a number, a tuple or a type alias; autodoc would describe its class."""
    thing, text = found(name), linked(text_of(name), set(all_names()))
    has_value = isinstance(thing, int | tuple) or get_origin(thing) is Literal
    value = str(thing).replace("typing.", "") if has_value else ""
    options = [f"   :value: {value}"] if value else []
    return "\n".join([f".. py:data:: {name}", *options, "", textwrap.indent(text, "   "), ""])


def text_of(name: str) -> str:
    """Returns what stands below the assignment of a name, in its module or in one beside that."""
    module, _, own = name.rpartition(".")
    for path in sorted(pathlib.Path(found(module).__file__).parent.glob("*.py")):
        for node, after in itertools.pairwise(ast.parse(path.read_text(encoding="utf-8")).body):
            target = node.target if isinstance(node, ast.AnnAssign) else None
            target = node.targets[0] if isinstance(node, ast.Assign) else target
            if isinstance(target, ast.Name) and target.id == own and isinstance(after, ast.Expr):
                return inspect.cleandoc(ast.literal_eval(after.value))
    return (inspect.getdoc(found(name)) or "") if inspect.isclass(found(name)) else ""


def with_names(text: str) -> str:
    """Returns a page with the blocks of names as directives of Sphinx."""

    def block(match: re.Match[str]) -> str:
        names = match[1].split()
        table = [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]
        return "\n".join(["```{eval-rst}", *table, *map(directive, names), "```"])

    return _NAMES.sub(block, text)


def with_links(text: str, folder: pathlib.Path) -> str:
    """Returns a page of a folder with links out of `docs` as plain code, but for notebooks.

    There is no place on the web yet to which they could lead.
    """

    def link(match: re.Match[str]) -> str:
        words, target, heading = match.groups()
        path = (folder / target).resolve()
        if path.is_relative_to(DOCS) or not path.exists():
            return match[0]
        inside = str(path.relative_to(ROOT))
        if inside in _INCLUDED:
            return f"[{words}](/{_INCLUDED[inside]}{heading or ''})"
        if path.suffix == ".ipynb":
            return f"[{words}](/{inside})"
        return words if words.startswith("`") else f"`{words}`"

    return _LINK.sub(link, text)


def language(code: str) -> str:
    """Returns the language of an indented block: `python`, `console` with prompts, or `bash`."""
    code = textwrap.dedent(code)
    try:
        ast.parse(code)
    except SyntaxError:
        return "console" if code.startswith("$ ") else "bash"
    return "python"


def linked(text: str, names: set[str]) -> str:
    """Returns a docstring, whose code stands between single backticks, for Sphinx."""
    lasts = [(name.rpartition(".")[2], name) for name in sorted(names)]
    classes = {last: name for last, name in lasts if last[0].isupper()}

    def code(match: re.Match[str]) -> str:
        inside = match[1]
        full = inside if inside.startswith("js.") else f"js.{inside}"
        name = classes.get(inside, full)
        end = "\\ " if match[2] else ""  # "`Result`s"
        for known in (name, name.rpartition(".")[0]):
            if known in names and inside not in _AMBIGUOUS:
                return f":py:obj:`{inside} <{known}>`{end}"
        return f"``{inside}``{end}"

    return _CODE.sub(code, text)


def _bring_notebooks(app: Any) -> None:
    """Copies the notebooks, with their outputs, into the sources; links lead from there."""
    folder = DOCS / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        folder.mkdir(exist_ok=True)
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        (folder / path.name).write_text(text, encoding="utf-8")


def _read_source(app: Any, page: str, source: list[str]) -> None:
    path = (DOCS / page).with_suffix(".md")
    if path.exists():
        source[0] = with_names(with_links(source[0], path.parent))
    if not (DOCS / "notebooks").exists():  # an empty glob would warn
        source[0] = source[0].replace("\nnotebooks/*\n", "\n")


def _keep_whole(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list) -> None:
    """Hides colons in texts of attributes from napoleon: what is before one would be the type."""
    if kind in ("attribute", "property"):
        lines[:] = [line.replace(":", _COLON) for line in lines]


def _read_docstring(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list) -> None:
    text = text_of(name) if kind == "data" and name.startswith("js.") else "\n".join(lines)
    lines[:] = linked(text.replace(_COLON, ":"), app.config.reference_names).split("\n")


def _shorten_signature(app: Any, kind: str, name: str, thing: Any, *rest: Any) -> Any:
    """Leaves out the arguments of classes that users do not call."""
    if kind != "class":
        return None
    is_built = "Build it with" in (thing.__doc__ or "") or issubclass(thing, tuple)
    return ("", None) if is_built or getattr(thing, "_is_protocol", False) else None


def _skip(app: Any, kind: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leaves out the fields of named tuples, which stand under Attributes."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def _read_tree(app: Any, tree: Any) -> None:
    """Names the languages of blocks, and links names of the reference to it."""
    from docutils import nodes
    from sphinx import addnodes

    for block in tree.findall(nodes.literal_block):
        if block.get("language", "none") in ("none", "default"):
            block["language"] = language(block.astext())
    for code in list(tree.findall(nodes.literal)):
        match = re.match(r"js(\.\w+)+", code.astext())
        is_linked = isinstance(code.parent, nodes.reference | addnodes.pending_xref)
        if match and match[0] in app.config.reference_names and not is_linked:
            kind = {"refdomain": "py", "reftype": "obj", "refdoc": app.env.docname}
            link = addnodes.pending_xref("", reftarget=match[0], refexplicit=True, **kind)
            code.replace_self(link)
            link += code


def setup(app: Any) -> dict[str, bool]:
    """Tells Sphinx what to call, and Python under which names users know the public modules."""
    import jaxopt_search

    modules = {name: module for name, module in sys.modules.items() if name.startswith(_PACKAGE)}
    sys.modules.update({f"js.{name[len(_PACKAGE) :]}": modules[name] for name in modules})
    sys.modules.update(public_modules(jaxopt_search))
    app.add_config_value("reference_names", set(all_names()), "env")
    app.connect("builder-inited", _bring_notebooks)
    app.connect("source-read", _read_source)
    app.connect("autodoc-process-docstring", _keep_whole, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", _read_docstring)
    app.connect("autodoc-process-signature", _shorten_signature)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _read_tree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
