"""`python -m spacy hocrf doubt` in tests: configs that are trained quickly, and the command."""

from small_corpus import untrained
from thinc.api import Config
from typer.testing import CliRunner

from spacy_hocrf.cli import hocrf_cli

TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}
DECODER = {"@misc": "spacy-hocrf.Viterbi.v1"}


def config(factory="hocrf", **settings):
    nlp = untrained(factory, {"order": 1}, trainer=TRAINER, decoder=DECODER, **settings)
    made = Config().from_str(nlp.config.to_str(), interpolate=False)
    made["nlp"]["lang"] = "en"  # a page says so
    made["training"].update(max_steps=15, eval_frequency=15)
    return made


def run(folder, *arguments, code=0):
    command = ["doubt", str(folder / "config.cfg"), str(folder / "train.spacy")]
    done = CliRunner().invoke(
        hocrf_cli, [*command, *map(str, arguments)], catch_exceptions=False, terminal_width=200
    )
    assert done.exit_code == code, done.output
    return done.output
