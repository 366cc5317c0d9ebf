"""What a user should know although it works, each with a code to search for."""

from spacy_hocrf.errors import Coded

__all__ = ["Warnings"]


class Warnings(metaclass=Coded):
    W001 = (
        "In {found} documents neighbouring spans of one label touch; they are taken as one, "
        "because {reason}. Set repeats = true in [components.*.model], or another encoding, to "
        "keep them apart."
    )
    W002 = (
        "max_length allows segments of '{label}' of {found} tokens, but the training data has one "
        "of {longest}: the limit is raised to that. See [components.*.model]."
    )
    W003 = (
        "{found} overlapping spans of {place} are not learnt, in {texts} texts: a segmentation cannot "
        "overlap, and the longest of those that do is kept. The first texts begin '{first}'. Have a "
        "component for each layer of spans, with a spans_key of its own: docs/data.md#spans-inside-spans."
    )
    W004 = "{found} training documents have no annotation at all for '{name}' and teach it nothing."
    W007 = (
        "A group of Docs has more than {most} tokens and is split: patterns do not connect its "
        "parts. See max_group_tokens in [components.{name}.joint.decoder]."
    )
    W008 = (
        "Docs of the group {group!r} come back after Docs of another group, and are decoded apart "
        "from the earlier ones. Put the Docs of a group next to each other; see group_by in "
        "[components.{name}]."
    )
    W009 = (
        "'{name}' learns no joint weights: fewer than two completely annotated training documents, "
        "or groups of them, have places that its joint features connect. See "
        "[components.{name}.joint.features] and group_by in [components.{name}.joint]."
    )
    W010 = (
        "No document of {path} has a group, so each is a group of its own. Set doc._.hocrf_group "
        "and write the file with DocBin(store_user_data=True), or name a grouper in [corpora.*]."
    )
    W011 = (
        "{names} see the labels of {orders} earlier segments, but order = {found} in "
        "[components.*.model]: they are left out. Set that to as much, or lower the order of their "
        "blocks in [components.*.model.features]."
    )
    W012 = (
        "max_length in [components.*.model] names {found}, which is not a label of the training texts, "
        "and limits nothing there. Labels are {known}."
    )
    W013 = (
        "{source} is empty in all {found} training texts, so features of it say nothing. List the "
        "component that sets it in [training] annotating_components, look whether its name is right, "
        "or take it out of [components.*.model.features]."
    )
    W014 = (
        "{source} was empty in all texts that '{name}' has learnt from, but is not in those that begin "
        "with '{text}': its features do not know what it says. Let the component that sets it run in "
        "training, too: see [training] annotating_components."
    )
    W015 = (
        "{source} is empty in the first {found} texts that '{name}' has read, but was not when it "
        "learnt ({rate} times a text). Put the component that sets it in front of '{name}'."
    )
    W016 = (
        "'{name}' has no array for any token of the {found} training texts, so it says nothing. See "
        "vectors in [initialize], or what sets these arrays, and [components.*.model.features]."
    )
    W017 = (
        "No training text has annotation in {place}, but there is some in {found}. See spans_key in "
        "[components.*], or which factory the component has."
    )
    W018 = (
        "The features have neither label patterns nor lengths, so that nothing but words says how many "
        "segments there are. Name spacy-hocrf.Features.v1 in [components.*.model.features], which adds "
        "them, and have the blocks below it."
    )
    W020 = (
        "'{name}' has not converged in {found} steps, and still learns much. To go on, give [training] a "
        "higher max_steps, and patience = 0."
    )
    W030 = (
        "{found} of {all} training documents break [components.*.constraints] and teach nothing; the first "
        "begins '{text}'. Correct their annotation or the constraints, or set training = 'none' there to "
        "learn from them all the same."
    )
    W031 = (
        "{found} of {all} annotated links of the training texts are no pairs that '{name}' can link, or "
        "have ends that are no items: they teach nothing and are never found. See "
        "[components.{name}.pairs]."
    )
    W032 = (
        "{found} is empty at all items of the training texts, so what '{name}' sees of it says nothing. "
        "See attr in [components.{name}.features.values], and attributes of the reader in [corpora.train]."
    )
    W035 = (
        "'{name}' has learnt nothing: all of its weights are 0, and every reading of a text is as probable "
        "as any other. Train it, on annotated texts, before it is used."
    )
    W036 = (
        "What earlier components have set in the text that begins '{text}' breaks [components.*.constraints] "
        "or constraints of the text. It stays, and what is found beside it keeps the rules by itself. This "
        "is said once. Set overwrite = true in [components.*], or change the rules."
    )
    W048 = (
        "{path} cannot be locked ({reason}). Let no other hocrf annotate write to it at the same time: "
        "neither would notice."
    )
    W049 = (
        "The text that begins '{text}' could break so many rules at once that its scores are less exact than "
        "the tolerance; no rule of the price 'inf' is broken. This is said once. Leave out rules in "
        "[components.*.constraints]."
    )
    W050 = (
        "'{name}' learns no prices of rules from {found} of {all} texts: their annotation breaks a rule of "
        "the price 'inf', or they could break too many at once. Correct it, or leave out rules in "
        "[components.{name}.constraints]."
    )
    W051 = (
        "Settings of '{name}' that decide what is shown are others than those for which texts may be "
        "accepted unread, such as the threshold, the constraints or their prices: what was promised has "
        "ended. Run calibrate --accept again."
    )
    W052 = (
        "No training text has doc.spans['{key}'], which teachers in [components.{name}] names: nothing is "
        "learnt from it. Groups that there are: {known}. Correct the name, or see whether the reader in "
        "[corpora.train] keeps them: gold_preproc loses them where it cuts a text into sentences."
    )
    W053 = (
        "'{name}' has learnt from {found} texts in {steps} steps, and there may be more: the last batch had "
        "new ones still. A component with a source sees a text when its batch comes. Give "
        "[training.batcher] a larger size, so that one batch has all texts, or teach them by `python -m "
        "spacy hocrf extend`."
    )
    W054 = (
        "The constraints of '{name}' were set after it was made, and are not saved: a loaded pipeline has "
        "those of its config. Unless they are there already, write them into "
        "[components.{name}.constraints], or set nlp.get_pipe_config('{name}')['constraints'] before saving."
    )
    W055 = (
        "The reranker of '{name}' knows nothing of {labels}: from now on, the most probable reading of a "
        "text is shown. To have one that does, train anew on texts where all labels are annotated."
    )
