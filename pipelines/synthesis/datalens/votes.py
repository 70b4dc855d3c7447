"""Casts TopAgg's votes (DataLens, Algorithm 1): what one teacher says about one image, as integers.

Sensitivity: one teacher's vote on one image has at most k entries of -1 or +1 and zeros elsewhere.
Replacing it by any other moves the sum over teachers by at most 2 sqrt(k) in L2; B images polled
together, by 2 sqrt(k B). A record reaches exactly one teacher, which votes with or without it: the
same bound holds when a record is added or removed.

>>> gradients = torch.tensor([[[0.5, -2.0, 1.0, 0.0]], [[0.1, 3.0, -0.2, 0.0]]])
>>> stream = torch.Generator().manual_seed(0)
>>> votes = vote(gradients, top_k=2, clip=0.0, stochastic=False, generator=stream)
>>> votes.tolist()
[[[0, -1, 1, 0]], [[0, 1, -1, 0]]]
>>> tally(votes)
array([[0, 0, 0, 0]])
>>> round(sensitivity(top_k=2, batch=1), 3)
2.828
"""

import hashlib
import math

import numpy as np
import torch
from scipy.fft import dctn, idctn


def sensitivity(*, top_k: int, batch: int) -> float:
    """Returns the L2 sensitivity of one step's vote sums: B queries of 2 sqrt(k) each."""
    return 2 * math.sqrt(top_k * batch)


def assign(ids: np.ndarray, teachers: int, key: bytes) -> np.ndarray:
    """Returns the teacher of each record: a keyed hash of its id.

    Neither content nor the other records matter.

    Args:
        ids: int64 [n].
        teachers: The number of teachers.
        key: The key of the hash.

    Returns:
        int64 [n], in [0, teachers).
    """
    owner = np.zeros(len(ids), np.int64)
    for row, record_id in enumerate(ids):
        name = int(record_id).to_bytes(8, "big", signed=True)
        digest = hashlib.blake2b(name, key=key, digest_size=8).digest()
        owner[row] = int.from_bytes(digest, "big") % teachers
    return owner


def vote(
    gradients: torch.Tensor,
    *,
    top_k: int,
    clip: float,
    stochastic: bool,
    generator: torch.Generator,
) -> torch.Tensor:
    """Returns votes: top-k by magnitude along the last axis, clipped, then signed.

    A stochastic sign is +1 with probability 1/2 + g / (2 b), where b is the smaller of `clip` and
    the image's own maximum. It is unbiased in the clipped, normalised gradient. An all-zero or
    non-finite gradient votes too; the bound is the same.

    Args:
        gradients: Image gradients [..., d].
        top_k: Entries of an image that are not zero.
        clip: The bound of a gradient's entries; 0 means no clip.
        stochastic: Draw the sign, instead of taking the gradient's.
        generator: The random stream of these teachers.

    Returns:
        int8, of the same shape: -1, 0 or +1.
    """
    gradients = torch.nan_to_num(gradients, nan=0.0, posinf=0.0, neginf=0.0)
    magnitude = gradients.abs()
    chosen = magnitude.topk(top_k, dim=-1, sorted=False).indices
    bound = magnitude.amax(dim=-1, keepdim=True)
    bound = bound.clamp(max=clip) if clip > 0 else bound
    if stochastic:
        up = 0.5 + gradients / (2 * bound.clamp(min=1e-30))
        signs = torch.rand(gradients.shape, generator=generator, device=generator.device) < up
    else:
        signs = gradients >= 0
    signs = signs.to(torch.int8) * 2 - 1
    return torch.zeros_like(signs).scatter(-1, chosen, signs.gather(-1, chosen))


def tally(votes: torch.Tensor) -> np.ndarray:
    """Returns the sum over teachers, int64 [B, d], of votes [N, B, d]."""
    return votes.sum(0, dtype=torch.int64).cpu().numpy()


def centred(votes: np.ndarray, on: bool) -> np.ndarray:
    """Returns the noisy votes [B, d] less what all B fakes share, if on (post-processing)."""
    return votes - votes.mean(0) if on else votes


def thresholded(votes: np.ndarray, threshold: float | None, teachers: int) -> np.ndarray:
    """Returns the signs of noisy votes where they exceed beta N (post-processing).

    Args:
        votes: Noisy votes [B, d].
        threshold: beta; None returns the votes as they are.
        teachers: N.
    """
    if threshold is None:
        return votes
    return np.sign(votes) * (np.abs(votes) > threshold * teachers)


def smoothed(votes: np.ndarray, cutoff: int | None, shape: tuple[int, int, int]) -> np.ndarray:
    """Returns the low frequencies of noisy votes alone (post-processing).

    Noise is as strong at every frequency; images and their gradients are not.

    Args:
        votes: Noisy votes [B, d].
        cutoff: DCT coefficients with i + j < cutoff of each channel remain; None leaves all.
        shape: (height, width, channels) of an image, with d = H W C.
    """
    if cutoff is None:
        return votes
    height, width, channels = shape
    low = np.add.outer(np.arange(height), np.arange(width)) < cutoff
    coefficients = dctn(votes.reshape(-1, channels, height, width), axes=(2, 3), norm="ortho") * low
    return idctn(coefficients, axes=(2, 3), norm="ortho").reshape(votes.shape)


def signal_to_noise(noisy: np.ndarray, sigma: float) -> float:
    """Returns the root mean square of the vote sums over that of their noise.

    It is estimated from the noisy sums alone: post-processing, free to print. The ratio of the true
    sums would be a release of its own. It is infinite without noise.
    """
    if sigma == 0:
        return math.inf
    return math.sqrt(max(0.0, float(np.mean(np.square(noisy))) / sigma**2 - 1))
