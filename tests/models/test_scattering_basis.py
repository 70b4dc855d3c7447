"""Tests the public basis: the law of the noise images, and what the basis makes of them."""

import numpy as np
import pytest
import torch

from models import scattering_basis
from models.scattering import Scattering, normalised

SHAPE = (8, 8, 1)


@pytest.fixture(scope="module")
def basis():
    return scattering_basis.make(SHAPE, images=600)


def features(shape, count) -> np.ndarray:
    images = np.concatenate(list(scattering_basis.noise_images(shape, count)))
    return normalised(Scattering(*shape[:2], torch.float64)(torch.from_numpy(images))).numpy()


def test_the_constants_are_those_of_the_recipe():
    assert scattering_basis.IMAGES == 5000 and scattering_basis.DIRECTIONS == 500
    assert scattering_basis.WHITENING == 0.75


def test_it_is_the_principal_directions_with_dampened_deviations(basis):
    phi = features(SHAPE, 600)
    _, singular, directions = np.linalg.svd(phi - phi.mean(0), full_matrices=False)
    count = int((singular >= scattering_basis.FLOOR * singular[0]).sum())
    assert basis.directions.shape == (count, 324) and 100 < count < 300
    np.testing.assert_allclose(basis.mean, phi.mean(0), atol=1e-6)
    products = (basis.directions.astype(float) * directions[:count]).sum(1)
    np.testing.assert_allclose(np.abs(products), 1, atol=1e-3)
    ratios = basis.weights / basis.weights[0]
    np.testing.assert_allclose(ratios, (singular[:count] / singular[0]) ** -0.75, rtol=1e-4)


def test_the_noise_images_features_have_a_mean_norm_of_one(basis):
    r = (features(SHAPE, 600) - basis.mean) @ basis.directions.T.astype(float) * basis.weights
    assert np.linalg.norm(r, axis=1).mean() == pytest.approx(1, abs=1e-5)
    deviations = r.std(0)
    np.testing.assert_allclose(
        deviations / deviations[0], (basis.weights / basis.weights[0]) ** (-1 / 3), rtol=1e-2
    )


def test_a_wide_basis_is_that_of_the_small_product():
    """There are fewer images than features, and fewer directions than images."""
    phi = features((12, 8, 3), 90)
    phi -= phi.mean(0)
    deviations, directions = scattering_basis._principal(phi, 40)
    _, singular, expected = np.linalg.svd(phi, full_matrices=False)
    np.testing.assert_allclose(deviations, singular[:40] / np.sqrt(90), rtol=1e-6)
    np.testing.assert_allclose(np.abs((directions * expected[:40]).sum(1)), 1, atol=1e-6)


def test_an_eigenvector_s_sign_does_not_reach_the_basis():
    directions = np.random.default_rng(0).normal(size=(5, 9))
    signed = scattering_basis._signed(directions)
    np.testing.assert_array_equal(signed, scattering_basis._signed(-directions))
    assert (signed.max(1) == np.abs(signed).max(1)).all()


def test_the_law_of_the_noise_images():
    images = np.concatenate(list(scattering_basis.noise_images((16, 12, 1), 2000)))
    assert images.shape == (2000, 1, 16, 12) and images.min() == 0 and images.max() == 1
    means = images.mean((1, 2, 3))
    # brightness is uniform on (-.3, .6), before what is clipped
    assert 0.15 < np.median(means) < 0.35 and means.max() < 0.75
    again = next(scattering_basis.noise_images((16, 12, 1), 2000))
    np.testing.assert_array_equal(again, images[: len(again)])
    inside = images[(images.min((1, 2, 3)) > 0) & (images.max((1, 2, 3)) < 1)]
    # an image that nothing was clipped of
    np.testing.assert_allclose(inside.std((1, 2, 3)), 0.5, atol=1e-9)


def test_the_colours_of_a_noise_image_share_most_of_their_shapes():
    images = np.concatenate(list(scattering_basis.noise_images((16, 16, 3), 500)))
    assert images.shape == (500, 3, 16, 16)
    middle = [image.reshape(3, -1) for image in images if 0.3 < image.mean() < 0.7]
    correlations = [np.corrcoef(image)[0, 1] for image in middle]
    assert 0.6 < np.mean(correlations) < 0.95


def test_it_is_the_same_at_each_call():
    one, again = (scattering_basis.make(SHAPE, images=200) for _ in range(2))
    for a, b in zip(one, again):
        np.testing.assert_array_equal(a, b)
