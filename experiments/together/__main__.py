"""See `experiments.together`."""

import sys

from experiments.together import main

if __name__ == "__main__":
    sys.exit(main())
