"""See `experiments.queens`."""

import sys

from experiments.queens import main

if __name__ == "__main__":
    sys.exit(main())
