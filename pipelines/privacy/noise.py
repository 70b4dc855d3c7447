"""The one seam through which privacy noise enters.

Formal noise comes from the operating system's entropy, through OpenSSL's generator, and never from the `seed`
parameter. The test-only source is seeded, and voids the guarantee of whatever it touches: `guarantee` travels into
every privacy statement.
"""

import math
import secrets
import ssl
from dataclasses import dataclass
from typing import Protocol

import numpy as np

BITS = 52  # of a uniform number: its half steps are exact in float64


class Noise(Protocol):
    guarantee: str  # formal | none
    source: str  # how the statement names it

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        """int64 of `shape`: independent draws of the discrete Gaussian with parameter sigma (lattice steps)."""

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        """Moves past one such draw, which a run that goes on after a kill has made before."""

    @property
    def position(self) -> dict | None:
        """Where a stream of test noise is, for a run that goes on after a kill; entropy has none."""

    def move_to(self, position: dict | None) -> None: ...

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """float64: independent standard normals, for noise on floats (`float_gaussian`)."""

    def uniform(self, count: int) -> np.ndarray:
        """float64 [count] in (0, 1), for Poisson lots."""


@dataclass(frozen=True)
class OsEntropy:
    guarantee: str = "formal"
    source: str = "operating system entropy; discrete Gaussian by OpenDP"

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        draws = dp.m.make_gaussian(*space, scale=float(sigma))([0] * int(np.prod(shape)))
        return np.array(draws, dtype=np.int64).reshape(shape)

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        """Nothing: entropy has no position."""

    position = None

    def move_to(self, position: None) -> None:
        """Nothing, likewise."""

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """By the inverse of the normal law."""
        import torch  # its ndtri is within 5 float64 spacings of scipy's, in two thirds of the time

        return (
            torch.special.ndtri(torch.from_numpy(self.uniform(math.prod(shape))))
            .numpy()
            .reshape(shape)
        )

    def uniform(self, count: int) -> np.ndarray:
        bits = np.frombuffer(_random(8 * count), np.uint64) >> np.uint64(64 - BITS)
        return (bits + 0.5) * 2.0**-BITS


def _random(count: int) -> bytes:
    """Of OpenSSL's generator, which OpenDP draws from too: AES, whose outputs tell nothing of its state, as a Mersenne
    Twister's would. It is some fifteen times as fast as the operating system's own, which renews it at each call: else
    copies of a machine that was cloned as it ran would draw the same noise, and their replies' difference have none."""
    ssl.RAND_add(secrets.token_bytes(32), 32.0)
    return ssl.RAND_bytes(count)


class SeededForTests:
    """Reproducible noise: rounded Gaussians of a seeded generator. Nothing made with it is private."""

    guarantee = "none"
    source = "SEEDED TEST NOISE: no guarantee"

    def __init__(self, seed: int):
        self.seed = seed
        self.rng = np.random.default_rng(seed)

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        return np.rint(self.rng.normal(0.0, sigma, shape)).astype(np.int64)

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        self.discrete_gaussian(shape, sigma)

    @property
    def position(self) -> dict:
        return self.rng.bit_generator.state

    def move_to(self, position: dict) -> None:
        self.rng.bit_generator.state = position

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.rng.standard_normal(shape)

    def uniform(self, count: int) -> np.ndarray:
        return self.rng.random(count)


def source(name: str, test_seed: int) -> Noise:
    """The noise that `privacy.noise` names; `test_seed` reaches only the test-only one."""
    return {"os_entropy": OsEntropy, "seeded_for_tests": lambda: SeededForTests(test_seed)}[name]()
