"""What several tests share. Each file is imported by its own name, as in `from small_corpus import trained`:
`pythonpath` in pyproject.toml puts this folder on the path.

Numbers by another way: enumeration that is slow, obvious, and shares nothing with what it checks
    oracle               sequences: log Z, expectations, best segmentations; strategies that draw problems
    component_oracle     the same for the model of a component: segmentations and spans of a text
    worked_example       the sentence that both papers compute by hand, with their printed tables
    derivatives          gradients against central differences
    entities             the entities that segments stand for
    random_readings      problems with every kind of labels, and all that a reading of one can say
    random_constraints   problems with constraints on single texts, and the segmentations that keep them
    segmented_groups     groups of sequences with vertices on segments and tokens
    joint_oracle         joint features and rules by their definition
    graph_problems       graphs: all assignments, and problems whose optima are proved
    labelled_sequences   sequences of items: draws, scores and probabilities
    punctuation_oracle   log Z of the punctuation model of `project/references`
    chi_square           whether draws have the probabilities that they should have

Data and models to learn from
    small_corpus         people and places: Docs, a config, `trained` and `untrained` pipelines of every kind
    small_encoder        small encoders and pipelines over them
    onnx_encoder         a frozen encoder as ONNX, with a tokenizer
    toy_encoder          an encoder in float64, for derivatives through it
    consistent_corpus    names that only another sentence of the group makes clear
    joint_config         the block `[components.*.joint]`
    joint_decoding       what a component with joint features decodes, as segmentations
    link_documents       messages whose links are known
    word_corpus          a shard of texts of four words, for what is learnt from shards
    small_tasks          graphs with shared weights, for learners
    random_index         features of observations of several kinds
    smooth_functions     functions with gradients and known minima, for optimisers
    trainable            a model as far as the settings of trainers look at it

Tools
    builds               the compiled builds of the kernels; automata of drawn problems
    calls                work counted by Python calls, without a clock
    bfloat16             numbers as the pairs of L-BFGS are kept
    annotating           pipelines and a program for the tests of `hocrf annotate`
    mortal_process       a process of a pool that some of its tasks kill
    commands             commands of `python -m spacy hocrf`, in this process
    converting           files that `hocrf convert` reads
    doubt_command        `hocrf doubt` and configs for it
    documentation        pages, sections and blocks of code of the documentation
    page_blocks          runs the blocks of a page
    built_site           the site that mkdocs builds
    browser              a page in Chromium
    label_page           a person at the page of `hocrf label`, with a keyboard
    word_loop            a loop for `hocrf label` without a model
    project_checks       tables and `project.yml` of the projects
"""
