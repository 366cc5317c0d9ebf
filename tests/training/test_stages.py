"""The settings of training in two stages, and when the second one begins."""

import pytest

from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.stages import StagesTrainer


def test_the_first_stage_is_batch_wise_and_the_second_is_not():
    trainer = StagesTrainer(sigma=2.0, epochs=3, iterations=5, threads=2)
    assert trainer.batchwise and trainer.after(0) is trainer and trainer.after(2.9) is trainer
    refit = LBFGSTrainer(sigma=2.0, iterations=5, threads=2)
    assert trainer.after(3) == trainer.after(float("inf")) == refit
    assert not refit.batchwise and refit.after(100) is refit


def test_without_epochs_the_second_stage_is_all():
    assert StagesTrainer(epochs=0).after(0) == LBFGSTrainer(sigma=1.0)


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"sigma": "auto"}, "H145"),
        ({"sigma": 0.0}, "H048"),
        ({"epochs": -1}, "H048"),
        ({"epochs": 1.5}, "H048"),
        ({"iterations": 0}, "H048"),
        ({"threads": -1}, "H048"),
    ],
)
def test_settings_are_checked(settings, code):
    with pytest.raises(ValueError, match=code):
        StagesTrainer(**settings)
