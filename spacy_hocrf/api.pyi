# ruff: noqa: I001
# The public names by subject; api.py imports a name from the module given here when it is first used.

# Answers of a trained pipeline
from spacy_hocrf.pipeline.component import SegmentationPipe as SegmentationPipe
from spacy_hocrf.answers.reading import Reading as Reading
from spacy_hocrf.annotation.best_readings import ScoredSpan as ScoredSpan
from spacy_hocrf.annotation.best_readings import ReadingSet as ReadingSet
from spacy_hocrf.annotation.best_readings import ScoredReading as ScoredReading
from spacy_hocrf.answers.explaining import Explanation as Explanation
from spacy_hocrf.learning.choice import Choice as Choice

# Whole corpora
from spacy_hocrf.cli.config import starting_config as starting_config
from spacy_hocrf.cli.auto.command import auto as auto
from spacy_hocrf.cli.auto.report import AutoResults as AutoResults
from spacy_hocrf.cli.auto.texts import AutoSetup as AutoSetup
from spacy_hocrf.cli.options import BestAt as BestAt
from spacy_hocrf.cli.pipelines import trained as trained
from spacy_hocrf.cli.doubt import cross_read as cross_read
from spacy_hocrf.cli.doubts import Doubt as Doubt, text_weights as text_weights
from spacy_hocrf.cli.doubt import NextText as NextText, next_texts as next_texts
from spacy_hocrf.annotation.acceptance import Acceptance as Acceptance
from spacy_hocrf.cli.accept import (
    WholeTexts as WholeTexts,
    accept as accept,
    calibration_errors as calibration_errors,
    whole_texts as whole_texts,
)
from spacy_hocrf.rules.proposals import (
    ProposedGrammar as ProposedGrammar,
    propose_grammar as propose_grammar,
)
from spacy_hocrf.cli.calibrate import (
    Calibration as Calibration,
    calibrate as calibrate,
    threshold_for as threshold_for,
)
from spacy_hocrf.cli.compare import (
    compare as compare,
    compare_counts as compare_counts,
    read_gold as read_gold,
    read_system as read_system,
)
from spacy_hocrf.cli.counts import (
    Counts as Counts,
    EntsScorer as EntsScorer,
    Scorer as Scorer,
    SpansScorer as SpansScorer,
    TagsScorer as TagsScorer,
    count_items as count_items,
)
from spacy_hocrf.cli.randomization import (
    RandomizationTest as RandomizationTest,
    f1 as f1,
    holm as holm,
    randomization_test as randomization_test,
)
from spacy_hocrf.annotation.readers import (
    AttributesCorpus as AttributesCorpus,
    SpansCorpus as SpansCorpus,
)
from spacy_hocrf.sequences.templates import read_templates as read_templates

# Custom features
from spacy_hocrf.features.templates import (
    AttributeTemplate as AttributeTemplate,
    Events as Events,
    Template as Template,
)
from spacy_hocrf.features.segments import TransitionTemplate as TransitionTemplate
from spacy_hocrf.features.pieces import PiecesTemplate as PiecesTemplate
from spacy_hocrf.features.tokens import TokenBatch as TokenBatch
from spacy_hocrf.model.dense import DenseScore as DenseScore, LinearScore as LinearScore
from spacy_hocrf.model.architectures import set_weights as set_weights, weights_of as weights_of
from spacy_hocrf.types import START as START, END as END, TOKEN as TOKEN, INNER as INNER
from spacy_hocrf.types import SPAN as SPAN, LENGTH as LENGTH, CONST as CONST
from spacy_hocrf.types import FIRST as FIRST, CONTINUE as CONTINUE, LAST as LAST

# Custom training, decoding and rules
from spacy_hocrf.training.base import BaseTrainer as BaseTrainer, Run as Run
from spacy_hocrf.training.base import Trainable as Trainable, Trainer as Trainer
from spacy_hocrf.training.lbfgs import LBFGSRun as LBFGSRun, LBFGSTrainer as LBFGSTrainer
from spacy_hocrf.training.owlqn import OWLQNTrainer as OWLQNTrainer
from spacy_hocrf.rules.constraints import Constraints as Constraints
from spacy_hocrf.rules.templates import RuleTemplate as RuleTemplate
from spacy_hocrf.engine.rules import Rule as Rule
from spacy_hocrf.answers.decoders import (
    Answer as Answer,
    Decoder as Decoder,
    ExpectedAccuracy as ExpectedAccuracy,
    ExpectedF as ExpectedF,
    Reranked as Reranked,
    Viterbi as Viterbi,
)
from spacy_hocrf.joint.decoding import DualDecomposition as DualDecomposition

# Joint decoding of documents, and links
from spacy_hocrf.joint.learning import JointTrainer as JointTrainer
from spacy_hocrf.joint.places import PlaceSets as PlaceSets
from spacy_hocrf.joint.templates import IdenticalPhrases as IdenticalPhrases
from spacy_hocrf.joint.templates import JointTemplate as JointTemplate
from spacy_hocrf.joint.groups import (
    GroupedCorpus as GroupedCorpus,
    Grouper as Grouper,
    SingleLinkage as SingleLinkage,
    group_docs as group_docs,
    group_of as group_of,
)
from spacy_hocrf.annotation.groups import set_group as set_group
from spacy_hocrf.links.corpus import LinksCorpus as LinksCorpus

# Inference without spaCy
from spacy_hocrf.dispatch import (
    instruction_sets as instruction_sets,
    use_instructions as use_instructions,
)
from spacy_hocrf.engine.automaton import (
    Automaton as Automaton,
    compile_automaton as compile_automaton,
)
from spacy_hocrf.engine.forward_backward import (
    expectations as expectations,
    log_partition as log_partition,
    log_state_scores as log_state_scores,
)
from spacy_hocrf.engine.viterbi import viterbi as viterbi
from spacy_hocrf.types import (
    Expectations as Expectations,
    Potentials as Potentials,
    Segment as Segment,
    Segments as Segments,
)
from spacy_hocrf.graph.dual import dual_decompose as dual_decompose
from spacy_hocrf.graph.instance import (
    GraphInstance as GraphInstance,
    make_instance as make_instance,
)
from spacy_hocrf.graph.settings import DualSettings as DualSettings
from spacy_hocrf.graph.result import Decoding as Decoding
from spacy_hocrf.graph.subproblems import FirstSubproblem as FirstSubproblem
from spacy_hocrf.graph.features import FeatureGraph as FeatureGraph, learn_graphs as learn_graphs
