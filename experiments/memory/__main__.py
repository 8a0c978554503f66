"""See `experiments.memory`."""

import sys

from experiments.memory import main

if __name__ == "__main__":
    sys.exit(main())
