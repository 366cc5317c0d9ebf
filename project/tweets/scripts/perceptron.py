"""Which groups to learn from in the paper's own training, the averaged perceptron of chain and agreement
together.

An update is for a group, and by the paper's rule there are few of them in the training part; so
smaller ones are tried too.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer
from experiment import GOLD, write
from grouping import find_clusters, make_folded_linkage
from report import count
from tweets import CORPORA, decode, f1, make_pipeline, read, resolve_grouper, train

from spacy_hocrf.api import SingleLinkage, compare_counts

sys.path.append(str(Path(__file__).parents[2]))
from common.report import table

KIND = "CRF, bieso"
GROUPS = {
    "clusters": find_clusters,
    "folds": make_folded_linkage(),
    "as in the paper": SingleLinkage(),
}
ALONE = "chain alone"


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    corpus_dir: Annotated[Path, typer.Argument(help="What convert.py has written", exists=True)],
    predictions_dir: Annotated[Path, typer.Argument(help="Where the predictions go")],
    only: Annotated[
        list[str] | None, typer.Option(help="Corpus; may be given several times. By default all")
    ] = None,
    trials: Annotated[int, typer.Option(help="Shuffles of each test")] = 10_000,
) -> None:
    """Print micro and macro F1 on the dev and test parts; p-values of the difference from the chain
    alone are for the test part.
    """
    grouper = resolve_grouper(config_path, "dev")
    rows = []
    for corpus in only or CORPORA:
        folder = predictions_dir / f"{corpus}-perceptron"
        folder.mkdir(parents=True, exist_ok=True)
        cells = {}
        for name, groups in {ALONE: SingleLinkage(), **GROUPS}.items():
            decoder = "chain" if name == ALONE else "two_slave"
            nlp = make_pipeline(config_path, KIND, decoder=decoder)
            seconds = train(nlp, read(nlp, corpus_dir / corpus / "train.spacy", groups))
            scores = []
            for part in ("dev", "test"):
                examples = read(nlp, corpus_dir / corpus / f"{part}.spacy", grouper)
                predicted, _, _ = decode(nlp, examples, {})
                scores.append("{:.2f} / {:.2f}".format(*f1(predicted)))
            write([example.predicted for example in predicted], folder / f"{name}.spacy")
            write([example.reference for example in examples], folder / GOLD)
            cells[name] = (*scores, f"{seconds:.0f}")
            print(corpus, name, *cells[name], flush=True)
        counts = count(folder, list(cells))
        for number, (name, (dev, test, seconds)) in enumerate(cells.items()):
            result = compare_counts(counts, 0, number, trials=trials)["all"]
            difference = (
                f"{100 * result['difference']:+.2f} ({result['p_value']:.4f})" if number else ""
            )
            rows.append((corpus, name, dev, test, difference, seconds))
    header = (
        "corpus",
        "trained",
        "dev, micro / macro",
        "test, micro / macro",
        "micro, against the chain alone (p)",
        "CPU s",
    )
    print(table(rows, header, "ll"))


if __name__ == "__main__":
    typer.run(main)
