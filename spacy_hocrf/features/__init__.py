"""The only reader of a predicted Doc: templates, extraction and the index of features."""
