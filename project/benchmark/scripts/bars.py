"""One function for each bar: what is measured, beside what, and how good it must be.

`python scripts/bars.py 4` measures one bar in this process and writes its result as one line of
JSON; `run.py` calls this for all of them, each in a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import models
import numpy as np
import peers
import spacy
import typer
from checks import NotTheSame, agree_with_count
from compare import FULL, SMALL, Course, Peer, Setting, beside_crfsuite, crf_bar, fresh_docs, turns
from corpora import Corpora, Sentence, concatenate
from machine import describe_machine
from measure import Work, idle_cores, take_turns
from results import Outcome, Row, megabytes, milliseconds, not_measured, speed
from spacy.language import Language
from spacy.tokens import Doc, Span

CHILD = Path(__file__).with_name("child.py")
CONLL, CORA = "CoNLL-2000", "Cora"
# CPU seconds an evaluation of a tuned rewrite of the released Java code, by task and order
FAST = {
    "punctuation": (0.25, 0.47, 1.2),
    "references": (0.36, 1.2, 2.8),
}
RELEASED_FEATURES = {  # of the same models, by task and order
    "punctuation": (425_784, 431_832, 437_625),
    "references": (38_894, 39_039, 39_206),
}


def main(
    bar: Annotated[str, typer.Argument(help="Number of the bar")],
    data: Annotated[Path, typer.Option(help="Folder with conll2000/ and hosemicrf/")] = Path(
        "assets"
    ),
    output: Annotated[
        Path | None, typer.Option(help="Write the result here rather than print it")
    ] = None,
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="36 shipped references instead of the corpora, few iterations"
        ),
    ] = False,
) -> None:
    """Measure one bar."""
    setting = (SMALL if small else FULL)(Corpora(data, small))
    begun = time.perf_counter()
    outcome = BARS[bar](setting)
    result = {
        "bar": bar,
        "small": small,
        "seconds": round(time.perf_counter() - begun),
        "machine": describe_machine(),
        **asdict(outcome),
    }
    line = json.dumps(result, ensure_ascii=False)
    if output:
        output.write_text(line + "\n", encoding="utf8")
    else:
        print(line)


# Time of an evaluation, with the optimiser's part


def bar_1(setting: Setting) -> Outcome:
    """Order 1, CoNLL-2000."""
    return crf_bar(setting, CONLL, setting.corpora.chunks(), {1: (0.5, 0.25)})


def bar_2(setting: Setting) -> Outcome:
    """Order 1, Cora; what must be depends on the instruction set."""
    used, known = models.instruction_set(), models.instruction_sets()
    is_best = not known or used == known[-1]
    limits = (0.5, 0.2) if is_best else (1.0, 0.6) if used == "baseline" else None
    outcome = crf_bar(setting, CORA, setting.corpora.references(), {1: limits})
    outcome.rows[0].what += f", {used}"
    return outcome if is_best else Outcome(outcome.rows, [], outcome.checks)


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
    peer = Peer(setting, sentences, models.crf(sentences, 1))
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
                    f"Fast: {fast * 1e3:,.0f} ms",
                    seconds[order] / fast,
                    must=0.1,
                    aim=1 / 30,
                )
            )
    return Outcome(rows, checks=checks)


# Whole training


def bar_3(setting: Setting) -> Outcome:
    """Training to within 1e-4 of CRFsuite's final loss; once, in turns of one iteration."""
    sentences = setting.corpora.chunks()
    nlp = models.crf(sentences, 1)
    peer = Peer(setting, sentences, nlp)
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


# Prediction


def bar_9(setting: Setting) -> Outcome:
    """Segmentations from token attributes, CoNLL-2000's test part; when timed, longer patterns have
    small random weights.
    """
    train, test = setting.corpora.chunks(), setting.corpora.chunks("test")
    nlps = {order: models.crf(train, order) for order in (1, 3)}
    peer = Peer(setting, train, nlps[1], setting.peer_iterations)
    pipes = {order: models.component(nlp) for order, nlp in nlps.items()}
    docs = {order: fresh_docs(nlp, test) for order, nlp in nlps.items()}
    strings = models.observation_strings(pipes[1], docs[1])
    expected = [peer.tagger.tag(sentence) for sentence in strings]
    checks = [peer.check]
    for order, pipe in pipes.items():
        weights = peer.weights(nlps[order])
        models.use_weights(pipe, weights)
        checks.append(f"order {order}: {_agreement(models.segment(pipe, docs[order]), expected)}")
        longer = pipe.structure.index.feature_order > 1
        weights[longer] = np.random.default_rng(0).normal(0.0, 0.1, longer.sum())
        models.use_weights(pipe, weights)
    tokens = sum(map(len, strings))
    sides: dict[str, Callable[[], Work]] = {
        "CRFsuite": lambda: partial(_tag_all, peer.tagger, strings)
    }
    for order, pipe in pipes.items():
        sides[f"order {order}"] = partial(_segmenting, pipe, docs[order], tokens)
    seconds = take_turns(sides, setting.rounds)
    rows = []
    for order, (must, aim) in {1: (1.0, 2.0), 3: (0.7, 1.5)}.items():
        ratio = seconds["CRFsuite"] / seconds[f"order {order}"]
        speeds = (speed(seconds[f"order {order}"]), speed(seconds["CRFsuite"]))
        rows.append(
            Row(
                f"tagging, order {order}, {CONLL}",
                *speeds,
                ratio,
                must=must,
                aim=aim,
                at_least=True,
            )
        )
    return Outcome(rows, checks=checks)


