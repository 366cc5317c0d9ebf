"""High-order semi-Markov conditional random fields for spaCy: `nlp.add_pipe("hocrf")`.

spaCy finds the factories, architectures, templates and trainers by their entry points (setup.cfg);
nothing is imported here, so that `spacy.blank` stays fast.
"""
