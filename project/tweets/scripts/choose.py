"""Choose by F1 on the dev parts: sigma, which tweets are a group, the weight of agreement, who votes."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from tweets import CORPORA, DECODERS, KINDS, decode, f1, make_pipeline, read, train, voted
from wasabi import MarkdownRenderer

from spacy_hocrf.training.groups import make_single_linkage

SIGMAS = (0.5, 1.0, 2.0, 4.0)
OVERLAPS = (3, 5, 7, 9)
WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0)


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    corpus_dir: Annotated[Path, typer.Argument(help="What convert.py has written", exists=True)],
) -> None:
    """Print micro and macro F1 of every candidate."""
    tables: dict[str, list[tuple[str, ...]]] = {"local": [], "joint": [], "vote": []}
    for corpus in CORPORA:
        for kind in KINDS:
            scores = {}
            for sigma in SIGMAS:
                nlp = make_pipeline(config_path, kind, sigma)
                train(nlp, read(nlp, corpus_dir / corpus / "train.spacy", make_single_linkage()))
                scores[sigma] = (
                    f1(
                        alone := decode(
                            nlp, read(nlp, corpus_dir / corpus / "dev.spacy", make_single_linkage()), DECODERS["chain"]
                        )[0]
                    ),
                    nlp,
                )
            tables["local"].append((corpus, kind, *(cell(score) for score, _ in scores.values())))
            del alone
            nlp = make_pipeline(config_path, kind)
            train(nlp, read(nlp, corpus_dir / corpus / "train.spacy", make_single_linkage()))
            pipe = nlp.get_pipe("hocrf")
            for overlap in OVERLAPS:
                examples = read(nlp, corpus_dir / corpus / "dev.spacy", make_single_linkage(overlap))
                row = []
                for weight in WEIGHTS:
                    pipe.global_weights = np.full(len(pipe.global_weights), weight)
                    row.append(cell(f1(decode(nlp, examples, DECODERS["hybrid"])[0])))
                tables["joint"].append((corpus, kind, str(overlap), *row))
                chain, _, _ = decode(nlp, examples, DECODERS["chain"])
                tables["vote"].append(
                    (
                        corpus,
                        kind,
                        str(overlap),
                        *(cell(f1(each)) for each in (chain, voted(chain, outside=True), voted(chain, outside=False))),
                    )
                )
    markdown = MarkdownRenderer()
    print(markdown.table(tables["local"], ("corpus", "model", *(f"sigma {sigma:g}" for sigma in SIGMAS))))
    print(markdown.table(tables["joint"], ("corpus", "model", "overlap", *(f"weight {weight:g}" for weight in WEIGHTS))))
    print(markdown.table(tables["vote"], ("corpus", "model", "overlap", "chain", "vote", "vote, labels only")))


def cell(score: tuple[float, float]) -> str:
    """Micro and macro F1."""
    return f"{score[0]:.2f} / {score[1]:.2f}"


if __name__ == "__main__":
    typer.run(main)
