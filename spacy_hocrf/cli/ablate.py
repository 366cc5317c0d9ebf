"""`python -m spacy hocrf ablate`: how much does each part of the features contribute?

k-fold cross-validation inside the training corpus, with all features and with all but one part of them.
Sigma, order, the width of the window and the cost of `ExpectedF` are chosen once, with all features, and are
the same for all rows: else a row would show two effects at once.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config
from tqdm import tqdm
from typer import Context, Option
from wasabi import msg

from spacy_hocrf.cli.corpora import read_corpus
from spacy_hocrf.cli.counts import count_items
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import (
    Code,
    Component,
    ConfigPath,
    Folds,
    Seed,
    Table,
    check_name,
    overridden,
)
from spacy_hocrf.cli.pipelines import (
    alone,
    begin,
    component_of,
    folds_of,
    predictions,
    scorer_of,
    train_on,
)
from spacy_hocrf.cli.systems import SYSTEM_NOTES, compare_systems, table_of_systems
from spacy_hocrf.cli.tables import as_table, write_results
from spacy_hocrf.features.window import ATTRS, BIGRAMS, sides_of
from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.types import AUTO

__all__ = ["ablate", "ablate_cli", "ablations"]

WHOLE = "all features"
WINDOW = "spacy-hocrf.Window.v1"
OFF: Mapping[str, Any] = {
    "window": 0,
    "prefix": [],
    "suffix": [],
    "bigrams": [],
    "flags": [],
    "boundaries": False,
    "lengths": False,
    "order": 0,
    "vectors": False,
}
"""Values of the settings of `Window.v1` that switch a part off."""


def ablate_cli(
    ctx: Context,
    config_path: ConfigPath,
    output: Table = None,
    folds: Folds = 5,
    seed: Seed = 0,
    component: Component = None,
    trials: Annotated[
        int, Option("--trials", "-n", min=1, help="Number of random shuffles of each test")
    ] = 10_000,
    code: Code = None,
) -> None:
    """Leave out each part of the features in turn, and report F1 without it.

    By cross-validation on the config's training corpus; the development corpus is not read. Parts are
    the blocks of Features.v1 and the settings of Window.v1. Differences are tested as in `hocrf compare`.
    Settings are overridden as in `spacy train`, by --paths.train for instance.
    """
    import_code(code)
    check_name("--output", output, "table")
    config = overridden(config_path, ctx)
    results = ablate(config, folds=folds, seed=seed, component=component, trials=trials)
    header, rows = table_of_systems(results["systems"], "without", trials)
    header = (*header, "weights")
    rows = [(*row, f"{system['weights']:,}") for row, system in zip(rows, results["systems"])]
    msg.divider(f"Ablation, {folds}-fold cross-validation")
    chosen = ", ".join(f"{name} {value}" for name, value in results["chosen"].items())
    print(f"{results['documents']} documents of the training corpus, {results['place']}; {chosen}")
    print(as_table(header, rows))
    print(SYSTEM_NOTES)
    if output:
        write_results(output, results, header, rows)


def ablate(
    config: Config,
    *,
    folds: int = 5,
    seed: int = 0,
    component: str | None = None,
    trials: int = 10_000,
) -> dict[str, Any]:
    """Score a component with all of its features, and with each part left out.

    config (Config): of the pipeline, not interpolated.
    folds, seed (int): number of parts of nearly equal size into which the documents are split at random,
        equal ones into the same part, and the seed.
    component (Optional[str]): its name; may be left out if there is only one.
    trials (int): shuffles of the randomization test.
    RETURNS (Dict[str, Any]): "systems", as `compare_systems` returns them, the first with all features, each
        with its mean number of `weights`; the `chosen` settings; and the settings of the comparison.
    RAISES (ValueError): H076 to H078 or H204, and H565 for a component with no feature to leave out.
    """
    nlp = load_model_from_config(config, auto_fill=True)
    name, pipe = component_of(nlp, component)
    if pipe.trainer.batchwise or not hasattr(pipe.trainer, "sigma"):
        trainer = type(pipe.trainer).__name__
        raise ValueError(CommandErrors.H076.format(name=name, found=trainer))
    docs = [example.reference for example in read_corpus(nlp)]
    parts = folds_of(docs, folds, seed, pipe.group_by)
    config = alone(config, nlp, name)
    config["components"][name] = block = dict(nlp.get_pipe_config(name))
    if not ablations(block["model"]["features"]):
        kind = block["model"]["features"].get("@misc")
        raise ValueError(CommandErrors.H565.format(name=name, found=kind))
    nlp, full = _trained(config, name, set())
    chosen = _settle(block, full, bool(nlp.vocab.vectors.size))
    variants = {WHOLE: block["model"]["features"], **ablations(block["model"]["features"])}
    predicted = {row: list[Doc](docs) for row in variants}
    weights = dict.fromkeys(variants, 0)
    with tqdm(total=len(parts) * len(variants), desc="Ablation", disable=None, leave=False) as bar:
        for part in parts:
            held_out = [docs[i] for i in part]
            for row, features in variants.items():
                bar.set_postfix(without=row)
                block["model"]["features"] = features
                nlp, ablated = _trained(config, name, {*part})
                weights[row] += len(weights_of(ablated.model))
                for i, doc in zip(part, predictions(nlp, held_out)):
                    predicted[row][i] = doc
                bar.update()
    scorer = scorer_of(pipe.target)
    counts = count_items(scorer, [*predicted.values()], docs)
    systems = compare_systems(
        counts, [(row, [i]) for i, row in enumerate(variants)], trials=trials, seed=seed
    )
    for system, number in zip(systems, weights.values()):
        system["weights"] = round(number / len(parts))
    return {
        "component": name,
        "place": scorer.place,
        "documents": len(docs),
        "folds": len(parts),
        "seed": seed,
        "trials": trials,
        "chosen": chosen,
        "systems": systems,
    }


def ablations(features: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Make a features block without each of its parts, by the name of the part left out.

    features (Mapping[str, Any]): `Window.v1`, or `Features.v1` with such blocks and others; all settings
        filled in.
    """
    if "*" not in features:
        return _without(features) if features.get("@misc") == WINDOW else {}
    blocks, variants = features["*"], dict[str, dict[str, Any]]()
    for name, block in blocks.items():
        others = {other: blocks[other] for other in blocks if other != name}
        if others:
            variants[name] = {**features, "*": others}
        if block["@misc"] == WINDOW:
            for part, shortened in _without(block).items():
                variants[f"{name}.{part}"] = {**features, "*": {**blocks, name: shortened}}
    return variants


