"""What can go wrong, each with a code to search for: what was found, what was expected, which
setting to change.
"""

__all__ = ["Coded", "Errors"]


class Coded(type):
    """Puts an attribute's name in front of its text, so that a code is written once."""

    def __getattribute__(cls, name: str) -> str:
        text = super().__getattribute__(name)
        return text if name.startswith("_") else f"[{name}] {text}"


class Errors(metaclass=Coded):
    H001 = (
        "Label pattern {pattern} has the label {label}, but there are only the labels 0 to {last}."
    )
    H002 = "A label pattern must not be empty."
    H003 = "Limit {limit} of label {label} is invalid: expected a whole number of tokens, or 0 for no limit."
    H004 = (
        "Potentials do not fit the automaton: '{name}' has the extents {found}, expected "
        "{expected}."
    )
    H005 = (
        "Pattern {pattern} has an observation on the {part} of its segment, but the automaton was "
        "compiled without it. Compile it with `carried` true for this pattern."
    )
    H006 = "Log potentials must be finite, but '{name}' holds {found} at {where}."
    H007 = (
        "No allowed segmentation covers the document {text}: the length limits, the annotation "
        "and the successions that never occur exclude all of them. Set max_length = 0 or repeats "
        "= true in [components.*.model], or correct the annotation."
    )
    H008 = (
        "The first {expected} patterns must be the single labels (0,), (1,), … in order, but are "
        "{found}."
    )
    H009 = (
        "Spans must lie inside one sequence, have at least one token, and be sorted by their "
        "first token."
    )
    H010 = "Inference in space '{found}' is unknown. Choose one of {expected}."
    H021 = (
        "The observation table has {found} rows, of which {expected} are distinct. The model's "
        "files have been altered."
    )
    H022 = "An observation has {found} attribute values, but the table has room for {expected}."
    H023 = (
        "'{name}' is not a token attribute that templates can read{hint}. Known: {known}; "
        "'MORPH.Field' for a morphological feature and '_.name' for an extension attribute. See "
        "[components.*.model.features]."
    )
    H024 = (
        "The token extension '_.{name}' is not registered. Call Token.set_extension('{name}', …) "
        "before the pipeline is made, in a file given with --code. See "
        "[components.*.model.features]."
    )
    H025 = (
        "'{source}' holds a value that is not finite, or beyond 3.4e38, in the text that begins "
        "'{text}'. Real-valued features must be finite numbers of float32."
    )
    H026 = (
        "'{term}' is not a term. Write an attribute and an offset, such as NORM[-1], SHAPE or "
        "_.my_attribute[1]."
    )
    H027 = (
        "'{source}' must have one array of the same extent for every token, but has {found} in "
        "the text that begins '{text}'. See [components.*.model.features]."
    )
    H028 = "The model has no feature templates. Add a block [components.*.model.features.*.name]."
    H029 = (
        "The feature template '{name}' occurs twice in one block: name everything once in each "
        "setting. See [components.*.model.features]."
    )
    H030 = "'{name}' of a feature template is empty. See [components.*.model.features]."
    H031 = (
        "'{found}' is not a part of a segment. Write a list of {known}, or of some of them. See "
        "[components.*.model.features]."
    )
    H032 = (
        "The order of a feature template is {found}, but it counts earlier segments: a whole "
        "number from 0 to {most:,}. See [components.*.model.features]."
    )
    H033 = (
        "Sizes of a feature template must be at least 1 and bins ascend from 1, but are {found}. "
        "See [components.*.model.features]."
    )
    H034 = (
        "'{found}' is not a source of real values. Choose 'tensor', 'vector' or '_.name'. See "
        "[components.*.model.features]."
    )
    H035 = (
        "'{term}' is not a term of a transition. Write PLACE.ATTRIBUTE, where PLACE is one of "
        "{known}."
    )
    H036 = (
        "The terms {terms} look at different parts of the segment; terms observed together must "
        "look at one."
    )
    H037 = (
        "'{found}' is not an observation of this template. Choose from {known}. See "
        "[components.*.model.features]."
    )
    H038 = (
        "The window {found} is impossible: offsets lie between -{most} and {most}. See "
        "[components.*.model.features]."
    )
    H039 = (
        "The array '{name}' of the model does not fit the others. The model's files have been "
        "altered; load another copy."
    )
    H040 = (
        "The label '{label}' is unknown to the model. Known: {known}. Add it with add_label, or initialize "
        "the pipeline anew. Where `spacy train` has a source, use `python -m spacy hocrf extend` instead."
    )
    H041 = (
        "Tokens {start} to {end} have no label, but in the training data every token has one, so "
        "the model has no outside label. Annotate them, or train anew on texts that have such tokens. If "
        "only some labels are annotated, extend the model with alone (--alone)."
    )
    H042 = (
        "The component has not been initialized. Train it, load a trained pipeline, or call "
        "nlp.initialize with examples."
    )
    H043 = "outside = '{found}' is unknown. Choose 'token' or 'run' in [components.*.model]."
    H044 = (
        "{name} is {found}, but must be a whole number, at least {least} and at most {most}. See "
        "[components.*.model]."
    )
    H045 = "encoding = '{found}' is unknown. Choose one of {known} in [components.*.model]."
    H046 = (
        "Training cannot start: {status}. Real-valued features or weights of texts may be too large; "
        "scale them to about 1, or lower sigma in [components.*.trainer]."
    )
    H047 = "prior = '{found}' is unknown. Choose one of {known} in [components.*.trainer]."
    H048 = "{name} is {found}, but must be {expected}. See [components.*.trainer]."
    H049 = (
        "No training examples. Check the path and the reader in [corpora.train], or what you pass "
        "to nlp.initialize."
    )
    H050 = (
        "There are no labels: none of the {found} examples of nlp.initialize has annotation in {place} "
        "that fits its tokens. Check the annotation and the language ([nlp] lang; gold_preproc = true in "
        "[corpora.*] keeps the annotation's tokens), call add_label, or give labels in "
        "[initialize.components.*]. Where gold_preproc cuts texts into sentences, span groups are lost: "
        "take the sentence boundaries out of the file."
    )
    H051 = (
        "Template '{template}' reads {attribute}, which the component itself predicts: it would "
        "see the answer in training and nothing later. Remove it from "
        "[components.*.model.features], or put what it needs into another attribute."
    )
    H052 = (
        "The model's files are damaged or incomplete: {reason}. Load another copy, or train again."
    )
    H053 = (
        "The model was written in format {found}, but this version of spacy-hocrf reads format "
        "{known}. Load it with the version of spacy-hocrf that wrote it, or train again."
    )
    H054 = (
        "The model was trained with other settings than the config has now: {difference}. Change "
        "[components.{name}.model] back, or train again."
    )
    H055 = "threshold is {found}, but a probability lies between 0 and 1. See [components.{name}]."
    H056 = (
        "The component '{name}' needs a model of spacy-hocrf, but got '{found}'. See "
        "[components.{name}.model]."
    )
    H057 = "The label '{label}' cannot be used: it must be a string that is not empty."
    H058 = (
        "The component '{name}' needs a trainer, such as spacy-hocrf.LBFGS.v1, but '{found}' lacks "
        "{missing}. See [components.{name}.trainer], and the protocol in spacy_hocrf.training.base."
    )
    H059 = (
        "The kernels for '{found}' cannot run here. This machine can run: {known}. See the "
        "environment variable {variable}; without it the best are chosen."
    )
    H080 = (
        "All {found} documents of the corpus are held back together, so that none is left to learn "
        "from. Add documents, or give them more than one group: see group_by in [components.*]."
    )
    H081 = (
        "'{found}' minimises no objective. For one, choose another trainer in "
        "[components.*.trainer]."
    )
    H082 = "Pattern {pattern} has state {state} of vertex {vertex}, but {known}."
    H083 = (
        "Pattern {pattern} has vertex {vertex} twice. A pattern has at most one state of each "
        "vertex."
    )
    H084 = "Scores of a graph must be numbers from -1e150 to 1e150, but '{name}' holds {found} at {where}."
    H085 = "The arrays of a graph do not fit each other: '{name}' is {found}, expected {expected}."
    H086 = "The edge {pair} cannot be in the forest: it {reason}."
    H087 = (
        "{name} = '{found}' is unknown. Choose one of: {known}. See [components.*.joint.decoder]."
    )
    H088 = "{name} is {found}, but must be {expected}. See [components.*.joint.decoder]."
    H089 = (
        "The first subproblem has {found} cells, but the graph has {expected}: its vertices must have "
        "the same states."
    )
    H090 = (
        "Integer linear programs need SciPy, which is not installed: pip install spacy-hocrf[ilp], or "
        "leave out ilp_seconds."
    )
    H092 = (
        "Segment vertex {vertex} of a graph is [{start}, {end}), but no label allows more than "
        "{limit} tokens. In a CRF use token vertices; else raise max_length in "
        "[components.*.model]."
    )
    H093 = (
        "No allowed segmentation covers sequence {sequence} of {tokens} tokens: length limits and "
        "`allowed` exclude all of them."
    )
    H096 = (
        "There are no joint features. Add a block [components.*.joint.features.name], or write "
        "joint = null."
    )
    H097 = (
        "'{found}' is not a joint template. Use spacy-hocrf.IdenticalPhrases.v1, another of ours, "
        "or what has the members of spacy_hocrf.api.JointTemplate. See [components.*.joint.features]; rules "
        "about all spans of a text stand in [components.*.constraints.rules]."
    )
    H098 = (
        "The joint template '{name}' occurs twice. Delete one of the blocks "
        "[components.*.joint.features.*]."
    )
    H099 = "{name} is {found}, but must be {expected}. See [components.*.joint.features]."
    H100 = (
        "The decoder is '{found}', but must be made by spacy-hocrf.DualDecomposition.v1. See "
        "[components.{name}.joint.decoder]."
    )
    H101 = (
        "The extension '_.{name}' is not registered. Call Doc.set_extension('{name}', "
        "default=None) before the pipeline is made, in a file given with --code, or change "
        "group_by in [components.{block}]."
    )
    H102 = (
        "The joint weights are {found}, but must be {expected} numbers from -{most:g} to {most:g}, one for "
        "each of joint.feature_names."
    )
    H103 = (
        "The model was saved with other joint features than the config has now: {difference}. "
        'Change [components.{name}.joint.features] back; kind = "chain" in '
        "[components.{name}.joint.decoder] ignores them."
    )
    H106 = (
        "A task of a learner contradicts itself: the {what} that it decodes with is {found}, "
        "expected {expected}. Its `decode`, `counts` and `loss` must describe one score."
    )
    H107 = "{name} of a learner of graphs is {found}, but must be {expected}."
    H108 = "{name} is {found}, but must be {expected}. See [components.*.joint.trainer]."
    H109 = (
        "The joint weights of '{name}' cannot be learnt beside the trainer '{found}': they need "
        "{needs}. Change [components.{name}.trainer] or [components.{name}.joint.trainer]; "
        "learn = false in [components.{name}.joint] leaves them as they are."
    )
    H110 = (
        "{name} is {found}, but must be {expected}. See [corpora.*], its grouper, or "
        "[training.batcher]."
    )
    H111 = (
        "The groups of the documents are {found}, expected {expected}. See doc._.hocrf_group and "
        "the grouper in [corpora.*]."
    )
    H112 = (
        "The corpus of spacy-hocrf.GroupedCorpus.v1 has no path. Set it in [paths] or [corpora.*]."
    )
    H115 = (
        "The trainer '{found}' begins no run over the whole corpus. Define its method `begin`, or "
        "let it say `batchwise = True`."
    )
    H116 = (
        "The dense score '{name}' {reason}. See [components.*.model.scores], and the protocol in "
        "spacy_hocrf.model.dense."
    )
    H117 = (
        "The dense score '{score}' returns {what} with the extents {found}, expected {expected}. See "
        "[components.*.model.scores]."
    )
    H118 = (
        "The component '{name}' needs what reads answers off its model, such as "
        "spacy-hocrf.Viterbi.v1, but '{found}' lacks {missing}. See "
        "[components.{name}.decoder], and the protocol in spacy_hocrf.answers.decoders."
    )
    H119 = (
        "joint is '{found}', but must be null, or made by spacy-hocrf.Joint.v1. See "
        "[components.{name}.joint]."
    )
    H120 = (
        "The joint template '{template}' finds {reason}. A set holds two or more places of one "
        "group, each inside one Doc, which do not overlap; see spacy_hocrf.joint.places.PlaceSets."
    )
    H121 = (
        "The component '{name}' needs a trainer of joint weights, such as "
        "spacy-hocrf.JointMaxMargin.v1, but '{found}' lacks {missing}. See "
        "[components.{name}.joint.trainer], and the protocol in spacy_hocrf.joint.learning."
    )
    H130 = (
        "The feature template '{template}' returns {name} = {found}, expected {expected}. Mend its "
        "`events` or `find`, or take it out of [components.*.model.features]."
    )
    H131 = (
        "The feature template '{template}' has {name} = {found}, but must have {expected}. See "
        "`Template` in spacy_hocrf.features.templates and [components.*.model.features]."
    )
    H132 = (
        "The {what} {found} has lone surrogates, so it is no Unicode text and cannot be stored. "
        "Correct the data, or read it with errors='replace'."
    )
    H133 = "The label '{label}' occurs twice. Labels must differ."
    H134 = (
        "The header of the model's files is wrong at {name}: {reason}. The files have been altered; "
        "load another copy."
    )
    H135 = (
        "The model was saved with '{found}', which belongs to {setting}, but the component '{name}' "
        "has no such setting now. Put it back into the config, or train again."
    )
    H136 = (
        "The model's files have more {name} than are read: {found}, at most {most}; {reason}. Load "
        "another copy."
    )
    H137 = (
        "'{source}' holds {found} in the text that begins '{text}', expected a real number or an "
        "array of them for every token. See [components.*.model.features]."
    )
    H138 = "'{name}' of the potentials is {found}, expected {expected}."
    H139 = "Cannot ask for {found} in a batch of {expected}."
    H140 = "parts = {found} names a part twice. See [components.*.model.features]."
    H141 = "window names '{found}', none of attrs: {known}. See [components.*.model.features]."
    H142 = "'{found}' is not a flag of a token. Known: {known}. See [components.*.model.features]."
    H143 = (
        "The model has {labels} labels with {found} pairs, at most {most}. Set unseen_transitions = "
        "false in [components.*.model]."
    )
    H145 = (
        "sigma = 'auto' needs a trainer that reaches an optimum, which spacy-hocrf.SGD.v1 does not. "
        "Give a number, or choose spacy-hocrf.LBFGS.v1 in [components.*.trainer]."
    )
    H146 = (
        "sigma = '{found}' is unknown. Give a number above 0, or one for each order, or, to "
        "spacy-hocrf.LBFGS.v1 and OWLQN.v1, 'auto'. See [components.*.trainer]."
    )
    H150 = (
        "cost = {found}, but must be 'auto' or a number above 0 and below 1: what a span must be "
        "worth to be shown. See [components.*.decoder]."
    )
    H151 = (
        "beta = {found}, but must be a number above 0: how much more recall counts than precision. "
        "See [components.*.decoder]."
    )
    H152 = (
        "'{found}' cannot read the model of '{name}', which predicts {reads}. For tags there is "
        "spacy-hocrf.ExpectedAccuracy.v1, for spans ExpectedF.v1: see [components.{name}.decoder]."
    )
    H170 = (
        "'{name}' asks for word vectors, and nlp.vocab has none. Start from a pipeline that has some, "
        "or name one in [initialize] vectors, or take the block out of [components.*.model.features]."
    )
    H171 = (
        "The model was trained with vectors of {expected} dimensions ('{name}'), and nlp.vocab has "
        "{found}. Load it with the vocabulary that it was saved with. A pipeline that sources the component "
        "needs the same vectors before it is saved: see vectors in [initialize]."
    )
    H172 = (
        "'{name}' has arrays of {found} dimensions in the text beginning with '{text}', and {expected} "
        "in those before, or in training. Arrays of all tokens must have one width: see what writes them, "
        "such as [components.hocrf_encoder]."
    )
    H173 = "scale = {found}, but must be a number above 0. See [components.*.model]."
    H174 = (
        "vectors = {found}, but must be true, false or 'auto'. See [components.*.model.features]."
    )
    H175 = (
        "Vector {row} of nlp.vocab is not finite ('{name}'). Mend what [initialize] vectors names."
    )
    H180 = (
        "'{found}' is not a source of spans. Write 'ents' for doc.ents or 'spans.KEY' for doc.spans[KEY]; "
        "what is read from doc.ents has no scores. See [components.*.model.features]."
    )
    H181 = (
        "The {expected} spans of doc.spans['{key}'] have {found} for scores in the text that begins "
        "'{text}', expected attrs['scores'] with a finite number for each. Take scores out of "
        "[components.*.model.features], or let the component that writes the spans write them."
    )
    H182 = (
        "None of the {found} training documents has doc.spans['{key}'], which a template in "
        "[components.*.model.features] reads. List the component that writes it in [training] "
        "annotating_components, or let spacy-hocrf.SpansCorpus.v1 read it with the corpus."
    )
    H183 = (
        "bins = {found}, but must be finite numbers that ascend: the lowest scores of each bin but the "
        "first. See [components.*.model.features]."
    )
    H255 = (
        "All {found} training texts have the weight 0, so there is nothing to learn. Give some of them a "
        "number above 0, or None for 1: doc._.hocrf_weight of the annotated Docs."
    )
    H401 = "{path} cannot be written: {reason}. Choose another place: see {setting}."
    H480 = (
        "{folder} has no kernels that are compiled for this Python, expected the package as pip installs "
        "it. Run `pip install -e .` in the folder above, or start Python in another one."
    )
    H481 = (
        "group_by = '{found}' in [components.{name}] and group_by = '{joint}' in [components.{name}.joint]: "
        "texts of one group are held back together, so both must be the same. Set one of them alone."
    )
    H490 = "[components.{name}] needs {found}, which is not installed: pip install 'spacy-hocrf[encoder]'."
    H491 = (
        "{folder} is {found}, expected a folder with an encoder: tokenizer.json, as Hugging Face's "
        "tokenizers write it, and an ONNX model. See folder in [components.{name}], or --encoder."
    )
    H492 = (
        "{folder} and its folder 'onnx' have these ONNX models: {known}; expected was {wanted}. Name it in "
        "file of [components.{name}], relative to the folder, or take another folder there or for --encoder."
    )
    H493 = (
        "The {found} of {place} cannot be read: {reason}. Get the encoder again, or see folder and file in "
        "[components.{name}]; a model whose weights are in other files needs saved = false there."
    )
    H494 = (
        "{place} asks for {found}; expected input_ids and, if it likes, attention_mask and token_type_ids, "
        "integers for any number of texts and pieces. See folder and file in [components.{name}]."
    )
    H495 = (
        "{place} gives {found}; expected an array of floats for texts, pieces and a fixed number of "
        "dimensions, such as last_hidden_state. See folder and file in [components.{name}]."
    )
    H496 = (
        "{place} cannot read {found} pieces at once: {reason}. Set window in [components.{name}] to what the "
        "model was made for, at most."
    )
    H497 = (
        "The encoder in {folder} is not the one that the pipeline was saved with: checksum {found}, and "
        "arrays of {width}; expected {checksum}, and {expected}. Name its folder in [components.{name}], or "
        "train again."
    )
    H498 = "{setting} = {found} in [components.{name}], but must be {expected}."
    H499 = (
        "What was saved of [components.{name}] is not complete: of model.onnx, tokenizer.json and "
        "encoder.json there is {found} in {place}, expected the first two or the last one. Save the "
        "pipeline again."
    )
    H510 = (
        "A model is extended by L-BFGS, but the trainer is {found}. Name spacy-hocrf.LBFGS.v1 or "
        "spacy-hocrf.OWLQN.v1 in [components.*.trainer]."
    )
    H511 = (
        "None of the {found:,} texts that are to extend the model has anything annotated in {places}, where "
        "the component looks. Annotate at least one span or tag there."
    )
    H520 = (
        "The training text {text} has the weight {found}, expected a finite number from 0 up, or None for 1. "
        "See doc._.hocrf_weight of the annotated Doc."
    )
    H530 = (
        "ratio = {found} in [components.*.trainer], but must be the share of tokens that are in spans, above "
        "0 and below 1, or one for each of some labels, whose sum is below 1."
    )
    H531 = (
        "ratio in [components.*.trainer] names {found}, but the labels are {known}. Give a share for these, "
        "or one number for all."
    )
    H532 = (
        "positives_only = true in [components.{name}] does not go with {found}: expected a trainer that "
        "knows a ratio, spacy-hocrf.LBFGS.v1 or spacy-hocrf.OWLQN.v1, and joint = null."
    )
    H533 = (
        "The corpus has positives only, and none of its {found} texts has a span{of}: nothing says what is "
        "in one, and anything could be. Mark some, leave out a label that has none, or set positives_only = "
        "false in [components.*]."
    )
    H534 = (
        "The spans that are marked have {found} of all tokens, more than the ratio that there should be, "
        "{expected}. See ratio in [components.*.trainer]."
    )
    H568 = (
        "The trainer '{trainer}' begins a run that is of the type '{found}' and lacks {missing}. Mend its "
        "method `begin`, or choose another trainer in [components.*.trainer]; see spacy_hocrf.api.Run."
    )
    H580 = (
        "n = {found}, but must be a whole number from 2 to 100: one of so many readings of a text is "
        "shown. See [components.*.decoder]."
    )
    H590 = (
        "The method `{name}` of the decoder '{decoder}' returns {found}, expected {expected}. Mend it, or "
        "choose another decoder in [components.*.decoder]; see spacy_hocrf.api.Decoder."
    )
    H592 = (
        "Label pattern {pattern} {reason}. The patterns of an automaton differ, and those that are carried "
        "are among them."
    )
    H593 = (
        "The run of the trainer '{trainer}' has weights that are {found}, expected {expected} finite numbers "
        "of float32, one for each feature. Mend it, or choose another trainer in [components.*.trainer]; see "
        "spacy_hocrf.api.Run."
    )
    H600 = (
        "The text that begins '{text}' is to be learnt from within nlp.memory_zone(), which ends with its "
        "strings and words, but a component keeps its training texts. Call nlp.initialize, nlp.update or "
        "`extend` outside of it, with texts that were made outside."
    )
