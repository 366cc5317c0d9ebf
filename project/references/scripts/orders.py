"""Train the model of a config with segments and with single tokens, at order 1, 2 and 3, and
compare them on held-back references.

Observations, prior and optimiser are those of the config; only `order` and the kind of model
change. The CRF's spans are encoded as bieso, so that it sees first and last tokens too. With
`--folds` the comparison is a cross-validation inside the training file, which is how settings are
chosen; without it the models train on all of it and are scored on the test file.
"""

import copy
import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.scores import ratios
from common.training import count_spans, learn, read_examples

KINDS = {
    "semi-CRF": {},
    "CRF, bieso": {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "encoding": "bieso"},
}
SEGMENT_SETTINGS = ("outside", "repeats", "max_length")


def main(
    config_path: Annotated[Path, typer.Argument(help="Config with a component hocrf", exists=True)],
    train: Annotated[Path, typer.Argument(help="Training references (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test references (.spacy)", exists=True)],
    folds: Annotated[
        int, typer.Option(help="Cross-validate the training file instead; 0 for not")
    ] = 0,
    output: CopyOption = None,
) -> None:
    """Print segment precision, recall and F1, the objective and the CPU time of each model."""
    config = spacy.util.load_config(config_path)["components"]["hocrf"]
    header = ("model", "order", "features", "patterns", "precision", "recall", "F1", "CPU s")
    rows = []
    for kind, changes in KINDS.items():
        for order in (1, 2, 3):
            begun = time.process_time()
            scores, pipe = evaluate(adapt(config, changes, order), train, test, folds)
            spent = time.process_time() - begun
            sizes = (len(pipe.structure.index), len(pipe.structure.patterns))
            row = (
                kind,
                order,
                *sizes,
                *(f"{100 * scores[name]:.2f}" for name in ("p", "r", "f")),
                f"{spent:.0f}",
            )
            rows.append(tuple(map(str, row)))
            print(" | ".join(rows[-1]), flush=True)
    print()
    show(table(rows, header), output)


def adapt(config: dict, changes: dict, order: int) -> dict:
    """The component's config with another kind of model and another order."""
    config = copy.deepcopy(config)
    config["model"].update(changes)
    config["model"]["order"] = order
    if changes:
        for name in SEGMENT_SETTINGS:
            config["model"].pop(name, None)
    return config


def evaluate(config: dict, train: Path, test: Path, folds: int) -> tuple[dict[str, float], object]:
    """Segment scores p, r and f, from 0 to 1, and the component trained last."""
    counts = np.zeros(3, dtype=int)
    for fold in range(max(1, folds)):
        nlp = spacy.blank("en")
        pipe = nlp.add_pipe(
            "hocrf", config={key: value for key, value in config.items() if key != "factory"}
        )
        examples = read_examples(nlp, train)
        held_back = examples[fold::folds] if folds else read_examples(nlp, test)
        learn(nlp, [eg for i, eg in enumerate(examples) if not folds or i % folds != fold])
        counts += count_spans(nlp, held_back)
    return ratios(*counts.tolist()), pipe


if __name__ == "__main__":
    typer.run(main)
