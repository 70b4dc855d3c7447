"""TopAgg's votes (DataLens, Algorithm 1): what one teacher says about one image, as integers.

Sensitivity: one teacher's vote on one image has at most k entries of -1 or +1 and zeros elsewhere, so replacing it by
any other moves the sum over teachers by at most 2 sqrt(k) in L2; B images asked together, by 2 sqrt(k B). A record
reaches exactly one teacher, which votes with or without it: the same bound holds when a record is added or removed.
"""

import hashlib
import math

import numpy as np
import torch
from scipy.fft import dctn, idctn


def sensitivity(*, top_k: int, batch: int) -> float:
    """L2 sensitivity of one step's vote sums: B queries of 2 sqrt(k) each."""
    return 2 * math.sqrt(top_k * batch)


def assign(ids: np.ndarray, teachers: int, key: bytes) -> np.ndarray:
    """int64 [n]: the teacher of each record, a keyed hash of its id. Neither content nor the other records matter."""
    digests = (
        hashlib.blake2b(int(i).to_bytes(8, "big", signed=True), key=key, digest_size=8).digest()
        for i in ids
    )
    return np.array(
        [int.from_bytes(digest, "big") % teachers for digest in digests], dtype=np.int64
    )


def vote(
    gradients: torch.Tensor,
    *,
    top_k: int,
    clip: float,
    stochastic: bool,
    generator: torch.Generator,
) -> torch.Tensor:
    """int8, same shape: top-k by magnitude along the last axis, clipped, then signed.

    Stochastic: +1 with probability 1/2 + g / (2 b), b the smaller of `clip` (0: no clip) and the image's own maximum,
    unbiased in the clipped, normalised gradient. An all-zero or non-finite gradient votes too; the bound is the same.
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
    """int64 [B, d]: the sum over teachers of votes [N, B, d]."""
    return votes.sum(0, dtype=torch.int64).cpu().numpy()


def centred(votes: np.ndarray, on: bool) -> np.ndarray:
    """The noisy votes [B, d] less what all B fakes share, or as they are (post-processing)."""
    return votes - votes.mean(0) if on else votes


def thresholded(votes: np.ndarray, threshold: float | None, teachers: int) -> np.ndarray:
    """The noisy votes as they are, or their signs where they exceed beta N (post-processing)."""
    return votes if threshold is None else np.sign(votes) * (np.abs(votes) > threshold * teachers)


def smoothed(votes: np.ndarray, cutoff: int | None, shape: tuple[int, int, int]) -> np.ndarray:
    """[B, d] with only the DCT coefficients i + j < `cutoff` of each channel, all where it is null (post-processing):
    noise is as strong at every frequency, images and their gradients are not."""
    if cutoff is None:
        return votes
    height, width, channels = shape
    low = np.add.outer(np.arange(height), np.arange(width)) < cutoff
    coefficients = dctn(votes.reshape(-1, channels, height, width), axes=(2, 3), norm="ortho") * low
    return idctn(coefficients, axes=(2, 3), norm="ortho").reshape(votes.shape)


def signal_to_noise(noisy: np.ndarray, sigma: float) -> float:
    """Root mean square of the vote sums over that of their noise, estimated from the noisy sums alone: post-processing,
    free to print. The ratio of the true sums would be a release of its own. Infinite without noise."""
    if sigma == 0:
        return math.inf
    return math.sqrt(max(0.0, float(np.mean(np.square(noisy))) / sigma**2 - 1))
