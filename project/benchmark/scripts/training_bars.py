"""Bars 1 to 8: the time of an evaluation of the objective and its gradient, with the optimiser's
part, and of a whole training.
"""

import models
import numpy as np
import peers
from checks import NotTheSame, agree_with_count
from compare import CONLL, CORA, Course, Peer, Setting, beside_crfsuite, crf_bar, turns
from corpora import concatenate
from measure import take_turns
from results import Outcome, Row, milliseconds

# CPU seconds an evaluation of a tuned rewrite of the released Java code, by task and order
FAST = {
    "punctuation": (0.25, 0.47, 1.2),
    "references": (0.36, 1.2, 2.8),
}
RELEASED_FEATURES = {  # of the same models, by task and order
    "punctuation": (425_784, 431_832, 437_625),
    "references": (38_894, 39_039, 39_206),
}


def bar_1(setting: Setting) -> Outcome:
    """Order 1, CoNLL-2000."""
    return crf_bar(setting, CONLL, setting.corpora.chunks(), {1: (0.5, 0.25)})


def bar_2(setting: Setting) -> Outcome:
    """Order 1, Cora; what must be depends on the instruction set."""
    used, builds = models.instruction_set(), models.instruction_sets()
    is_best = not builds or used == builds[-1]
    limits = (0.5, 0.2) if is_best else (1.0, 0.6) if used == "baseline" else None
    outcome = crf_bar(setting, CORA, setting.corpora.references(), {1: limits})
    outcome.rows[0].what += f", {used}"
    return outcome if is_best else Outcome(outcome.rows, [], outcome.checks)


def bar_3(setting: Setting) -> Outcome:
    """Training to within 1e-4 of CRFsuite's final loss; once, in turns of one iteration."""
    sentences = setting.corpora.chunks()
    nlp = models.crf(sentences, 1)
    peer = Peer(sentences, nlp)
    crfsuite, ours = peer.training(), models.Training(nlp)
    theirs_at, ours_at = Course(), Course()
    while crfsuite.running and len(crfsuite.losses) < setting.whole_iterations:
        theirs_at.follow(crfsuite.step, lambda: crfsuite.losses[-1])
        ours_at.follow(ours.step, lambda: ours.run.loss)
    crfsuite.close()
    target = (1 + 1e-4) * crfsuite.losses[-1]
    while ours.run.running and ours.run.loss > target:
        ours_at.follow(ours.step, lambda: ours.run.loss)
    scipy = peers.minimize_with_scipy(
        models.component(nlp).objective(), np.zeros(ours.parameters), target
    )
    (evaluations, seconds), (their_evaluations, their_seconds) = (
        ours_at.reached(target),
        theirs_at.reached(target),
    )
    all_evaluations, all_seconds = theirs_at.reached(crfsuite.losses[-1])
    what = f"training to within 1e-4 of CRFsuite's final loss, order 1, {CONLL}"
    return Outcome(
        [
            Row(
                f"{what}: CPU time",
                f"{seconds:.1f} s",
                f"{their_seconds:.1f} s",
                seconds / their_seconds,
                must=0.5,
                aim=0.25,
            ),
            Row(
                f"{what}: evaluations",
                f"{evaluations}",
                f"{their_evaluations}",
                evaluations / their_evaluations,
                must=1.0,
                aim=0.8,
            ),
            Row(
                "CRFsuite to its own stop",
                "",
                f"{all_seconds:.1f} s, {all_evaluations} evaluations",
            ),
            Row(
                "SciPy's L-BFGS-B with our objective, to the same value",
                f"{seconds:.1f} s, {evaluations} evaluations",
                f"{scipy.seconds:.1f} s, {scipy.evaluations} evaluations",
                seconds / scipy.seconds,
            ),
        ],
        checks=[peer.check],
    )


def bar_4(setting: Setting) -> Outcome:
    """Order 2, CoNLL-2000."""
    return crf_bar(setting, CONLL, setting.corpora.chunks(), {2: (1.2, 0.8)})


