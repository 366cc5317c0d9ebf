"""Print a command of the README: the fenced block below the comment `<!-- command: NAME -->`.

python .ci/readme_command.py NAME [README.md]
"""

import re
import sys
from pathlib import Path


def main(name: str, readme: str = "README.md") -> str:
    text = Path(readme).read_text(encoding="utf8")
    found = re.findall(
        rf"<!-- command: {re.escape(name)} -->\s*```\w*\n(.*?)\n```", text, flags=re.DOTALL
    )
    if len(found) != 1:
        return sys.exit(
            f"{readme} has {len(found)} fenced blocks below '<!-- command: {name} -->', expected 1."
        )
    return found[0]


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
