"""See `experiments.first_call`."""

import sys

from experiments.first_call import main

if __name__ == "__main__":
    sys.exit(main())
