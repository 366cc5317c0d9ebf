# A `ScoreKernels` of model/compiled.py; builds for different instruction sets have the same functions.
from spacy_hocrf.model.compiled import ScoreKernels

_build: ScoreKernels
__all__: list[str]
add_cell_scores_into = _build.add_cell_scores_into
add_cell_counts_into = _build.add_cell_counts_into
add_observed_scores_into = _build.add_observed_scores_into
