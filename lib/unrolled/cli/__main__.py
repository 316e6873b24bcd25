"""`python -m unrolled.cli` is the `unrolled` command."""

import sys

from unrolled.cli import main

sys.exit(main())
