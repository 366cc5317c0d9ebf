"""`python -m spacy hocrf auto`: from annotated texts to a model, with nothing else to decide.

texts       the annotated texts, and what can be said about them at once
folds       which texts are held back, and which of two settings is better on them
reading     what a model makes of texts that it has not seen, and which annotation it doubts
estimates   F-scores with intervals, the learning curve
report, page    what was found, as text and as one HTML file
command     all of this, one after the other; the config that is written, and the model that it trains
"""
