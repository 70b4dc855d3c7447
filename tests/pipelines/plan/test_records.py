"""Tests what counts as at hand: images for which nothing would be downloaded."""

from pathlib import Path

from project import ROOT

from pipelines import config
from pipelines.plan import records


def test_a_published_set_is_at_hand_once_all_its_archives_are(tmp_path):
    params = config.load(ROOT / "params.yaml")
    prepare = params.prepare.model_copy(update={"root": str(tmp_path)})
    params = params.model_copy(update={"prepare": prepare})
    assert records.at_hand(params, "digits")
    assert not records.at_hand(params, "cifar10")
    (tmp_path / "cifar10.npz").touch()
    assert records.at_hand(params, "cifar10")
    folder = tmp_path / "MNIST/raw"
    folder.mkdir(parents=True)
    names = [
        f"{part}-{kind}-ubyte.gz"
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]
    for name in names:
        assert not records.at_hand(params, "mnist")
        Path(folder / name).touch()
    assert records.at_hand(params, "mnist")
