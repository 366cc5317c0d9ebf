"""`python -m spacy hocrf label`: annotate texts on a web page, with a model that learns in the background.

    models      a component that is retrained again and again, starting from its last weights
    readings    predictions for a text that are consistent with the person's annotation
    estimates   F1 on held-out texts, and the share that may be accepted unread
    loop        trains the model in the background, predicts, and chooses the next text
    texts       the texts, and the annotation in their file
    store       the decisions, on disk
    session     answers requests of the page: decisions, undo, search
    server      the HTTP server, and who may use it
    export      files for spaCy and for other tools
    command     the command

Spans are in characters here, (start, end, label); between the page and the session, in tokens.
"""
