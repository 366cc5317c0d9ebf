"""`spacy_hocrf.sklearn` and `spacy_hocrf.pycrfsuite` beside sklearn-crfsuite and python-crfsuite.

    python scripts/toolkits.py f1 --data assets        F1 with the same observations and the same c2
    python scripts/toolkits.py files --data assets     20 models of python-crfsuite, tagged by both
    python scripts/toolkits.py f1 --few --data assets  with the twelve attributes of `few_features`
    python scripts/toolkits.py train --data assets     passes, loss and CPU time of the training algorithms
    python scripts/toolkits.py tag --data assets       CPU time of tagging with one model file

F1 is that of spans, in percent. CoNLL-2000: the last 1,000 sentences for training are held back. Cora: all
300 references for training, each found by a model of the four fifths that it is not in. `train` has the first
1,000 sentences of CoNLL-2000. No test part is read. sklearn-crfsuite is not among the extras: pip install
sklearn-crfsuite.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from corpora import Corpora, DataOption, SmallOption
from user_features import features, few_features

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Sentence, Spans, chunks_of, runs
from common.scores import ratios

HELD_BACK = 1000
FOLDS = 5
TRAINED_ON = 300
"""Sentences that each model of `files` is trained on."""
MODELS = [
    (algorithm, {**params, **more})
    for algorithm, params in (
        ("lbfgs", {"max_iterations": 60}),
        ("l2sgd", {"max_iterations": 30}),
        ("ap", {"max_iterations": 10}),
        ("pa", {"max_iterations": 10}),
        ("arow", {"max_iterations": 10}),
    )
    for more in ({}, {"feature.possible_transitions": True, "feature.minfreq": 2.0})
]

TRAINING = (
    ("lbfgs", {"c2": 1.0}),
    ("lbfgs", {"c1": 0.1, "c2": 1.0}),
    ("lbfgs", {"c1": 0.1, "c2": 0.1}),
    ("lbfgs", {"c1": 1.0, "c2": 0.0}),
    ("ap", {"epsilon": 0.05}),
    ("ap", {"epsilon": 0.02}),
    ("ap", {"epsilon": 0.01}),
    ("ap", {"epsilon": 0.005}),
    ("pa", {"max_iterations": 10}),
    ("arow", {"max_iterations": 10}),
)
"""Algorithms and parameters that `train` compares."""

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def f1(
    data: DataOption = Path("assets"),
    c2: Annotated[list[float], typer.Option(help="coefficient of L2")] = [1.0],  # noqa: B006
    orders: str = "1,2,3",
    few: Annotated[bool, typer.Option("--few", help="twelve attributes a word")] = False,
    corpora: Annotated[str, typer.Option(help="some of the two")] = "CoNLL-2000,Cora",
    small: SmallOption = False,
) -> None:
    """Print a table: F1 and CPU seconds of training."""
    from sklearn_crfsuite import CRF

    from spacy_hocrf.sklearn import HighOrderCRF

    print("| corpus | c2 | estimator | F1 | training, CPU s |\n|---|---|---|---|---|")
    for corpus, spans, parts in _tasks(Corpora(data, small)):
        for strength in c2 if corpus in corpora.split(",") else ():
            makers: list[tuple[str, Callable[[], Any]]] = [
                ("sklearn-crfsuite", lambda c2=strength: CRF(c2=c2)),
                *(
                    (
                        f"HighOrderCRF, order {k}",
                        lambda c2=strength, k=k: HighOrderCRF(c2=c2, order=k),
                    )
                    for k in map(int, orders.split(","))
                ),
            ]
            for name, make in makers:
                seen = few_features if few else features
                f, seconds = _evaluate(make, spans, parts, seen)
                print(
                    f"| {corpus} | {strength:g} | {name} | {f:.2f} | {seconds:.1f} |",
                    flush=True,
                )


@app.command()
def files(
    data: DataOption = Path("assets"),
    sentences: Annotated[int, typer.Option(help="that each model tags")] = 10_000,
    small: SmallOption = False,
) -> None:
    """Print on how many sentences labels and probabilities of the same model files differ."""
    import pycrfsuite

    from spacy_hocrf import pycrfsuite as ours

    corpora = Corpora(data, small)
    everything = [*corpora.chunks(), *corpora.references(), *corpora.punctuation()][:sentences]
    with TemporaryDirectory() as folder:
        pairs = []
        for i, path in enumerate(_train(corpora, Path(folder))):
            theirs, mine = pycrfsuite.Tagger(), ours.Tagger()
            theirs.open(str(path))
            mine.open(path)
            pairs.append((theirs, mine))
            print(f"{i + 1} models", end="\r", file=sys.stderr)
        differ = ties = 0
        largest = 0.0
        for sentence in everything:
            items = features(sentence.words)
            for theirs, mine in pairs:
                labels = theirs.tag(items)
                probability = theirs.probability(labels)
                other = mine.tag(items)
                largest = max(largest, abs(mine.probability(labels) - probability))
                if other != labels:
                    tie = abs(mine.probability(other) - probability) < 1e-9
                    differ, ties = differ + (not tie), ties + tie
    print(f"{len(pairs)} models, {len(everything)} sentences each: labels differ on {differ}")
    print(f"({ties} more, as probable); probabilities of labellings by {largest:.1e} at most")


@app.command()
def train(
    data: DataOption = Path("assets"),
    algorithms: Annotated[str, typer.Option(help="some of lbfgs, ap, pa and arow")] = "",
    sentences: Annotated[int, typer.Option(help="to learn from")] = 1000,
    rounds: Annotated[int, typer.Option(help="one after the other, of which the best counts")] = 3,
    small: SmallOption = False,
) -> None:
    """Print a table: passes, the last one's loss and CPU seconds of both modules' training."""
    import pycrfsuite

    from spacy_hocrf import pycrfsuite as ours

    corpus = Corpora(data, small).chunks()[:sentences]
    sequences = [(features(each.words), each.labels) for each in corpus]
    print("| | passes, CRFsuite | here | loss, CRFsuite | here | CPU s, CRFsuite | here | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for algorithm, params in TRAINING:
        if algorithms and algorithm not in algorithms.split(","):
            continue
        best = [float("inf"), float("inf")]
        passes, loss = [0, 0], [0.0, 0.0]
        for _ in range(rounds):
            for i, module in enumerate((pycrfsuite, ours)):
                trainer = module.Trainer(algorithm, params, verbose=False)
                for items, labels in sequences:
                    trainer.append(items, labels)
                before = time.process_time()
                trainer.train("")
                best[i] = min(best[i], time.process_time() - before)
                iterations = trainer.logparser.iterations
                passes[i], loss[i] = len(iterations), iterations[-1]["loss"]
        name = ", ".join(
            [f"`{algorithm}`", *(f"`{key} = {each:g}`" for key, each in params.items())]
        )
        print(
            f"| {name} | {passes[0]} | {passes[1]} | {loss[0]:.2f} | {loss[1]:.2f} "
            f"| {best[0]:.2f} | {best[1]:.2f} | {best[1] / best[0]:.2f} |",
            flush=True,
        )


@app.command()
def tag(
    data: DataOption = Path("assets"),
    sentences: Annotated[int, typer.Option(help="that are tagged")] = 500,
    rounds: Annotated[int, typer.Option(help="by turns, of which the best counts")] = 5,
    small: SmallOption = False,
) -> None:
    """Print a table: CPU time of a sentence with the same model file, of both modules' taggers, and of both
    estimators.
    """
    import pycrfsuite
    from sklearn_crfsuite import CRF

    from spacy_hocrf import pycrfsuite as ours
    from spacy_hocrf.sklearn import HighOrderCRF

    print("| | attributes | CRFsuite, us | here, us | ratio |")
    print("|---|---|---:|---:|---:|")
    corpora = Corpora(data, small)
    for corpus, words in (("CoNLL-2000", corpora.chunks()), ("Cora", corpora.references())):
        some = words[-sentences:]
        for kind, seen in (("lists", features), ("dicts", few_features)):
            x = [seen(s.words) for s in words[:TRAINED_ON]]
            y = [s.labels for s in words[:TRAINED_ON]]
            items = [seen(s.words) for s in some]
            trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 30}, verbose=False)
            for xseq, yseq in zip(x, y):
                trainer.append(xseq, yseq)
            with TemporaryDirectory() as folder:
                trainer.train(f"{folder}/model")
                taggers = pycrfsuite.Tagger(), ours.Tagger()
                for tagger in taggers:
                    tagger.open(f"{folder}/model")
            crfs = [make(max_iterations=30).fit(x, y) for make in (CRF, HighOrderCRF)]
            for what, sides in (
                ("`tag`", [partial(_tag, each.tag, items) for each in taggers]),
                (
                    "`tag` and `probability`",
                    [partial(_tag_and_ask, each, items) for each in taggers],
                ),
                ("`predict`", [partial(each.predict, items) for each in crfs]),
            ):
                best = [float("inf"), float("inf")]
                for _ in range(rounds):
                    for i, work in enumerate(sides):
                        before = time.process_time()
                        work()
                        best[i] = min(best[i], time.process_time() - before)
                theirs, mine = (1e6 * seconds / len(items) for seconds in best)
                ratio = f"{mine / theirs:.2f}"
                print(f"| {corpus}, {what} | {kind} | {theirs:.0f} | {mine:.0f} | {ratio} |")


def _tag(tag: Callable[[Any], Any], items: Sequence[Any]) -> None:
    for each in items:
        tag(each)


def _tag_and_ask(tagger: Any, items: Sequence[Any]) -> None:
    for each in items:
        tagger.probability(tagger.tag(each))


def _tasks(
    corpora: Corpora,
) -> Iterator[tuple[str, Callable[[Sequence[str]], Spans], list[tuple[list[Sentence], ...]]]]:
    """Corpora, the spans of their labels, and parts to learn from and to look at."""
    chunks, references = corpora.chunks(), corpora.references()
    held_back = min(HELD_BACK, len(chunks) // 3)
    yield "CoNLL-2000", chunks_of, [(chunks[:-held_back], chunks[-held_back:])]
    folds = [
        ([x for i, x in enumerate(references) if i % FOLDS != k], references[k::FOLDS])
        for k in range(FOLDS)
    ]
    yield "Cora", runs, folds


def _evaluate(
    make: Callable[[], Any],
    spans: Callable[[Sequence[str]], Spans],
    parts: list[tuple[list[Sentence], ...]],
    seen: Callable[[Sequence[str]], list[Any]] = features,
) -> tuple[float, float]:
    """F1 in percent over all parts, and CPU seconds of training."""
    right = found = wanted = 0
    seconds = 0.0
    for train, held_back in parts:
        x, y = [seen(s.words) for s in train], [s.labels for s in train]
        before = time.process_time()
        model = make().fit(x, y)
        seconds += time.process_time() - before
        predicted = model.predict([seen(s.words) for s in held_back])
        for sentence, labels in zip(held_back, predicted):
            gold, guess = set(spans(sentence.labels)), set(spans(list(labels)))
            right += len(gold & guess)
            found, wanted = found + len(guess), wanted + len(gold)
    return 100 * ratios(right, found, wanted)["f"], seconds


def _train(corpora: Corpora, folder: Path) -> Iterator[Path]:
    """Models of python-crfsuite: of two corpora, by all its algorithms."""
    import pycrfsuite

    for name, corpus in (("chunks", corpora.chunks()), ("references", corpora.references())):
        for i, (algorithm, params) in enumerate(MODELS):
            trainer = pycrfsuite.Trainer(algorithm, params, verbose=False)
            for sentence in islice(corpus, TRAINED_ON):
                trainer.append(features(sentence.words), sentence.labels)
            path = folder / f"{name}-{i}.crfsuite"
            trainer.train(str(path))
            yield path


if __name__ == "__main__":
    app()
