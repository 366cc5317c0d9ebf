"""“Peter goes to Britain and France annually.”: the example that both papers compute by hand, with
the printed tables.

NIPS: Ye, Lee, Chieu and Wu, NIPS 22 (2009), supplement. JMLR: Nguyen et al., JMLR 15 (2014), Appendix B,
Tables 10-14. Labels P(erson), O(ther), L(ocation); nine features of weight 1.
The ninth, LOL, is active at t = 6 only: as Tables 1 and 10 write it, it would fire at every t, but
Tables 2 and 11 and all results have it at "France" alone.

Rows of the tables are the papers' t or j, columns their states. Misprints stay in the tables;
MISPRINTS lists them.
"""

import math

import numpy as np
import oracle

from spacy_hocrf.types import START

P, O, L = 0, 1, 2  # noqa: E741
PATTERNS = ((P,), (O,), (L,), (L, O, L))
LIMITS = (1, 1, 1)
LOG_PARTITION = 12.696
TOLERANCE = 0.01  # of a number printed with two decimals, itself computed from rounded ones

NO = -math.inf


def potentials():
    """NIPS Table 2, JMLR Table 11: a segment of one token scores 1 for its word's label, and LOL
    scores 1 at France.
    """
    word_label = (P, O, O, L, O, L, O, O)
    scores = np.zeros((8, 3))
    scores[np.arange(8), word_label] = 1.0
    rows = oracle.rows_of(8, (5, START, 3, 1.0))
    return oracle.plain(np.zeros((8, 3)), n_patterns=4, start=scores, **rows)


# (table, t, state): (printed, correct)
MISPRINTS = {("JMLR 12", 3, (L,)): (3.12, 3.10)}

# NIPS Table 3, t = 0..8, and JMLR Table 12, which is the same without t = 0: ln alpha(t, p).
FORWARD_STATES = ((), (P,), (O,), (L,), (L, O))
LOG_ALPHA = (
    (0.00, NO, NO, NO, NO),
    (NO, 1.00, 0.00, 0.00, NO),
    (NO, 1.55, 2.31, 1.55, 1.00),
    (NO, 3.10, 3.87, 3.12, 2.55),
    (NO, 4.65, 4.42, 5.65, 3.10),
    (NO, 6.21, 6.35, 6.21, 6.65),
    (NO, 7.76, 7.52, 9.21, 6.21),
    (NO, 9.60, 9.45, 9.59, 10.21),
    (NO, 11.14, 11.91, 11.14, 10.59),
)

# JMLR Table 13, j = 1..8: ln beta(j, s) of the states S = P·Y, the score of all that follows from
# token j on after s.
JMLR_BACKWARD_STATES = (
    *((P,), (O,), (L,)),
    *((P, P), (P, O), (P, L), (O, P), (O, O), (O, L), (L, P), (L, O), (L, L)),
    *((L, O, P), (L, O, O), (L, O, L)),
)
JMLR_LOG_BETA = (
    (12.70,) * 15,
    (11.14,) * 15,
    (9.59,) * 15,
    (8.04,) * 15,
    (6.21, 6.21, 6.66, 6.21, 6.21, 6.66, 6.21, 6.21, 6.66, 6.21, 6.21, 6.66, 6.21, 6.21, 6.66),
    (4.65, 4.65, 4.65, 4.65, 4.65, 4.65, 4.65, 4.65, 4.65, 4.65, 5.34, 4.65, 4.65, 4.65, 4.65),
    (3.10,) * 15,
    (1.55,) * 15,
)

# JMLR Table 14, j = 1..8: P(j, j, z | x) of the four patterns.
JMLR_MARGINALS = (
    (0.58, 0.21, 0.21, 0.00),
    (0.21, 0.58, 0.21, 0.00),
    (0.21, 0.58, 0.21, 0.03),
    (0.16, 0.16, 0.68, 0.08),
    (0.16, 0.68, 0.16, 0.01),
    (0.16, 0.16, 0.68, 0.39),
    (0.21, 0.58, 0.21, 0.01),
    (0.21, 0.58, 0.21, 0.08),
)