def _without(window: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Make `Window.v1` blocks with each attribute, and each setting that is on, left out."""
    variants = dict[str, dict[str, Any]]()
    attrs = window["attrs"] or []
    for attr in attrs if len(attrs) > 1 else []:
        changed: dict[str, Any] = {
            key: [a for a in window[key] if a != attr] for key in ("attrs", "bigrams")
        }
        sizes = window["window"]
        if isinstance(sizes, Mapping):
            changed["window"] = {a: size for a, size in sizes.items() if a != attr}
        letters = ("prefix", "suffix") if attr == attrs[0] else ()  # affixes of the first one
        changed |= {name: [] for name in letters}
        variants[", ".join([attr, *letters])] = {**window, **changed}
    for setting, off in OFF.items():
        if window[setting] != off:
            variants[setting] = {**window, setting: off}
    return variants


def _settle(block: dict[str, Any], pipe: SegmentationPipe, vectors: bool) -> dict[str, Any]:
    """Replace the "auto" settings in a component's block by the values that its training has chosen.

    pipe (SegmentationPipe): trained with these settings. vectors (bool): does the vocabulary have vectors?
    RETURNS (Dict[str, Any]): the chosen sigma, order and so on.
    """
    choice, settings = pipe.choice, pipe.structure.settings
    model, trainer, decoder = (block[name] for name in ("model", "trainer", "decoder"))
    chosen: dict[str, Any] = {}
    for section, name in ((trainer, "sigma"), (model, "order"), (decoder, "cost")):
        value = getattr(choice, name, None)  # None if there were too few texts to choose by
        if section.get(name) == AUTO and value is not None:
            section[name] = value
        if name in section:
            chosen[name] = section[name]
    blocks = model["features"].get("*", {"": model["features"]})
    for window in blocks.values():
        if window["@misc"] == WINDOW:
            wide = settings.wide if window["wide"] == AUTO else window["wide"]
            attrs = window["attrs"] or [*ATTRS[wide]]
            sizes = sides_of(attrs, window["window"], wide).items()
            window.update(
                wide=wide,
                attrs=attrs,
                window={attr: side.stop - 1 for attr, side in sizes},
                bigrams=[*BIGRAMS[wide]] if window["bigrams"] is None else window["bigrams"],
                vectors=vectors and window["vectors"] is not False,
            )
    return chosen


def _trained(config: Config, name: str, unseen: set[int]) -> tuple[Language, SegmentationPipe]:
    """Train a pipeline on the corpus without some documents; return it and its component."""
    nlp = load_model_from_config(config, auto_fill=True)
    _, pipe = component_of(nlp, name)
    examples: list[Example] = [eg for i, eg in enumerate(read_corpus(nlp)) if i not in unseen]
    train_on(pipe, begin(nlp, config, examples), nlp.config["training"]["max_steps"] or math.inf)
    return nlp, pipe
