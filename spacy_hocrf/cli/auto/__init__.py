"""`python -m spacy hocrf auto`: train a model on annotated texts without any settings.

texts       read and check the annotated texts
folds       hold out texts by cross-validation, and choose the better of two settings on them
reading     predictions for held-out texts, and doubtful annotation
estimates   F-scores with intervals, the learning curve
report, page    the results, as text and as one HTML file
command     run all steps, write the config and train the model
"""
