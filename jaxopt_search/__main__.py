"""`python -m jaxopt_search`: see `jaxopt_search.command`."""

import sys

from jaxopt_search.command.main import main

if __name__ == "__main__":
    sys.exit(main())
