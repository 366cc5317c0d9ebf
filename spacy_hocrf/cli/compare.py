"""`python -m spacy hocrf compare`: is one system better than another, or is the difference due to chance?

Micro-averaged F1 over all labels, the F1 of each label, and the share of entirely right documents, with the
p-values of an approximate randomization test over documents. If there are more than two systems, or several
runs of one, each system is compared with the first by F1 over all labels.
"""

from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from spacy.cli._util import import_code
from spacy.tokens import Doc
from spacy.util import load_model
from tqdm import tqdm
from typer import Argument, Option
from wasabi import msg

from spacy_hocrf.annotation.identity import id_of
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.counts import Counts, EntsScorer, Scorer, SpansScorer, TagsScorer, count_items
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import Code, SpansKey, Table, check_name
from spacy_hocrf.cli.pipelines import predictions
from spacy_hocrf.cli.randomization import f1, holm, randomization_test
from spacy_hocrf.cli.systems import SYSTEM_NOTES, compare_systems, items_and_texts, table_of_systems
from spacy_hocrf.cli.tables import as_table, write_results

__all__ = ["compare", "compare_cli", "compare_counts", "predict", "read_gold", "read_system"]

LEGIBLE = 5
"""Number of tokens that an error message quotes where two documents begin to differ."""
HEADER: tuple[str, ...] = (
    *("", "P (A)", "R (A)", "F (A)", "P (B)", "R (B)", "F (B)"),
    *("B-A", "p", "Holm", "shuffles", "differ", "gold"),
)
NOTES = """\
p         probability of a difference at least this large if A and B are equally good
Holm      p, corrected for the number of labels
shuffles  number tried; p is exact if all were, else (n_c + 1)/(n + 1) for n random ones
differ    documents in which the counts of A and B differ
gold      annotated items
texts     documents that have all annotated items and no others
"""


def compare_cli(
    systems: Annotated[
        list[str],
        Argument(
            help="Systems: predictions (.spacy), or a pipeline that makes them; several runs of a system are "
            "separated by commas"
        ),
    ],
    gold: Annotated[
        Path, Argument(help="The annotated documents (.spacy)", exists=True, dir_okay=False)
    ],
    spans_key: SpansKey = None,
    tags: Annotated[
        bool, Option("--tags", "-T", help="Compare the tags of the tokens instead of doc.ents")
    ] = False,
    label: Annotated[
        list[str] | None,
        Option("--label", "-l", help="Compare this label only; may be given several times"),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        Option(
            "--ignore",
            "-i",
            help="Label that does not count as one, such as the tag O; may be given several times",
        ),
    ] = None,
    trials: Annotated[
        int, Option("--trials", "-n", min=1, help="Number of random shuffles")
    ] = 10_000,
    seed: Annotated[int, Option("--seed", "-s", min=0, help="Seed of the shuffles")] = 0,
    output: Table = None,
    code: Code = None,
) -> None:
    """Compare systems on the same documents, with p-values.

    Two of them are compared label by label; of more than two, each is compared with the first. The test is
    the approximate randomization test of micro-averaged F1, as in Yeh (2000): documents are swapped between
    two systems at random, and p is the share of shuffles whose difference is at least as large as the real
    one. A pipeline gets the tokens, with their extension attributes, and no annotation.
    """
    if tags and spans_key is not None:
        msg.fail("Choose one of --tags and --spans-key", exits=1)
    import_code(code)
    scorer: Scorer = (
        TagsScorer() if tags else EntsScorer() if spans_key is None else SpansScorer(spans_key)
    )
    check_name("--output", output, "table")
    named = [(system, _runs(system)) for system in systems]
    if len(named) < 2:
        raise ValueError(CommandErrors.H564.format(found=systems[0]))
    result = _compare_all(named, gold, scorer, label or (), ignore or (), trials, seed)
    if "systems" in result:
        names, notes = "", SYSTEM_NOTES
        header, rows = table_of_systems(result["systems"], "system", trials)
    else:
        names, notes = f"A: {result['a']}\nB: {result['b']}\n", NOTES
        header, rows = HEADER, _rows(result)
    msg.divider("Comparison")
    print(f"{names}{result['documents']} documents: {result['gold']}, {result['place']}")
    print(as_table(header, rows))
    print(notes)
    if output:
        write_results(output, result, header, rows)


