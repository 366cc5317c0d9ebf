# A `ScoreKernels`, see model/compiled.py: the builds differ in the width of their vectors only.
from spacy_hocrf.model.compiled import ScoreKernels

_build: ScoreKernels
__all__: list[str]
add_cell_scores_into = _build.add_cell_scores_into
add_cell_counts_into = _build.add_cell_counts_into
add_observed_scores_into = _build.add_observed_scores_into
