"""The verdict on PPPFL's model, beside a network that nothing was trained on."""

from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_digits

from pipelines.config import load
from pipelines.datasets import exports
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core.rounds import History
from pipelines.federation.run_spec import RunSpec
from stages import meta_train


def test_a_warm_start_that_is_dead_itself_is_found(monkeypatch):
    """The first model of the history is the warm start, and no measure of what training can do."""
    params = load()
    digits = load_digits()
    pixels = (digits.images[:800, :, :, None] * 15).astype(np.uint8)
    data = Images(pixels, digits.target[:800], np.full(800, -1))
    monkeypatch.setattr(exports, "at_hand", lambda *names: {"c0": data})
    run = RunSpec("digits", "pppfl", "dp_moments")
    start = run.task(params, {"c0": data}).start()
    dead = {name: np.zeros_like(array) for name, array in start.items()}
    for name in dead:
        if name.endswith("bias"):
            dead[name] -= 1.0
    history = History([dead, dead], [{"query_loss": 2.3}], SimpleNamespace())
    assert meta_train._health(params, run, history).collapsed
    alive = History([start, start], [{"query_loss": 2.3}], SimpleNamespace())
    assert not meta_train._health(params, run, alive).collapsed
