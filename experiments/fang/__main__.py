"""See `experiments.fang`."""

import sys

from experiments.fang import main

if __name__ == "__main__":
    sys.exit(main())
