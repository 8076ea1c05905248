"""``python -m kdissect``."""

import sys

try:
    from kdissect.cli import main

    code = main()
except KeyboardInterrupt:  # before the command line could handle it
    code = 130
sys.exit(code)
