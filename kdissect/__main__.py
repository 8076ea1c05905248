"""``python -m kdissect``."""

import sys

from kdissect.cli import main

sys.exit(main())
