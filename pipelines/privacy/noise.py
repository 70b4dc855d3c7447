"""The one seam through which privacy noise enters.

Formal noise comes from the operating system's entropy and never from the `seed` parameter. The test-only source is
seeded, and voids the guarantee of whatever it touches: `guarantee` travels into every privacy statement.
"""

import secrets
from dataclasses import dataclass
from typing import Protocol

import numpy as np

MERSENNE_WORDS = slice(3, 3 + 624)  # of a torch CPU generator's state in 64-bit words


class Noise(Protocol):
    guarantee: str  # formal | none
    source: str  # how the statement names it

    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        """int64 of `shape`: independent draws of the discrete Gaussian with parameter sigma (lattice steps)."""

    def skip(self, shape: tuple[int, ...], sigma: float) -> None:
        """Moves past one such draw, which a run that goes on after a kill has made before."""

    def torch_generator(self, device):
        """A torch.Generator for DP-SGD's continuous noise and its Poisson lots."""


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

    def torch_generator(self, device):
        """On a CPU its whole state is drawn: torch's Mersenne Twister keeps only 32 bits of a seed, which anyone can
        try out. A GPU's Philox takes 63 bits as they are."""
        import torch

        generator = torch.Generator(device).manual_seed(secrets.randbits(63))
        if generator.device.type == "cpu":
            state = generator.get_state()
            words = state.numpy().view(np.uint64)[MERSENNE_WORDS]
            words[:] = np.frombuffer(secrets.token_bytes(4 * len(words)), np.uint32)
            generator.set_state(state)
        return generator


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

    def torch_generator(self, device):
        import torch

        return torch.Generator(device).manual_seed(self.seed)


def source(name: str, test_seed: int) -> Noise:
    """The noise that `privacy.noise` names; `test_seed` reaches only the test-only one."""
    return {"os_entropy": OsEntropy, "seeded_for_tests": lambda: SeededForTests(test_seed)}[name]()
