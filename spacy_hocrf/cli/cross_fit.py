"""`python -m spacy hocrf cross-fit`: predictions of another pipeline for texts that it was not trained on.

A component that learns from another one's spans must see them as they will be at prediction. On its
own training texts the other one is too good. So the texts are split into folds, each is annotated by a
pipeline trained on the other folds, and the spans are written next to the annotation.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from spacy.cli._util import import_code
from spacy.tokens import Doc
from thinc.api import Config
from tqdm import tqdm
from typer import Argument, Context, Option
from wasabi import msg

from spacy_hocrf.annotation.groups import check_group_by
from spacy_hocrf.annotation.readers import group_keys, read_group, write_group
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_docs
from spacy_hocrf.cli.options import Code, ConfigPath, Folds, Seed, check_name, overridden
from spacy_hocrf.cli.pipelines import folds_of, predictions, trained
from spacy_hocrf.cli.tables import as_table

__all__ = ["CrossFit", "cross_fit", "cross_fit_cli"]


@dataclass(frozen=True)
class CrossFit:
    """Results of `hocrf cross-fit`."""

    docs: tuple[Doc, ...]  # the training texts with the spans, in the order of the file
    counts: Counter[str]  # number of spans by label
    scored: bool  # do the spans have scores?


def cross_fit_cli(
    ctx: Context,
    config_path: ConfigPath,
    texts: Annotated[
        Path, Argument(help="Training texts: a .spacy file, or a folder of them", exists=True)
    ],
    output: Annotated[Path, Argument(help="Write the texts with spans here (.spacy)")],
    key: Annotated[
        str, Option("--key", help="Write the spans to doc.spans under this key")
    ] = "ner",
    source: Annotated[
        str, Option("--source", help="Where the pipeline writes its spans: ents, or spans.KEY")
    ] = "ents",
    folds: Folds = 5,
    seed: Seed = 0,
    code: Code = None,
) -> None:
    """Annotate training texts with the spans of a pipeline that was not trained on them.

    For each fold in turn, the pipeline is trained as by `spacy train` on the other folds, and its best
    model annotates this one. Settings are overridden as in `spacy train`, by --paths.dev for instance.
    """
    check_name("OUTPUT", output, "docs")
    import_code(code)
    config = overridden(config_path, ctx)
    result = cross_fit(config, texts, key=key, source=source, folds=folds, seed=seed)
    write_docs(output, result.docs)
    scores = "with scores" if result.scored else "without scores"
    msg.text(f"{result.counts.total()} spans {scores} in {len(result.docs)} texts")
    rows = [(label, str(count)) for label, count in result.counts.most_common()]
    print(as_table(("label", "spans"), rows))
    msg.good("Saved texts", output)


def cross_fit(
    config: Config,
    texts: Path,
    *,
    key: str = "ner",
    source: str = "ents",
    folds: int = 5,
    seed: int = 0,
) -> CrossFit:
    """Annotate each text with the spans of a pipeline trained on other texts.

    config (Config): config of that pipeline, not interpolated; its training corpus is replaced.
    texts (Path): a .spacy file, or a folder of them.
    key (str): key of doc.spans to write the spans to.
    source (str): "ents" or "spans.KEY", where the pipeline writes them.
    folds, seed (int): number of parts of nearly equal size into which the texts are split at random, equal
        texts and those of a group into the same part, and the seed.
    RETURNS (CrossFit): the texts with their annotation and the spans.
    RAISES (ValueError): H257 or H381 if there are no Docs, H074 for another source, H077 for too few texts,
        H184 to H186 for a pipeline that cannot be cross-fitted.
    """
    source_key = _key_of(source)
    docs = [doc for doc in read_docs(texts, least=1) if len(doc)]
    parts = folds_of(docs, folds, seed, _group_by(config))
    counts, scored, groups = Counter[str](), False, set[str]()
    for part in tqdm(parts, desc="Cross-fitting", disable=None, leave=False):
        unseen = {*part}
        nlp = trained(config, [doc for i, doc in enumerate(docs) if i not in unseen])
        held_out = [docs[i] for i in part]
        for doc, predicted in zip(held_out, predictions(nlp, held_out)):
            spans = read_group(predicted, source_key)
            write_group(doc, key, spans)
            counts.update(label for _, _, label in spans.spans)
            scored |= bool(spans.scores)
            groups.update(group_keys(predicted))
    if groups and not counts if source_key is None else source_key not in groups:
        places = ", ".join(f"spans.{name}" for name in sorted(groups))
        raise ValueError(CommandErrors.H186.format(source=source, known=places or "ents alone"))
    return CrossFit(tuple(docs), counts, scored)


def _group_by(config: Config) -> str | None:
    """Return the first `group_by` of a component. RAISES (ValueError): H101 if it is not registered."""
    for name, block in config.get("components", {}).items():
        for part in (block, block.get("joint") or {}):
            attribute: str | None = part.get("group_by")
            if attribute is not None:
                check_group_by(attribute, name)
                return attribute
    return None


def _key_of(source: str) -> str | None:
    """Return the key of doc.spans, None for doc.ents. RAISES (ValueError): H074 for anything else."""
    kind, _, key = source.partition(".")
    if source == "ents":
        return None
    if kind == "spans" and key:
        return key
    raise ValueError(
        CommandErrors.H074.format(option="--source", found=source, expected="ents or spans.KEY")
    )
