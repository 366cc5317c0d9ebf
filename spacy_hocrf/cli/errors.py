"""Error messages of the commands, each with a code to search for: what was found, what was expected,
which option to change. The other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["CommandErrors"]


class CommandErrors(metaclass=Coded):
    H071 = (
        "{path} does not have the documents of {gold}: {difference}. Predict on the tokens of the "
        "annotated documents, or give the pipeline itself, which then gets these tokens."
    )
    H072 = (
        "Label '{label}' does not occur in {place} of any document. There are: {known}. See "
        "--label and --ignore."
    )
    H073 = (
        "{path} has no {place} in any document. Choose another file, or another place: hocrf compare has "
        "--spans-key and --tags, the others a --component that writes there."
    )
    H074 = "{option} is '{found}', but must be {expected}."
    H076 = (
        "The trainer of the component '{name}', {found}, cannot be used here: it has no sigma, or never "
        "reaches an optimum. Use spacy-hocrf.LBFGS.v1 in [components.{name}.trainer]."
    )
    H077 = (
        "There are {found} texts, equal ones and those of a group counted once: too few for {folds} folds. "
        "Choose fewer with --folds."
    )
    H078 = (
        "'{other}' annotates the documents that '{name}' learns from, but would have to be "
        "trained first. Train it on other data, then source it here and list it in [training] "
        "frozen_components."
    )
    H153 = (
        "None of the {found} texts is annotated with anything in {place}. Annotate them, or name another "
        "place with --spans-key."
    )
    H154 = "No text has doc.spans['{key}']. There are: {known}. See --spans-key."
    H155 = (
        "None of the {found} labels is in two texts, so no model can learn from one text and be scored on "
        "another. Annotate more texts."
    )
    H156 = (
        "{found} texts, equal ones and those of a group counted once, are annotated completely, too few to "
        "measure how good a model is: annotate at least {least}. {partly} others are annotated in part; "
        "what is unknown in them, and why, is listed by hocrf convert --losses. Until then train with the "
        "default settings: python -m spacy hocrf config."
    )
    H157 = "{path} is there already. Choose another OUTPUT, or replace it with --force."
    H158 = "{path} has no texts. Give a .spacy file, or a folder of them, that DocBin.to_disk has written."
    H159 = (
        "spaCy knows no language '{found}'. Choose a two-letter code such as en, or xx for texts of several "
        "languages. See --lang."
    )
    H184 = (
        "Nothing in this pipeline is trained, so there is nothing to cross-fit: what it finds in training "
        "texts is what it finds in others. It has: {known}."
    )
    H185 = (
        "The training corpus [{name}] of the config has no path that could be replaced. Let it be read by "
        "spacy.Corpus.v1."
    )
    H186 = "The pipeline writes nothing to {source} in any text. It writes: {known}. See --source."
    H187 = (
        "There is no pipeline '{found}' to take word vectors from. Install its package (python -m spacy "
        "download en_core_web_md), or name a folder. See --vectors."
    )
    H188 = (
        "The pipeline '{found}' has no word vectors. Those whose names end in _md or _lg have some. See "
        "--vectors."
    )
    H204 = (
        "--component is {found}. This command is about a component that finds spans or tags (hocrf, "
        "hocrf_spans, hocrf_tagger), and the pipeline has: {known}. Name one of them, or give a pipeline "
        "that has one."
    )
    H205 = "--label is {found}, but the model's segments have the labels {known}."
    H206 = (
        "This command is about spans, but the component writes {found}. Take a component made by hocrf or "
        "hocrf_spans, see --component."
    )
    H207 = "{found}, but both must be above 0 and below 1."
    H208 = (
        "There are {found} annotated spans, too few for --recall {recall}: at least {needed} are needed. "
        "Annotate more texts, or ask for less."
    )
    H209 = (
        "No threshold has a recall of {recall}: of the {all} annotated spans the model cannot predict "
        "{found}, since they have labels or lengths that its training texts did not show. Train on such "
        "texts, or with max_length = 0, by which segments may have any length, or ask for less."
    )
    H234 = (
        "{path} should be the learning curve that hocrf auto has written, but it has {found}. Delete it, or "
        "run hocrf auto again."
    )
    H237 = (
        "None of the {found} texts is annotated with anything in {place}, which '{name}' learns from. "
        "Annotate them, or see --component."
    )
    H247 = (
        "The field {found!r} would have both {one} and {other}. Name another, by --into for the spans, or "
        "by --text if the texts have it under another name."
    )
    H252 = (
        "None of the {found} texts has doc._.{name}, nor a field {name} in doc._.hocrf_meta. Name one that "
        "says what kind of text each is, or leave out --by."
    )
    H253 = (
        "--teachers names groups of spans, but --pipeline is {found}, which learns tags. Take hocrf or "
        "hocrf_spans, or leave --teachers out."
    )
    H260 = "--pipeline is {found}, expected one of {known}."
    H261 = (
        "--spans-key is {key}, but --pipeline is {found}, which does not write doc.spans. Take "
        "hocrf_spans, or leave one of them out."
    )
    H269 = "The path {path} has a '${{', which begins a variable in a config. Rename the folder or the file."
    H290 = "{path} at {place}: found {found}, expected {expected}."
    H291 = (
        "{path} is not in the encoding {name}: {found}. Save it in UTF-8, or name its encoding, "
        "such as cp1252 or utf16: see hocrf convert --encoding."
    )
    H292 = "--{name} is {found!r}, expected one of {known}."
    H293 = "{path} has no text with a token{lost}. See hocrf convert --format, --comment and --delimiter."
    H294 = "--attribute is {found!r}, expected NAME=COLUMN, such as pos=1."
    H345 = "{path}: found {found}, expected one of {known}, the same for all files of a folder."
    H346 = "Tables of Parquet are read and written by pyarrow, which is not installed: pip install pyarrow."
    H347 = (
        "{path} has parts of another job: {found} differ from what they were. Go on with the same command, "
        "the same model and the same texts, or delete the folder to begin again."
    )
    H348 = "{path} has files, but no plan of hocrf annotate. Name a new folder, or an empty one."
    H349 = (
        "A worker died {times} times while annotating texts {first} to {last}, perhaps for lack of "
        "memory. Finished parts are kept. Try fewer --workers or a smaller --size, or leave out such texts."
    )
    H350 = "{path} is there already. Delete it, or write to another file."
    H351 = "The output is {found}, expected one of {known}: see --format."
    H362 = (
        "--scheme is bio, but no label is of a part of a span, such as B-PER, I-PER or PER_B: the first is "
        "{found!r}."
    )
    H363 = (
        "The tokenizer of the language '{found}' needs a package that is not installed. spaCy says: "
        "{reason}. Install it, or choose another --lang."
    )
    H380 = (
        "{path} is not in a format that is read: it looks like {found}. Expected one of: {known}. If it "
        "is one of these after all, name it with hocrf convert --format; docs/data.md shows a line of "
        'each. A text without annotation is a line of .jsonl: {{"text": "..."}}.'
    )
    H381 = (
        "{path} is {found}, but this command reads .spacy files. Make one first: python -m "
        "spacy hocrf convert {arguments}"
    )
    H400 = (
        "Another hocrf annotate or hocrf label is using {path}. Wait for it, or write to another place; "
        "when it has ended, the same command continues."
    )
    H402 = (
        "{found} of {all} parts of {path} are missing, the first is {first}, so they were not put "
        "together. Run the same command again to complete them."
    )
    H403 = "None of {found} texts could be read, so nothing is written; {path} says why."
    H500 = (
        "'{name}' writes all spans that are probable enough (select = \"all\"), which overlap: no text is "
        'right as a whole then. Set select = "decoded" in [components.{name}].'
    )
    H501 = (
        "There are {found} texts that are annotated completely, too few for --accept {level} with "
        "--confidence {confidence}: at least {needed} are needed. Annotate more texts that the model has not "
        "seen, or ask for less."
    )
    H502 = (
        "No text can be accepted with --accept {level} and --confidence {confidence}: of the {n} surest "
        "texts {found} are not right as a whole, and at most {most} may be. Ask for less, or train a model "
        "that is better at whole texts: python -m spacy hocrf auto --for texts."
    )
    H503 = (
        "{path} is not a folder, so the threshold cannot be kept with the model. Say where the pipeline "
        "should be written: --into FOLDER."
    )
    H504 = (
        "{model} does not know which texts may be accepted unread, as --review asks for. Find a threshold "
        "first: python -m spacy hocrf calibrate {quoted} TEXTS --accept 0.95"
    )
    H540 = "{path} has files, but not those of hocrf label ({reason}). Name a new folder, or an empty one."
    H541 = (
        "{path} was begun with other texts: {found}. Give the texts that it was begun with; more of them may "
        "follow at the end. Or name a new folder."
    )
    H542 = "{path} has annotation with the labels {found}, which --labels does not name. Name them, too."
    H543 = "{path}, line {line}, is not a decision about one of the texts: {reason}. Correct or delete it."
    H544 = "{path} cannot be written: {reason}. This decision is not saved; the ones before it are."
    H545 = "The request is refused: {reason}. Reload the page."
    H546 = (
        "These texts have been opened in another window since. What was not saved here is lost; continue in "
        "one of the two."
    )
    H547 = (
        "Text {number} has been annotated since it was shown here. Look at it again: it is shown as it is "
        "now."
    )
    H548 = (
        "The server cannot listen on {address}, port {port}: {reason}. Choose another --port (0 for any free "
        "one) or another --address."
    )
    H549 = (
        "--labels is {found}, expected the names of the labels, separated by commas, each once: without the "
        "option there must be some in the texts, in --output or in --model."
    )
    H560 = "The page of hocrf label needs the packages starlette and uvicorn: pip install spacy-hocrf[label]."
    H561 = (
        "{path} has no text to annotate. Expected one text per line (.txt), or a file that hocrf convert "
        "reads."
    )
    H562 = (
        "The tables have columns of one name that no table (.parquet) can have: {reason}. Write to .jsonl or "
        ".spacy instead, or give a column one type in all tables."
    )
    H563 = "{path} has Docs, but its name does not end in .spacy. Rename it, or unpack it."
    H564 = "There is one system, {found}, expected at least two, and then the annotated documents (.spacy)."
    H565 = (
        "Nothing can be left out of the features of '{name}', {found}. Expected spacy-hocrf.Window.v1, or "
        "spacy-hocrf.Features.v1 with two blocks or more, in [components.{name}.model.features]."
    )
    H566 = "Writing {path} (see {one}) would replace {found} (see {other}). Choose another place."
    H567 = "{path} is not a config: {reason}. Give a file written by hocrf config or spacy init config."
    H571 = "{path} has no meta.json. Expected the folder of a trained pipeline, such as model/model-last."
    H574 = (
        "There is no option {found}. Options of {command}: {known}. A setting of the config has a dot in its "
        "name: --training.seed 1."
    )
    H576 = "{option} has no effect without {needed}. Leave it out, or add {needed}."
    H577 = "{path} is a trained pipeline, expected annotated texts: a .spacy file, or a folder of them."
    H578 = (
        "{path} is a pipe, which can be read only once, but this command reads {setting} more than once. "
        "Write it to a file first."
    )
    H579 = "'{setting}' is empty, as of a variable that is not set. Give a value, or leave it out."
    H581 = (
        "{option} has no effect on {path}, which is read as {found}: it is for {formats}. Leave it out, or "
        "name one of these with --format."
    )
    H583 = "{path} is no table (.parquet), or a damaged one: {reason}. Write it again."
    H584 = "'{setting}' is {found!r}, which is not in UTF-8, the encoding that commands expect."
    H585 = (
        "{path} (see {setting}) is in {folder}, whose files are read as texts: an interrupted run could not "
        "continue. Choose another place."
    )
    H587 = (
        "The export is not complete: {reason}. What you have annotated is saved in annotations.jsonl; when "
        "this is mended, export again, or run the same command again and stop it."
    )
