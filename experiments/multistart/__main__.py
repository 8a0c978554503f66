"""See `experiments.multistart`."""

import sys

from experiments.multistart import main

if __name__ == "__main__":
    sys.exit(main())