def bar_10(setting: Setting) -> Outcome:
    """`nlp.pipe` over tokenised Docs, beside spaCy's `ner`, a pipeline that only sets the same
    spans, and an empty one.
    """
    train, test = setting.corpora.chunks(), setting.corpora.chunks("test")[:1_000]
    nlp = models.chunker(train, 1)
    training = models.Training(nlp)
    training.step(setting.peer_iterations)
    models.use_weights(models.component(nlp), training.run.weights)
    ner = peers.train_ner(train, setting.ner_steps)
    spans = [
        [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        for doc in nlp.pipe(fresh_docs(nlp, test))
    ]
    setter, empty = spacy.blank("en"), spacy.blank("en")
    setter.add_pipe("benchmark_set_spans")
    sides: dict[str, Callable[[], Work]] = {
        name: partial(_piping, pipeline, test, spans)
        for name, pipeline in (("ner", ner), ("ours", nlp), ("set", setter), ("empty", empty))
    }
    seconds = take_turns(sides, setting.rounds)
    speeds = (speed(seconds["ours"]), speed(seconds["ner"]))
    setting_share = seconds["set"] / seconds["ours"]
    return Outcome(
        [
            Row(
                f"nlp.pipe, order 1, {CONLL}",
                *speeds,
                seconds["ner"] / seconds["ours"],
                must=5.0,
                aim=15.0,
                at_least=True,
            ),
            Row(
                "of that, spaCy's own: nlp.pipe with a component that sets the same spans",
                speed(seconds["set"]),
                "",
                setting_share,
            ),
            Row(
                "of that, nlp.pipe without any component",
                speed(seconds["empty"]),
                "",
                seconds["empty"] / seconds["ours"],
            ),
        ],
        checks=[f"{sum(map(len, spans)):,} spans in {len(spans):,} Docs"],
    )


# Memory, threads, import


def bar_11(setting: Setting) -> Outcome:
    """Peak memory of training in a fresh process, above the same process idle."""
    sentences = setting.corpora.chunks()
    iterations = str(setting.memory_iterations)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "observations.tsv"
        nlp = models.crf(sentences, 1)
        _write_observations(
            path,
            models.observation_strings(models.component(nlp), fresh_docs(nlp, sentences)),
            sentences,
        )
        theirs = _child("crfsuite", str(path), iterations)
    corpus = [str(setting.corpora.data), *(["--small"] if setting.corpora.small else [])]
    if theirs["peak"] is None:
        return Outcome(
            [not_measured("peak memory of training", "there is no /proc/self/status", 2.0, 1.0)]
        )
    idle = _child("idle")["peak"]
    peer = theirs["peak"] - theirs["idle"]
    rows = []
    for order, (must, aim) in {1: (2.0, 1.0), 3: (3.0, 1.5)}.items():
        above = _child("ours", "chunks", str(order), iterations, *corpus)["peak"] - idle
        what = f"peak memory of training, order {order}, {CONLL}"
        rows.append(Row(what, megabytes(above), megabytes(peer), above / peer, must=must, aim=aim))
    peak = _child("ours", "tags", "2", iterations, *corpus)["peak"]
    what = "peak memory of a process that trains order 2 on EWT, 49 tags"
    rows.append(Row(what, megabytes(peak), "", peak / 1e6, unit="MB", must=4_000.0))
    return Outcome(rows, checks=[f"idle with spaCy imported: {megabytes(idle)}"])


def bar_12(setting: Setting) -> Outcome:
    """Wall time of one thread over that of two."""
    what = f"two threads, order 1, {CONLL}, wall time"
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    idle = idle_cores()
    if cores < 2 or idle is None or idle < 1.8:
        free = (
            "the number of idle cores is unknown"
            if idle is None
            else f"{idle:.1f} of {cores} cores were idle"
        )
        return Outcome([not_measured(what, f"{free}, 1.8 are needed", 1.7, 1.9, at_least=True)])
    sentences = setting.corpora.chunks()
    trainings = {
        threads: models.Training(models.crf(sentences, 1, threads=threads)) for threads in (1, 2)
    }
    sides = {threads: turns(setting, training) for threads, training in trainings.items()}
    seconds = take_turns(sides, setting.rounds, clock=time.perf_counter)
    speed_up = seconds[1] / seconds[2]
    return Outcome(
        [
            Row(
                what,
                milliseconds(seconds[2]),
                milliseconds(seconds[1]),
                speed_up,
                must=1.7,
                aim=1.9,
                at_least=True,
            )
        ]
    )


def bar_13(setting: Setting) -> Outcome:
    """Import of the package after spaCy's own; loading a model of a million features."""
    imports = _import_seconds(setting.imports)
    nlp = models.crf(setting.corpora.chunks()[: setting.million_sentences], 1, unseen=True)
    size = len(models.component(nlp).structure.index)
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        part = Path(folder) / nlp.pipe_names[0]
        seconds = take_turns(
            {
                "model": lambda: partial(_load, spacy.load, folder),
                "component": lambda: partial(_load, models.component(nlp).from_disk, part),
            },
            setting.rounds,
        )
    loaded = f"loading a model of {size / 1e6:.2f} million features"
    return Outcome(
        [
            Row(
                "import of what spacy.blank imports of a plugin, after spaCy",
                f"{imports['plugin'] * 1e3:.1f} ms",
                "",
                imports["plugin"] * 1e3,
                unit="ms",
                must=10.0,
            ),
            Row(
                "import of the whole component, at the first add_pipe",
                f"{imports['component'] * 1e3:.1f} ms",
                "",
            ),
            Row(
                f"{loaded}: the component",
                f"{seconds['component']:.2f} s",
                "",
                seconds["component"],
                unit="s",
                must=0.5,
            ),
            Row(
                f"{loaded}: spacy.load, with vocabulary and tokenizer",
                f"{seconds['model']:.2f} s",
                "",
            ),
        ]
    )


BARS: dict[str, Callable[[Setting], Outcome]] = {
    str(number): bar
    for number, bar in enumerate(
        (
            bar_1,
            bar_2,
            bar_3,
            bar_4,
            bar_5,
            bar_6,
            bar_7,
            bar_8,
            bar_9,
            bar_10,
            bar_11,
            bar_12,
            bar_13,
        ),
        start=1,
    )
}


def _agreement(predictions: Sequence, expected: Sequence[Sequence[str]]) -> str:
    """RAISES (NotTheSame): if more than one tag in ten thousand differs; ours are weights in
    float32, so ties may.
    """
    found = [label for prediction in predictions for _, _, label in prediction.spans]
    flat = [label for sentence in expected for label in sentence]
    same = sum(a == b for a, b in zip(found, flat))
    if len(found) != len(flat) or same < 0.9999 * len(flat):
        raise NotTheSame(f"{same} of {len(flat)} tags are those of CRFsuite")
    return f"{same:,} of {len(flat):,} tags are those of CRFsuite with the same weights"


def _tag_all(tagger: object, strings: Sequence[Sequence[Sequence[str]]]) -> int:
    return sum(len(tagger.tag(sentence)) for sentence in strings)


def _segmenting(pipe: object, docs: Sequence[Doc], tokens: int) -> Work:
    def work() -> int:
        models.segment(pipe, docs)
        return tokens

    return work


def _piping(
    nlp: Language, sentences: Sequence[Sentence], spans: Sequence[Sequence[tuple[int, int, str]]]
) -> Work:
    """A run of a pipeline over new Docs; `spans` are what benchmark_set_spans sets."""
    docs = fresh_docs(nlp, sentences)
    for doc, found in zip(docs, spans):
        doc.user_data["benchmark"] = found
    return lambda: sum(len(doc) for doc in nlp.pipe(docs))


@Language.component("benchmark_set_spans")
def _set_spans(doc: Doc) -> Doc:
    doc.set_ents([Span(doc, start, end, label) for start, end, label in doc.user_data["benchmark"]])
    return doc


def _load(load: Callable, path: str | Path) -> int:
    load(path)
    return 1


def _write_observations(
    path: Path, observed: peers.Observed, sentences: Sequence[Sentence]
) -> None:
    """A line for each token, its label and what is observed between tabs; an empty line after each
    sentence.
    """
    with path.open("w", encoding="utf8") as file:
        for tokens, (_, labels) in zip(observed, sentences):
            file.writelines(
                "\t".join([label, *token]) + "\n" for token, label in zip(tokens, labels)
            )
            file.write("\n")


def _import_seconds(times: int) -> dict[str, float]:
    """The least CPU times of importing the package, which is compiled first, as an installed one
    is.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        environment["PYTHONPYCACHEPREFIX"] = folder
        _child("import", environment=environment)
        found = [_child("import", environment=environment) for _ in range(times)]
        return {what: min(each[what] for each in found) for what in found[0]}


def _child(*arguments: str, environment: Mapping[str, str] | None = None) -> dict:
    """What a fresh process says."""
    command = [sys.executable, str(CHILD), *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    typer.run(main)