def bar_5(setting: Setting) -> Outcome:
    """Orders 2 and 3, Cora; order 3, CoNLL-2000."""
    cora = crf_bar(setting, CORA, setting.corpora.references(), {2: None, 3: (2.0, 1.0)})
    conll = crf_bar(setting, CONLL, setting.corpora.chunks(), {3: (5.0, 3.0)})
    return Outcome(cora.rows + conll.rows, cora.points + conll.points, cora.checks + conll.checks)


def bar_6(setting: Setting) -> Outcome:
    """Semi-CRFs of order 1 to 3, Cora; limits learnt from the data."""
    sentences = setting.corpora.references()
    semi = {order: models.semi_crf(sentences, order) for order in (1, 2, 3)}
    limits = models.component(semi[1]).structure.scheme.limits
    what = f"semi-CRF, limits {min(limits)} to {max(limits)}"
    peer = Peer(sentences, models.crf(sentences, 1))
    lengths = [len(words) for words, _ in sentences]
    checks = [
        peer.check,
        *(
            f"semi-CRF, order {order}: {agree_with_count(nlp, lengths)}"
            for order, nlp in semi.items()
        ),
    ]
    outcome = beside_crfsuite(
        setting, CORA, semi, peer, {1: (4.0, 1.5), 2: None, 3: (8.0, 3.0)}, what
    )
    return Outcome(outcome.rows, outcome.points, checks)


def bar_7(setting: Setting) -> Outcome:
    """A semi-CRF on long documents: does the time depend on the limit of the length?"""
    shortest = 10
    documents = concatenate(setting.corpora.references(), setting.long_document)
    limits = {"10": 10, "100": 100, "1,000": 1_000, "unlimited": 0}
    nlps = {
        name: models.semi_crf(documents, 1, max_length=limit, longest=shortest)
        for name, limit in limits.items()
    }
    lengths = [len(words) for words, _ in documents]
    checks = [f"L = {name}: {agree_with_count(nlp, lengths)}" for name, nlp in nlps.items()]
    seconds = take_turns(
        {name: turns(setting, models.Training(nlp)) for name, nlp in nlps.items()}, setting.rounds
    )
    times = [milliseconds(value) for value in seconds.values()]
    fastest = min(seconds.values())
    what = (
        f"semi-CRF, {len(documents)} documents of {min(lengths):,} to {max(lengths):,} tokens, "
        f"L = {', '.join(limits)}"
    )
    return Outcome(
        [
            Row(
                what,
                "; ".join(times),
                milliseconds(fastest),
                max(seconds.values()) / fastest,
                must=1.5,
                aim=1.2,
            )
        ],
        checks=checks,
    )


def bar_8(setting: Setting) -> Outcome:
    """The semi-CRFs of Nguyen et al. (2014) with the paper's templates."""
    rows, checks = [], []
    for task, sentences in (
        ("punctuation", setting.corpora.punctuation()),
        ("references", setting.corpora.references()),
    ):
        nlps = {order: models.jmlr_model(task, order, sentences) for order in (1, 2, 3)}
        lengths = [len(words) for words, _ in sentences]
        for order, nlp in nlps.items():
            size, expected = (
                len(models.component(nlp).structure.index),
                RELEASED_FEATURES[task][order - 1],
            )
            if size != expected and not setting.corpora.small:
                raise NotTheSame(
                    f"{task} SC{order} has {size} features, {expected} in the released code"
                )
            checks.append(f"{task} SC{order}: {size:,} features, {agree_with_count(nlp, lengths)}")
        seconds = take_turns(
            {order: turns(setting, models.Training(nlp)) for order, nlp in nlps.items()},
            setting.rounds,
        )
        for order, fast in enumerate(FAST[task], start=1):
            ours = milliseconds(seconds[order])
            rows.append(
                Row(
                    f"JMLR, {task} SC{order}",
                    ours,
                    f"Fast, measured elsewhere: {fast * 1e3:,.0f} ms",
                    seconds[order] / fast,
                    must=0.1,
                    aim=1 / 30,
                )
            )
    return Outcome(rows, checks=checks)
