"""Tests export_synthetic as a user sees it: it says where the images lie."""

import contextlib

from pipelines import config
from stages import export_synthetic


def test_the_stage_says_where_the_images_lie(checkout, capsys):
    checkout.export(["c0"], "dp_moments")
    capsys.readouterr()
    with contextlib.chdir(checkout.path):
        export_synthetic.run(config.load(), "own", "c0", "dp_moments")
    told = capsys.readouterr().out
    place = "data/synthetic/own/c0/dp_moments"
    files = "images.npz, grid.png, card.md, and huggingface/ for other tools"
    assert told == f"own/c0/dp_moments: 60 images in {place}: {files}\n"
    assert (checkout.path / place / "images.npz").exists()
