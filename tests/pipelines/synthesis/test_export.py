import hashlib
import json

import exported
import numpy as np
import pytest
from exported import images as data
from PIL import Image

from pipelines.datasets.labelled_images import class_names, load, synthetic
from pipelines.synthesis import card_text, export, hub


def described(release=None):
    return exported.card(exported.images(), release)


def test_the_folder_holds_exactly_what_may_leave(tmp_path):
    export.write(tmp_path, data(), described())
    names = {"images.npz", "grid.png", "card.json", "card.md", "SHA256SUMS"}
    names |= {f"{hub.FOLDER}/{name}" for name in hub.FILES}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path).as_posix() for path in files} == names
    sums = dict(
        reversed(line.split()) for line in (tmp_path / "SHA256SUMS").read_text().splitlines()
    )
    assert set(sums) == names - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    assert (load(tmp_path / "images.npz").ids == -1).all()


def test_the_card_carries_the_whole_privacy_block():
    privacy = described()["privacy"]
    wanted = {
        "mechanism",
        "epsilon",
        "delta",
        "mu",
        "guarantee",
        "unit",
        "relation",
        "accountant",
        "sampling",
        "noise",
    }
    assert wanted <= set(privacy)
    assert privacy["unit"] == "record"
    assert "add or remove" in privacy["relation"]
    assert {"sensitivity", "sigma", "settings", "hyperparameters"} <= set(privacy["details"])


def test_public_metrics_need_only_the_synthetic_images():
    metrics = export.public_metrics(data(), classes=10)
    assert metrics["images_per_class"] == [10, 10, 10, 10, 0, 0, 0, 0, 0, 0]
    assert metrics["duplicate_rate"] == 0
    twice = synthetic(np.zeros((4, 8, 8, 1)), np.arange(4))
    assert export.public_metrics(twice, classes=10)["duplicate_rate"] == pytest.approx(0.75)


def test_a_card_without_privacy_says_so_everywhere():
    text = card_text.markdown(described(exported.without_privacy()))
    assert "NO PRIVACY GUARANTEE" in text
    assert "| guarantee | none |" in text
    assert "| epsilon | inf |" in text


def test_a_weak_plan_is_marked_in_json_and_markdown():
    weak = {**exported.formal(), "weak": ["This plan can only make noise."]}
    assert described(weak)["weak"] == ["This plan can only make noise."]
    assert "**Weak:** This plan can only make noise." in card_text.markdown(described(weak))


def test_the_card_is_standard_json(tmp_path):
    export.write(tmp_path, data(), described())
    json.loads((tmp_path / "card.json").read_text(), parse_constant=lambda name: pytest.fail(name))


def test_the_grid_shows_each_image_in_its_classes_row(tmp_path):
    sheet = export.grid(data(), classes=10)
    export_row = np.asarray(sheet.convert("L"))[3 * export.TILE + 1 : 4 * export.TILE - 1]
    tile = export_row[:, export.MARGIN + 1 : export.MARGIN + export.TILE - 1]
    expected = Image.fromarray(data().images[3, ..., 0]).resize(
        (export.TILE - 2, export.TILE - 2), 0
    )
    assert np.array_equal(tile, np.asarray(expected))
    empty = np.asarray(sheet.convert("L"))[7 * export.TILE :, export.MARGIN :]
    assert (empty == 255).all()


@pytest.mark.parametrize(
    "channels, shown",
    [(1, [0, 0, 0]), (2, [0, 0, 0]), (3, [0, 1, 2]), (4, [0, 1, 2]), (6, [0, 1, 2])],
)
def test_the_grid_shows_images_of_any_number_of_channels(channels, shown):
    levels = np.linspace(0.1, 0.9, channels)
    sheet = export.grid(
        synthetic(np.broadcast_to(levels, (2, 8, 8, channels)), np.zeros(2, int)), classes=1
    )
    assert sheet.getpixel((export.MARGIN + 5, 5)) == tuple(
        int(np.rint(255 * levels[channel])) for channel in shown
    )


def with_names(names):
    return exported.card(data(), classes=4, class_names=names)


def test_declared_class_names_are_on_the_card_in_the_file_and_in_the_picture(tmp_path):
    names = ["benign", "a|b", "läsion " * 8, "malignant"]
    export.write(tmp_path, data(), with_names(names))
    assert class_names(tmp_path / "images.npz") == names
    assert json.loads((tmp_path / "card.json").read_text())["datasheet"]["class_names"] == names
    row = next(
        line
        for line in (tmp_path / "card.md").read_text().splitlines()
        if line.startswith("| class names")
    )
    assert row.startswith(r"| class names | 0: benign; 1: a\|b; 2: ") and row.endswith(
        "; 3: malignant |"
    )
    with Image.open(tmp_path / "grid.png") as named:
        assert (
            named.width > export.MARGIN + export.COLUMNS * export.TILE
            and named.height == 4 * export.TILE
        )


def test_without_declared_names_nothing_of_an_export_changes(tmp_path):
    export.write(tmp_path, data(), with_names(None))
    assert "class" not in json.loads((tmp_path / "card.json").read_text())["datasheet"]
    assert class_names(tmp_path / "images.npz") is None
    bare = tmp_path / "bare.npz"
    data().save(bare)
    assert bare.read_bytes() == (tmp_path / "images.npz").read_bytes()
    with Image.open(tmp_path / "grid.png") as plain:
        assert plain.size == (export.MARGIN + export.COLUMNS * export.TILE, 4 * export.TILE)
