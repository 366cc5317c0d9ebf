"""A graph of your own: ten friends vote, neighbours tend to agree, and three of them never all
agree.
"""

import numpy as np

from spacy_hocrf.api import DualSettings, dual_decompose, make_instance

FRIENDS = 10
AGREE, NEVER = 0.6, -5.0


def main() -> None:
    opinions = np.random.default_rng(0).normal(size=(FRIENDS, 2)).round(1)
    neighbours = [(i, (i + step) % FRIENDS) for i in range(FRIENDS) for step in (1, 3)]
    patterns = [(pair, (vote, vote), AGREE) for pair in neighbours for vote in (0, 1)]
    patterns += [((0, 4, 8), (vote,) * 3, NEVER) for vote in (0, 1)]
    graph = make_instance(opinions, patterns)
    for kind in ("hybrid", "two_slave", "naive"):
        found = dual_decompose(graph, DualSettings(kind=kind))
        votes = "".join("no yes".split()[state][0] for state in found.assignment)
        proof = (
            "proved optimal" if found.certificate else f"at most {found.gap:.2f} below the optimum"
        )
        print(f"{kind:10} {votes} {found.primal:6.2f}, {proof} after {found.iterations} iterations")


if __name__ == "__main__":
    main()
