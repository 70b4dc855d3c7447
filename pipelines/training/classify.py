"""A classifier trained on synthetic images alone: the same recipe wherever one is needed."""

import torch
from torch import nn

from models import classifiers
from pipelines.config.data import Profile
from pipelines.config.training import Pooled
from pipelines.datasets.labelled_images import Images
from pipelines.training import classifier


def new(
    profile: Profile, seed: int, device: torch.device | str = "cpu", *, activation: str = "relu"
) -> nn.Module:
    """The data set's classifier, freshly initialised. Channels last: convolutions take three quarters of the time."""
    facts = {"shape": tuple(profile.shape), "classes": profile.classes, "seed": seed}
    model = classifiers.build(profile.classifier, **facts, activation=activation)
    return model.to(device, memory_format=torch.channels_last)


def on_synthetic(
    data: Images, profile: Profile, settings: Pooled, seed: int, device: torch.device | str = "cpu"
) -> nn.Module:
    """Trained on `data` with the data set's public augmentation; last iterate, no selection."""
    model = new(profile, seed, device)
    classifier.fit(
        model,
        data,
        epochs=settings.epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        seed=seed,
        augmentation=profile.augmentation,
    )
    return model
