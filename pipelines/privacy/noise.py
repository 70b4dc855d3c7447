"""Draws privacy noise: the one place where it enters.

Formal noise comes from the operating system's entropy, through OpenSSL's generator, and never from
the `seed` parameter. The test-only source is seeded, and voids the guarantee of whatever it
touches: `guarantee` travels into every privacy statement.

>>> noise = source("seeded_for_tests", test_seed=0)
>>> noise.guarantee, noise.discrete_gaussian((2, 3), sigma=100.0).shape
('none', (2, 3))
>>> source("os_entropy", test_seed=0).guarantee
'formal'
"""

import math
import secrets
import ssl
from dataclasses import dataclass
from typing import Protocol

import numpy as np

# of a uniform number: its half steps are exact in float64
BITS = 52
# the largest deviation in lattice steps: an int64 ends 32 such deviations from 0. A wider draw would
# end at that edge too often, and its sum with a total would show the total
WIDEST = 2.0**58


class Noise(Protocol):
    """Any source of noise.

    Attributes:
        guarantee: formal | none.
        source: How the statement names it.
    """

    guarantee: str
    source: str

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        """Returns int64 draws of the discrete Gaussian, sigma in lattice steps.

        Raises:
            ValueError: Sigma, which is public, is above WIDEST.
        """

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        """Moves past one such draw, which a run that goes on after a kill has made before."""

    @property
    def position(self) -> dict | None:
        """Returns where a stream of test noise is, for a run that goes on after a kill.

        Entropy has no position.
        """

    def move_to(self, position: dict | None) -> None:
        """Moves a stream of test noise to a position."""

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Returns float64 standard normals, for noise on floats (`float_gaussian`)."""

    def uniform(self, count: int) -> np.ndarray:
        """Returns float64 [count] in (0, 1), for Poisson lots."""


@dataclass(frozen=True)
class OsEntropy:
    """Draws noise from the operating system's entropy."""

    guarantee: str = "formal"
    source: str = "operating system entropy; discrete Gaussian by OpenDP"

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        """Returns int64 draws of OpenDP's discrete Gaussian, sigma in lattice steps."""
        import opendp.prelude as dp

        check_width(sigma)
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        draws = dp.m.make_gaussian(*space, scale=float(sigma))([0] * int(np.prod(shape)))
        return np.array(draws, dtype=np.int64).reshape(shape)

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        """Does nothing: entropy has no position."""

    position = None

    def move_to(self, position: None) -> None:
        """Does nothing: entropy has no position."""

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Returns standard normals, by the inverse of the normal law."""
        # its ndtri is within 5 float64 spacings of scipy's, in two thirds of the time
        import torch

        uniform = torch.from_numpy(self.uniform(math.prod(shape)))
        return torch.special.ndtri(uniform).numpy().reshape(shape)

    def uniform(self, count: int) -> np.ndarray:
        """Returns float64 [count] in (0, 1)."""
        bits = np.frombuffer(_random(8 * count), np.uint64) >> np.uint64(64 - BITS)
        return (bits + 0.5) * 2.0**-BITS


def check_width(sigma: float) -> None:
    """Checks that 64 bits have room for noise.

    Args:
        sigma: The deviation in lattice steps, which is public.

    Raises:
        ValueError: They have not.
    """
    if not sigma <= WIDEST:
        raise ValueError(f"Noise of {sigma:g} lattice steps outgrows 64 bits.")


def _random(count: int) -> bytes:
    """Returns bytes of OpenSSL's generator, which OpenDP draws from too.

    It is AES, whose outputs tell nothing of its state, as a Mersenne Twister's would. It is some
    fifteen times as fast as the operating system's own, which renews it at each call: else copies
    of a machine that was cloned as it ran would draw the same noise, and their replies' difference
    would have none.
    """
    ssl.RAND_add(secrets.token_bytes(32), 32.0)
    return ssl.RAND_bytes(count)


class SeededForTests:
    """Draws reproducible noise of a seeded generator. Nothing made with it is private.

    Args:
        seed: The seed.
    """

    guarantee = "none"
    source = "SEEDED TEST NOISE: no guarantee"

    def __init__(self, seed: int):
        self.seed = seed
        self.rng = np.random.default_rng(seed)

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        """Returns rounded Gaussians, int64."""
        check_width(sigma)
        return np.rint(self.rng.normal(0.0, sigma, shape)).astype(np.int64)

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        """Draws and drops one such array."""
        self.discrete_gaussian(shape, sigma)

    @property
    def position(self) -> dict:
        """Returns the state of the generator."""
        return self.rng.bit_generator.state

    def move_to(self, position: dict) -> None:
        """Sets the state of the generator."""
        self.rng.bit_generator.state = position

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Returns standard normals of this shape."""
        return self.rng.standard_normal(shape)

    def uniform(self, count: int) -> np.ndarray:
        """Returns float64 [count] in [0, 1)."""
        return self.rng.random(count)


def source(name: str, test_seed: int) -> Noise:
    """Returns the source that `privacy.noise` names; `test_seed` reaches only the test-only one."""
    return {"os_entropy": OsEntropy, "seeded_for_tests": lambda: SeededForTests(test_seed)}[name]()
