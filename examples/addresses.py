"""Learn the parts of a postal address from thirty examples, and read ten others: what is found in
each, how sure the model is of it, and what is wrong. One cannot be read without knowing the town, and
there the model is unsure.
"""

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

ADDRESSES = """
12/NUMBER Abbey/STREET Road/STREET London/CITY NW8/CODE 9AY/CODE
Flat/UNIT 2/UNIT 7/NUMBER Elm/STREET Street/STREET Leeds/CITY LS1/CODE 4QB/CODE
221b/NUMBER Baker/STREET Street/STREET London/CITY NW1/CODE 6XE/CODE
3/NUMBER Rose/STREET Lane/STREET York/CITY
18/NUMBER Old/STREET Mill/STREET Road/STREET Oxford/CITY OX4/CODE 1NH/CODE
5/NUMBER Station/STREET Road/STREET New/CITY Barnet/CITY EN5/CODE 1NW/CODE
Flat/UNIT 11/UNIT 40/NUMBER Hill/STREET View/STREET Bath/CITY BA2/CODE 3LE/CODE
9/NUMBER Church/STREET Lane/STREET Leeds/CITY
64/NUMBER York/STREET Road/STREET London/CITY SW11/CODE 3QD/CODE
1/NUMBER Oxford/STREET Street/STREET Manchester/CITY M1/CODE 5AN/CODE
27/NUMBER London/STREET Road/STREET Saint/CITY Albans/CITY AL1/CODE 1LA/CODE
Unit/UNIT 4/UNIT 90/NUMBER Canal/STREET Street/STREET Derby/CITY DE1/CODE 2RF/CODE
33/NUMBER Park/STREET Avenue/STREET Milton/CITY Keynes/CITY
8/NUMBER New/STREET Road/STREET Ware/CITY SG12/CODE 9BL/CODE
15/NUMBER King/STREET Edward/STREET Street/STREET Hull/CITY HU1/CODE 3RL/CODE
Flat/UNIT 6/UNIT 2/NUMBER Bath/STREET Terrace/STREET Gosport/CITY PO12/CODE 1DA/CODE
101/NUMBER High/STREET Street/STREET New/CITY Malden/CITY KT3/CODE 4BX/CODE
7a/NUMBER Queen/STREET Square/STREET Bristol/CITY BS1/CODE 4JE/CODE
52/NUMBER Derby/STREET Road/STREET Nottingham/CITY
19/NUMBER Long/STREET Acre/STREET London/CITY WC2E/CODE 9LH/CODE
Unit/UNIT 12/UNIT Mill/STREET Lane/STREET Ashby/CITY
6/NUMBER The/STREET Green/STREET Long/CITY Melford/CITY CO10/CODE 9DU/CODE
88/NUMBER Leeds/STREET Old/STREET Road/STREET Bradford/CITY BD3/CODE 8JX/CODE
14/NUMBER Saint/STREET Mary/STREET Street/STREET Cardiff/CITY CF10/CODE 1FA/CODE
Flat/UNIT 3/UNIT 75/NUMBER Church/STREET Road/STREET Hove/CITY BN3/CODE 2BB/CODE
2/NUMBER West/STREET View/STREET West/CITY Ham/CITY
30/NUMBER Market/STREET Place/STREET Market/CITY Harborough/CITY LE16/CODE 7DR/CODE
45b/NUMBER Newark/STREET Road/STREET Lincoln/CITY LN5/CODE 8PG/CODE
9/NUMBER Castle/STREET Hill/STREET High/CITY Wycombe/CITY HP13/CODE 6RN/CODE
Unit/UNIT 7/UNIT 3/NUMBER Station/STREET Approach/STREET East/CITY Grinstead/CITY
""".strip().splitlines()

OTHERS = """
16/NUMBER Mill/STREET Lane/STREET New/CITY Romney/CITY TN28/CODE 8AB/CODE
Flat/UNIT 9/UNIT 120/NUMBER Manchester/STREET Road/STREET York/CITY YO30/CODE 5RZ/CODE
4/NUMBER Rose/STREET Hill/STREET Dorking/CITY RH4/CODE 2EG/CODE
71/NUMBER Bristol/STREET Road/STREET Bath/CITY
28c/NUMBER Saint/STREET Albans/STREET Avenue/STREET London/CITY W4/CODE 5JP/CODE
Unit/UNIT 2/UNIT 60/NUMBER Park/STREET Lane/STREET Leeds/CITY LS3/CODE 1EW/CODE
5/NUMBER King/STREET Street/STREET Saint/CITY Neots/CITY PE19/CODE 1FB/CODE
13/NUMBER Wycombe/STREET End/STREET Beaconsfield/CITY HP9/CODE 1LX/CODE
80/NUMBER The/STREET Avenue/STREET Hedge/CITY End/CITY
1/NUMBER Broadway/STREET Market/CITY Deeping/CITY
""".strip().splitlines()


def read(nlp: spacy.Language, line: str) -> Example:
    """Neighbouring words with the same label are one entity."""
    words, labels = zip(*(pair.rsplit("/", 1) for pair in line.split()))
    doc = Doc(nlp.vocab, words=words)
    starts = [i for i in range(len(words)) if i == 0 or labels[i] != labels[i - 1]]
    doc.ents = [Span(doc, a, b, labels[a]) for a, b in zip(starts, [*starts[1:], len(words)])]
    return Example(Doc(nlp.vocab, words=words), doc)


def main() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    examples = [read(nlp, line) for line in ADDRESSES]
    optimizer = nlp.initialize(lambda: examples)
    while nlp.get_pipe("hocrf").run.running:
        nlp.update(examples, sgd=optimizer)
    others = [read(nlp, line) for line in OTHERS]
    for example in others:
        doc = nlp(example.predicted)
        right = {(ent.start, ent.end, ent.label_) for ent in example.reference.ents}
        print(doc.text.strip())
        for ent in doc.ents:
            wrong = "" if (ent.start, ent.end, ent.label_) in right else "   wrong"
            print(f"  {ent._.hocrf_score:.2f} {ent.label_:6} {ent.text}{wrong}")
    scores = nlp.evaluate([read(nlp, line) for line in OTHERS])
    print(f"F1 on these {len(OTHERS)} addresses: {100 * scores['ents_f']:.1f}")


if __name__ == "__main__":
    main()
