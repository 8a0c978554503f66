"""See `experiments.pspm`."""

import sys

from experiments.pspm import main

if __name__ == "__main__":
    sys.exit(main())
