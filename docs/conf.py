"""How Sphinx makes the site: `make docs`, then open build/docs/index.html."""

import os
import pathlib
import sys
from importlib import metadata

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ["JAX_PLATFORMS"] = "cpu"

project = "jaxopt_search"
author = "The jaxopt_search developers"
release = version = metadata.version(project)

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "extension",
]
nitpick_ignore_regex = [("py:.*", r"(?!js\.).*")]  # what is not ours has no page here

myst_heading_anchors = 3
nb_execution_mode = "off"  # their outputs are kept
nb_mime_priority_overrides = [("html", "image/gif", 1)]

napoleon_custom_sections = [("Attributes", "params_style")]  # as arguments are listed
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"

html_theme = "sphinx_book_theme"
html_title = f"jaxopt_search {release}"
html_theme_options = {"navbar_persistent": [], "use_download_button": False}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
