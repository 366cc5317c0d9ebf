"""What holds for every test: how many examples hypothesis draws, which folders run first, and where
tests are named that are skipped.

HOCRF_PROFILE names the profile. "local" draws few examples, other ones on every run; "ci" draws
more, the same ones on every run. No profile watches the clock: a busy machine is slow, not wrong.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
ORDER = ["features", "model", "engine", "training", "graph", "pipeline", "joint", "project", "cli"]
"""Quick folders first, subprocesses last; other folders and files beside this one come before `project`."""

SLOW = """
cli/test_annotate.py cli/test_annotate_on_ray.py cli/test_annotate_plain.py cli/test_asking.py
cli/test_auto.py cli/test_auto_estimates.py cli/test_auto_reading.py cli/test_calibrate.py
cli/test_compare.py cli/test_convert.py cli/test_convert_formats.py cli/test_cross_fit.py
cli/test_debug.py cli/test_doubt.py cli/test_inspect.py
cli/test_show.py cli/test_spacy_cli.py cli/test_config.py
cli/test_temper.py cli/test_templates.py cli/test_tune.py
crf_toolkits/test_pycrfsuite.py crf_toolkits/test_python_crfsuite.py crf_toolkits/test_sklearn.py
engine/test_alternatives.py engine/test_counted.py engine/test_forward_backward.py
engine/test_lbfgs.py engine/test_margin.py engine/test_memory.py engine/test_owlqn.py
engine/test_stretches.py features/test_clustering.py features/test_words.py fuzz/test_crfsuite.py
fuzz/test_models.py graph/test_dual.py graph/test_elimination.py graph/test_frank_wolfe.py
graph/test_ilp.py joint/test_batches.py joint/test_component.py joint/test_lattice.py
joint/test_learning.py joint/test_span_rules.py joint/test_stated.py
joint/test_trainers.py links/test_component.py model/test_neural.py
pipeline/test_alternatives.py pipeline/test_choosing.py pipeline/test_clusters.py
pipeline/test_component.py pipeline/test_console.py pipeline/test_constrained.py
pipeline/test_constrained_learning.py pipeline/test_constraining.py pipeline/test_cost.py
pipeline/test_decoders.py pipeline/test_doubtful.py
pipeline/test_explaining.py pipeline/test_gold.py pipeline/test_heldout.py pipeline/test_likelihood.py
pipeline/test_neural.py pipeline/test_pattern_choice.py pipeline/test_persistence.py
pipeline/test_probabilities.py pipeline/test_reading.py pipeline/test_risks.py
pipeline/test_score_weights.py pipeline/test_scores.py pipeline/test_selecting.py
pipeline/test_spans_of_others.py pipeline/test_stages.py pipeline/test_start.py
pipeline/test_streaming.py pipeline/test_temperature.py
pipeline/test_trainers.py pipeline/test_training.py pipeline/test_transformer.py
pipeline/test_unseen_transitions.py project/test_answers.py project/test_benchmark.py
project/test_defaults.py project/test_defaults_auto.py project/test_dependencies.py
project/test_genre_transfer.py project/test_handwriting.py project/test_jmlr.py
project/test_knowledge.py project/test_notebooks.py
project/test_owners.py project/test_patterns.py project/test_published_numbers.py
project/test_punctuation.py project/test_references.py project/test_references_scores.py
project/test_relation_arguments.py project/test_site.py project/test_synthetic.py
project/test_toolkits.py project/test_trainers.py project/test_tweets.py
sequences/test_learning.py sequences/test_model.py test_blocks.py test_examples.py
test_open_house.py test_samples.py training/test_checkpoints.py training/test_owlqn.py
workers/test_processes.py workers/test_ray.py
""".split()
"""Files that take longest in their folders: `pytest -m "not slow"` leaves them out."""

SKIPPED = os.environ.get("HOCRF_SKIPPED")
"""A file that tests which are skipped, and files of them, are written to: pytest @FILE runs these."""

settings.register_profile(
    "local", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("local"), max_examples=100, derandomize=True, print_blob=True
)
settings.load_profile(os.environ.get("HOCRF_PROFILE", "local"))


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.relative_to(HERE).as_posix() in SLOW:
            item.add_marker("slow")
    items.sort(key=lambda item: _place(item.path.relative_to(HERE).parts[0]))


def pytest_runtest_logreport(report):
    if SKIPPED and report.skipped:
        with open(SKIPPED, "a", encoding="utf8") as file:
            file.write(f"{report.nodeid}\n")


pytest_collectreport = pytest_runtest_logreport


def _place(room):
    return ORDER.index(room) if room in ORDER else ORDER.index("project") - 0.5
