"""Lets every test import the helpers that lie next to this file: `import oracle`, `import
worked_example`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
