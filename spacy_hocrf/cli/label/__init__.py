"""`python -m spacy hocrf label`: annotate texts on a page, with a model that learns meanwhile.

    models      a component that is trained again and again, each time from where it was
    readings    what it makes of a text beside what a person has said
    estimates   what is said of it: F1 on texts that it has not learnt from, what may be accepted unread
    loop        the model beside a person: what it reads, which text comes next; learns in the background
    texts       the texts, and what their file says already
    store       what has been decided, on disk
    session     what the page asks: decisions, undo, search
    server      who is answered
    export      files for spaCy and for other tools
    command     the command

Spans are stretches of characters here, (start, end, label); between the page and the session, tokens.
"""
