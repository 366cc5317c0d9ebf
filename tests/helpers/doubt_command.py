"""`python -m spacy hocrf doubt` in tests: configs that are trained quickly, and the command."""

import commands
from small_corpus import untrained
from thinc.api import Config

TRAINER = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0, "threads": 1}
DECODER = {"@misc": "spacy-hocrf.Viterbi.v1"}


def config(factory="hocrf", **settings):
    nlp = untrained(factory, {"order": 1}, trainer=TRAINER, decoder=DECODER, **settings)
    made = Config().from_str(nlp.config.to_str(), interpolate=False)
    made["nlp"]["lang"] = "en"  # a page says so
    made["training"].update(max_steps=15, eval_frequency=15)
    return made


def run(folder, *arguments, code=0):
    texts = (folder / "config.cfg", folder / "train.spacy")
    return commands.run("doubt", *texts, *arguments, code=code)
