"""What publication asks for agrees with the package: the recipe, the paper, and how to cite."""

import re
import tomllib

import pages
import pytest

import jaxopt_search as js

FOLDER = pages.ROOT / "publication"
PROJECT = tomllib.loads((pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirement(text):
    """Returns a requirement of pip or conda as a name and a bound."""
    return tuple(re.fullmatch(r"([\w-]+) ?>=([\d.]+)", text).groups())


def test_the_recipe_has_the_version_and_the_requirements_of_the_package():
    """And one address, which the others are made of."""
    text = (FOLDER / "recipe.yaml").read_text(encoding="utf-8")
    recipe = pytest.importorskip("yaml").safe_load(text)
    context = recipe["context"]
    assert context["version"] == js.__version__
    assert f">={context['python_min']}" == PROJECT["requires-python"]
    run = [one for one in recipe["requirements"]["run"] if not one.startswith("python ")]
    assert sorted(map(requirement, run)) == sorted(map(requirement, PROJECT["dependencies"]))
    entry_points = [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == entry_points
    assert text.count("://") == 1


def test_the_paper_cites_what_its_bibliography_holds():
    """All of it, and nothing else; and the papers that CITATION.cff names have the same DOIs."""
    bibliography = (FOLDER / "paper.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE)
    cited = set(re.findall(r"@(\w+)", (FOLDER / "paper.md").read_text(encoding="utf-8")))
    assert sorted(entries) == sorted(cited)
    citation = (pages.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dois = re.findall(r"^ +doi: (.+)$", citation, re.MULTILINE)
    assert dois and all(f"{{{doi}}}" in bibliography for doi in dois)
