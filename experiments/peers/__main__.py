"""See `experiments.peers`."""

import sys

from experiments.peers import main

if __name__ == "__main__":
    sys.exit(main())
