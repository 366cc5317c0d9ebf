"""Functions with their gradients, and minima that are known or unique: for the tests of optimisers."""

import numpy as np


def quadratic(curvatures, minimum):
    def objective(x):
        gradient = curvatures * (x - minimum)
        return 0.5 * float(gradient @ (x - minimum)), gradient

    return objective


def rosenbrock(x):
    residual = x[1:] - x[:-1] ** 2
    g = np.zeros_like(x)
    g[:-1] = -400.0 * x[:-1] * residual - 2.0 * (1.0 - x[:-1])
    g[1:] += 200.0 * residual
    return float((100.0 * residual**2 + (1.0 - x[:-1]) ** 2).sum()), g


def log_barrier(x):
    """Σ 3x - log x - log(1 - x): finite only inside the unit cube, where it is least at x = (5 -
    √13) / 6.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((3.0 * x - np.log(x) - np.log(1.0 - x)).sum()), 3.0 - 1.0 / x + 1.0 / (1.0 - x)


def logistic_regression(seed, n=200, size=30, sigma=1.0):
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(n, size)) * (random.random((n, size)) < 0.3)
    outputs = np.where(
        inputs @ random.normal(size=size) * 2.0 + random.logistic(size=n) > 0.0, 1.0, -1.0
    )

    def objective(w):
        margin = outputs * (inputs @ w)
        probability = 1.0 / (1.0 + np.exp(margin))
        f = np.logaddexp(0.0, -margin).sum() + 0.5 * w @ w / sigma**2
        return float(f), w / sigma**2 - inputs.T @ (outputs * probability)

    return objective, size


def linear_chain_crf(seed, n=40, length=8, words=30, labels=3):
    """The likelihood of a linear-chain CRF with a Gaussian prior, its gradient by forward-backward."""
    random = np.random.default_rng(seed)
    x = random.integers(0, words, (n, length))
    emission, transition = (
        random.normal(size=(words, labels)) * 1.5,
        random.normal(size=(labels, labels)) * 2.0,
    )
    y = np.zeros((n, length), dtype=np.int64)
    for t in range(length):
        scores = emission[x[:, t]] + (transition[y[:, t - 1]] if t else 0.0)
        y[:, t] = (scores + random.gumbel(size=scores.shape)).argmax(1)

    def objective(w):
        unary, binary = (
            w[: words * labels].reshape(words, labels)[x],
            w[words * labels :].reshape(labels, labels),
        )
        alpha, beta = unary.copy(), np.zeros_like(unary)
        for t in range(1, length):
            alpha[:, t] += np.log(np.exp(alpha[:, t - 1, :, None] + binary).sum(1))
        for t in reversed(range(length - 1)):
            beta[:, t] = np.log(np.exp(binary + (unary + beta)[:, t + 1, None, :]).sum(2))
        log_partition = np.log(np.exp(alpha[:, -1]).sum(1))
        g_unary, g_binary = np.zeros((words, labels)), np.zeros((labels, labels))
        np.add.at(
            g_unary, x, np.exp(alpha + beta - log_partition[:, None, None]) - np.eye(labels)[y]
        )
        for t in range(1, length):
            after = (unary + beta)[:, t, None, :] - log_partition[:, None, None]
            g_binary += np.exp(alpha[:, t - 1, :, None] + binary + after).sum(0)
        np.add.at(g_binary, (y[:, :-1], y[:, 1:]), -1.0)
        gold = (
            np.take_along_axis(unary, y[..., None], axis=2).sum()
            + binary[y[:, :-1], y[:, 1:]].sum()
        )
        return float(log_partition.sum() - gold + 0.5 * w @ w), np.append(g_unary, g_binary) + w

    return objective, words * labels + labels * labels
