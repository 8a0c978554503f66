"""See `experiments.benchmark`."""

import sys

from experiments.benchmark import main

if __name__ == "__main__":
    sys.exit(main())
