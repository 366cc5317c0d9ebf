"""Choose by F1 on the dev parts: sigma, which tweets are a group, who votes; and see how much
agreement should weigh.
"""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from spacy.language import Language
from tweets import CORPORA, DECODERS, KINDS, decode, f1, make_pipeline, read, train, voted

from spacy_hocrf.api import SingleLinkage

sys.path.append(str(Path(__file__).parents[2]))
from common.report import table

SIGMAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
OVERLAPS = (3, 5, 7, 9)
WEIGHTS = (0.0, 0.5, 1.0, 2.0)


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    corpus_dir: Annotated[Path, typer.Argument(help="What convert.py has written", exists=True)],
) -> None:
    """Print micro and macro F1 of every candidate."""
    local, joint = [], []
    for corpus in CORPORA:
        for kind in KINDS:
            scores, best = [], (-1.0, None)
            for sigma in SIGMAS:
                nlp = make_pipeline(config_path, kind, sigma=sigma)
                train(nlp, read(nlp, corpus_dir / corpus / "train.spacy", SingleLinkage()))
                examples = read(nlp, corpus_dir / corpus / "dev.spacy", SingleLinkage())
                score = f1(decode(nlp, examples, DECODERS["chain"])[0])
                scores.append(cell(score))
                best = max(best, (score[0], nlp), key=lambda pair: pair[0])
            joint += [
                (corpus, kind, *row)
                for row in rows_of_groups(best[1], corpus_dir / corpus / "dev.spacy")
            ]
            local.append((corpus, kind, *scores))
            print(local[-1], flush=True)
    header = ("corpus", "model", *(f"sigma {sigma:g}" for sigma in SIGMAS))
    print(table(local, header, "l" * len(header)), end="\n\n")
    header = (
        "corpus",
        "model",
        "overlap",
        *(f"weight {weight:g}" for weight in WEIGHTS),
        "vote",
        "vote, outside too",
    )
    print(table(joint, header, "l" * len(header)))


def rows_of_groups(nlp: Language, path: Path) -> list[tuple[str, ...]]:
    """F1 by the overlap that makes a group: with one weight for all labels, and after votes. The
    sigma is the best one.
    """
    pipe = nlp.get_pipe("hocrf")
    rows = []
    for overlap in OVERLAPS:
        examples = read(nlp, path, SingleLinkage(overlap))
        row = [str(overlap)]
        for weight in WEIGHTS:
            pipe.joint_weights = np.full(len(pipe.joint_weights), weight)
            row.append(cell(f1(decode(nlp, examples, DECODERS["hybrid"])[0])))
        chain, _, _ = decode(nlp, examples, DECODERS["chain"])
        row += [cell(f1(voted(chain, outside=outside))) for outside in (False, True)]
        rows.append(tuple(row))
    return rows


def cell(score: tuple[float, float]) -> str:
    """Micro and macro F1."""
    return f"{score[0]:.2f} / {score[1]:.2f}"


if __name__ == "__main__":
    typer.run(main)
