"""The settings of training in two stages, and when the second one begins."""

import pytest

from spacy_hocrf.training.stages import RefitTrainer, StagesTrainer


def test_the_first_stage_is_batch_wise_and_the_second_is_not():
    trainer = StagesTrainer(sigma=2.0, epochs=3, iterations=5, threads=2)
    assert trainer.batchwise and trainer.after(0) is trainer and trainer.after(2.9) is trainer
    refit = RefitTrainer(sigma=2.0, iterations=5, threads=2, keeps_heads=True)
    assert trainer.after(3) == trainer.after(float("inf")) == refit
    assert not refit.batchwise and refit.after(100) is refit


def test_without_epochs_the_second_stage_is_all_and_trains_the_heads():
    assert StagesTrainer(epochs=0, sigma=1.0).after(0) == RefitTrainer(sigma=1.0)


def test_sigma_is_chosen_for_the_second_stage_and_1_in_the_first():
    trainer = StagesTrainer()
    assert trainer.sigmas == (1.0,) and trainer.refit.choices and not trainer.choices
    assert trainer.with_sigma(0.5) == StagesTrainer(sigma=0.5)
    assert StagesTrainer(sigma=2.0).with_sigma(0.5) == StagesTrainer(sigma=2.0)
    assert trainer.with_sigma(None) is trainer


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"sigma": "often"}, "H146"),
        ({"sigma": 0.0}, "H048"),
        ({"epochs": -1}, "H048"),
        ({"epochs": 1.5}, "H048"),
        ({"folds": -1}, "H048"),
        ({"iterations": 0}, "H048"),
        ({"threads": -1}, "H048"),
    ],
)
def test_settings_are_checked(settings, code):
    with pytest.raises(ValueError, match=code):
        StagesTrainer(**settings)