def compare(
    a: str | Path,
    b: str | Path,
    gold: str | Path,
    scorer: Scorer,
    *,
    labels: Collection[str] = (),
    ignore: Collection[str] = (),
    trials: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare two systems on the same documents.

    a, b (Union[str, Path]): predictions (.spacy), or the path or name of a pipeline.
    gold (Union[str, Path]): the annotation (.spacy).
    scorer (Scorer): where the items are.
    labels, ignore (Collection[str]): as in `count_items`.
    trials, seed (int): as in `randomization_test`.
    RETURNS (Dict[str, Any]): the results of `compare_counts`, and the files and settings.
    RAISES (ValueError): H257, H071 to H073, for files that do not fit together or labels that do not
        occur.
    """
    systems = [(str(system), [str(system)]) for system in (a, b)]
    return _compare_all(systems, gold, scorer, labels, ignore, trials, seed)


def _compare_all(
    systems: Sequence[tuple[str, Sequence[str]]],
    gold: str | Path,
    scorer: Scorer,
    labels: Collection[str],
    ignore: Collection[str],
    trials: int,
    seed: int,
) -> dict[str, Any]:
    """Compare systems: by `compare_counts` if there are two with one run each, else by `compare_systems`,
    under "systems". The result also has the files and settings.

    systems (Sequence[tuple[str, Sequence[str]]]): the name of each, and its runs.
    """
    annotated = read_gold(gold, scorer)
    runs = [run for _, paths in systems for run in paths]
    docs = [read_system(run, annotated, gold, scorer) for run in runs]
    counts = count_items(scorer, docs, annotated, labels=labels, ignore=ignore)
    compared = {
        "gold": str(gold),
        "place": scorer.place,
        "documents": len(annotated),
        "trials": trials,
        "seed": seed,
    }
    if len(systems) == len(runs) == 2:
        pair = dict(zip("ab", runs))
        return {**pair, **compared, **compare_counts(counts, trials=trials, seed=seed)}
    numbers = iter(range(len(runs)))
    numbered = [(name, [*islice(numbers, len(paths))]) for name, paths in systems]
    return {**compared, "systems": compare_systems(counts, numbered, trials=trials, seed=seed)}


def _runs(system: str) -> list[str]:
    """Split a system into its runs; an existing path that has a comma is one run."""
    return [system] if Path(system).exists() else system.split(",")


def compare_counts(
    counts: Counts, a: int = 0, b: int = 1, *, trials: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """Compute the scores of two systems and the p-values of their differences.

    counts (Counts): counts of these systems, and perhaps of others.
    a, b (int): their numbers.
    RETURNS (Dict[str, Any]): "all" and "labels", with `a` and `b` (p, r, f from 0 to 1),
        `difference` (F1 of b minus F1 of a), `p_value`, `exact` (were all shuffles tried?),
        `shuffles` (how many were), `differ` (documents in which the systems differ), `gold` (annotated
        items); labels also `p_holm`, corrected for the number of labels. And "texts": as `gold` the number
        of completely annotated documents, as `f` the share of these that is entirely right.
    """
    # all labels together, then each, then whole texts
    correct, predicted, gold = (
        np.concatenate([both[..., :1], of_labels, both[..., 1:]], axis=-1)
        for both, of_labels in zip(
            items_and_texts(counts), (counts.correct, counts.predicted, counts.gold)
        )
    )
    correct, predicted = correct[[a, b]], predicted[[a, b]]
    test = randomization_test(correct, predicted, gold, trials=trials, seed=seed)
    n_correct, n_predicted = correct.sum(axis=1), predicted.sum(axis=1)
    n_gold = np.broadcast_to(gold.sum(axis=0), n_correct.shape)
    scores = {
        "p": f1(n_correct, n_predicted, n_predicted),
        "r": f1(n_correct, n_gold, n_gold),
        "f": f1(n_correct, n_predicted, n_gold),
    }
    rows = [
        {
            **{
                system: {name: score[s, k].item() for name, score in scores.items()}
                for s, system in enumerate("ab")
            },
            "difference": (scores["f"][1, k] - scores["f"][0, k]).item(),
            "p_value": test.p[k].item(),
            "exact": test.exact[k].item(),
            "shuffles": test.shuffles[k].item(),
            "differ": test.documents[k].item(),
            "gold": n_gold[0, k].item(),
        }
        for k in range(n_gold.shape[1])
    ]
    every, *by_label, texts = rows
    for row, p in zip(by_label, holm(test.p[1:-1]).tolist()):
        row["p_holm"] = p
    for system in "ab":
        texts[system] = {"f": texts[system]["f"]}
    return {"all": every, "labels": dict(zip(counts.labels, by_label)), "texts": texts}


def read_gold(path: str | Path, scorer: Scorer) -> list[Doc]:
    """Read annotated documents. RAISES (ValueError): H257 for a file without Docs, H073 for no annotation."""
    docs = read_docs(path)
    _check_annotation(scorer, docs, path)
    return docs


def read_system(
    system: str | Path, gold: Sequence[Doc], gold_path: str | Path, scorer: Scorer
) -> list[Doc]:
    """Read or make a system's predictions for annotated documents.

    system (Union[str, Path]): a file with the predictions (.spacy), or the path or name of a
        pipeline.
    gold (Sequence[Doc]): the documents; gold_path (Union[str, Path]): their file.
    RAISES (ValueError): H257 for a file without Docs, H071 for other documents, H073 without
        predictions.
    """
    docs = read_docs(system) if Path(system).is_file() else predict(str(system), gold)
    _check_documents(docs, gold, system, gold_path)
    _check_annotation(scorer, docs, system)
    return docs


def predict(pipeline: str, docs: Sequence[Doc]) -> list[Doc]:
    """Predict documents with a pipeline, hiding their annotation from it."""
    nlp = load_model(pipeline)
    predicted = predictions(nlp, docs)
    return list(tqdm(predicted, total=len(docs), desc=pipeline, disable=None, leave=False))


def _check_documents(
    docs: Sequence[Doc], gold: Sequence[Doc], path: str | Path, gold_path: str | Path
) -> None:
    difference = f"it has {len(docs)} documents for {len(gold)}" if len(docs) != len(gold) else ""
    for number, pair in enumerate(zip(docs, gold), 1):
        words, expected = ([token.text for token in doc] for doc in pair)
        if words != expected and not difference:
            same = next(
                (i for i, (x, y) in enumerate(zip(words, expected)) if x != y),
                min(len(words), len(expected)),
            )
            quotes = [repr(" ".join(each[same : same + LEGIBLE])) for each in (words, expected)]
            id_ = id_of(pair[1])
            which = f"document {number}" + ("" if id_ is None else f" ({id_})")
            difference = (
                f"{which} goes on with {quotes[0]} after {same} tokens, but should with {quotes[1]}"
            )
    if difference:
        raise ValueError(
            CommandErrors.H071.format(path=path, gold=gold_path, difference=difference)
        )


def _check_annotation(scorer: Scorer, docs: Sequence[Doc], path: str | Path) -> None:
    if not any(scorer.annotated(doc) for doc in docs):
        raise ValueError(CommandErrors.H073.format(path=path, place=scorer.place))


def _rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    digits = max(4, len(str(result["trials"])) - 1)
    return [
        _cells("all", result["all"], digits),
        *([_cells("texts", result["texts"], digits)] if result["texts"]["gold"] else []),
        *(_cells(label, row, digits) for label, row in result["labels"].items()),
    ]


def _cells(name: str, row: dict[str, Any], digits: int) -> tuple[str, ...]:
    scores = [
        f"{100 * row[system][score]:.2f}" if score in row[system] else ""
        for system in "ab"
        for score in "prf"
    ]
    p_values = [f"{row[key]:.{digits}f}" if key in row else "" for key in ("p_value", "p_holm")]
    shuffles = f"all {row['shuffles']}" if row["exact"] else str(row["shuffles"])
    return (
        name,
        *scores,
        f"{100 * row['difference']:+.2f}",
        *p_values,
        shuffles,
        str(row["differ"]),
        str(row["gold"]),
    )
