"""See `experiments.islands`."""

import sys

from experiments.islands import main

if __name__ == "__main__":
    sys.exit(main())
