"""Tests that the Python example of README.md runs as it stands, on the files that a run leaves."""

import re

import numpy as np
import parameter_files
from project import ROOT

from pipelines import config, paths
from pipelines.federation.home import personal
from pipelines.training import classifier


def test_the_example_loads_released_images_and_a_personal_model(tmp_path, monkeypatch):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    parameter_files.copy_files(ROOT, tmp_path)
    monkeypatch.chdir(tmp_path)
    profile = config.load().profiles["digits"]
    released = paths.synthetic("digits", "c0", "dp_moments") / "images.npz"
    released.parent.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (7, *profile.shape)).astype(np.uint8)
    np.savez(released, images=images, labels=np.arange(7))
    folder = paths.personal("digits", "dp_moments") / "pppfl-dp_moments"
    folder.mkdir(parents=True)
    model = personal.plain(classifier.new(profile, seed=1), profile.classes)
    personal.write(folder / "c0.safetensors", model)
    scope = {}
    exec(example, scope)
    np.testing.assert_array_equal(scope["classes"], model.predict(images))
