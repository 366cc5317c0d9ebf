"""High-order CRF as the NIPS 2009 paper computes it: alpha over prefixes P, beta over suffixes S,
marginals by formula.

Ye, Lee, Chieu and Wu, Conditional Random Fields with High-Order Features for Sequence Labeling,
NIPS 22 (2009), §3.1. For segments of one token. Label sequences are tuples, oldest first; t counts
from 1 as in the paper; `log_g(z, t)` is Σ_{i: z^i = z} λ_i g_i(x, t). A second oracle: its
marginals come out of a formula that the engine does not use.

The paper's text needs three corrections, each confirmed by enumeration:

* S is {z_k..|z|: 2 ≤ k ≤ |z| + 1}, the proper *suffixes* and ε; the text prints the indices of
  prefixes, z_1..k.
* O_x counts the patterns that contain z, z itself included ("z ⊆ z^k"; the text's "properly
  containing" is wrong).
* O_x must count only occurrences that cover *this* z, the one that ends at t. As written, "z ⊆ z^k
  ⊆_k' [p, z, s]" would also count, for z = O in OOO, the other two O, which alpha and beta have
  counted already.
"""

import math

from spacy_hocrf.types import INNER


class PrefixSuffix:
    """Forward and backward variables of one sequence.

    patterns (tuple[LabelPattern, ...]): [Z] all label patterns, the labels (0,), (1,), … among
        them.
    labels (int): Y.
    length (int): T.
    log_g (Callable[[LabelPattern, int], float]): log potential of a pattern that ends at t = 1..T.
    """

    def __init__(self, patterns, labels, length, log_g):
        self.patterns, self.length, self.log_g = patterns, length, log_g
        self.labels = tuple((y,) for y in range(labels))
        self.prefixes = {*self.labels, *(z[:k] for z in patterns for k in range(len(z)))}
        self.suffixes = {*self.labels, *(z[k:] for z in patterns for k in range(1, len(z) + 1))}
        self.alpha = self._forward()
        self.beta = self._backward()
        self.partition = math.fsum(self.alpha[length].values())

    def longest_prefix(self, z):
        """The p of P with p ≤^s_P z: the longest suffix of z that is a forward state."""
        return max((p for p in self.prefixes if is_suffix(p, z)), key=len)

    def longest_suffix(self, z):
        """The s of S with s ≤^p_S z: the longest prefix of z that is a backward state."""
        return max((s for s in self.suffixes if is_prefix(s, z)), key=len)

    def psi_prefix(self, t, p):
        """Ψ^p(t, p): all patterns that end p end at t."""
        return math.exp(math.fsum(self.log_g(z, t) for z in self.patterns if is_suffix(z, p)))

    def psi_suffix(self, t, s):
        """Ψ^s(t, s): all patterns that begin s begin at t."""
        return math.exp(
            math.fsum(self.log_g(z, t + len(z) - 1) for z in self.patterns if is_prefix(z, s))
        )

    def _forward(self):
        """alpha[t][p] = Σ_{(p', y): p ≤^s_P p'y} Ψ^p(t, p'y) alpha[t-1][p'], t = 0..T."""
        alpha = [{p: float(p == ()) for p in self.prefixes}]
        for t in range(1, self.length + 1):
            alpha.append(dict.fromkeys(self.prefixes, 0.0))
            for p, mass in alpha[t - 1].items():
                for y in self.labels:
                    if mass:
                        alpha[t][self.longest_prefix(p + y)] += self.psi_prefix(t, p + y) * mass
        return alpha

    def _backward(self):
        """beta[t][s] = Σ_{(s', y): s ≤^p_S ys'} Ψ^s(t, ys') beta[t+1][s'], t = T+1..1."""
        beta = {self.length + 1: {s: float(s == ()) for s in self.suffixes}}
        for t in range(self.length, 0, -1):
            beta[t] = dict.fromkeys(self.suffixes, 0.0)
            for s, mass in beta[t + 1].items():
                for y in self.labels:
                    if mass:
                        beta[t][self.longest_suffix(y + s)] += self.psi_suffix(t, y + s) * mass
        return beta

    def marginal(self, t, z):
        """P(y_{t-|z|+1..t} = z | x) = Σ alpha(t-1, p) beta(t-|z|+2, s) O(t, p, s, z) / (Z W(t, z))."""
        if t < len(z):
            return 0.0
        first = t - len(z) + 2
        mass = [
            self.alpha[t - 1][p] * self.beta[first][s] * self._outer(t, p, s, z)
            for p in self.prefixes
            for s in self.suffixes
            if is_suffix(z[:-1], p)
            and is_prefix(z[1:], s)
            and self.alpha[t - 1][p]
            and self.beta[first][s]
        ]
        return math.fsum(mass) / (self.partition * self._within(t, z))

    def _outer(self, t, p, s, z):
        """O_x: what alpha and beta both miss, the patterns that contain this z, within [p, z, s]."""
        whole = p[: len(p) - (len(z) - 1)] + z + s[len(z) - 1 :]
        # z is whole[begin:end]; whole[0] lies at t - |p|
        begin, end = len(p) - (len(z) - 1), len(p) + 1
        log = [
            self.log_g(pattern, t - len(p) + k - 1)
            for pattern in self.patterns
            for k in range(end, len(whole) + 1)
            if k - len(pattern) in range(begin + 1) and whole[k - len(pattern) : k] == pattern
        ]
        return math.exp(math.fsum(log))

    def _within(self, t, z):
        """W_x: what alpha and beta both count, the patterns strictly within z."""
        log = [
            self.log_g(pattern, t - len(z) + j)
            for pattern in self.patterns
            for j in range(2, len(z))
            if is_within(pattern, z, j)
        ]
        return math.exp(math.fsum(log))


def is_prefix(short, long):
    return long[: len(short)] == short


def is_suffix(short, long):
    return len(short) <= len(long) and long[len(long) - len(short) :] == short


def is_within(pattern, z, j):
    """pattern ⊂_j z: it lies in z_{2..|z|-1} and ends at position j of z."""
    return len(pattern) <= j - 1 and z[j - len(pattern) : j] == pattern


def from_potentials(potentials, patterns):
    """The `PrefixSuffix` of one sequence of `Potentials`, read as a CRF: segments of one token, all
    allowed.
    """
    p = potentials
    length, labels = p.start.shape

    def log_g(pattern, t):
        z, u = patterns.index(pattern), t - 1
        scores = [p.const[z]]
        if z < labels:
            scores += [p.start[u, z], p.end[u, z], p.token[u, z]]
        for r in range(p.row_offsets[u], p.row_offsets[u + 1]):
            if p.row_pattern[r] == z and p.row_part[r] != INNER:
                scores.append(p.row_score[r])
        scores += [
            scores_of[0]
            for g, scores_of in zip(p.length_pattern, p.length_score, strict=True)
            if g == z
        ]
        spans = zip(p.span_start, p.span_end, p.span_pattern, p.span_score, strict=True)
        scores += [score for start, end, g, score in spans if (start, end, g) == (u, u + 1, z)]
        return math.fsum(scores)

    return PrefixSuffix(patterns, labels, length, log_g)
