r"""The scattering transform of small images: wavelet features that change little when images shift.

.. math::
    S x = \bigl( x * \phi,\;
                 |x * \psi_{j,\theta}| * \phi,\;
                 ||x * \psi_{0,\theta}| * \psi_{1,\theta'}| * \phi \bigr)

with two scales j = 0, 1 and eight orientations: 1 + 16 + 64 = 81 channels, each sampled at every
second pixel. The wavelets are Morlet's, a Gaussian times a plane wave, less the multiple of the
Gaussian that makes their mean zero.

References
----------
J. Bruna and S. Mallat. *Invariant scattering convolution networks.* IEEE Transactions on Pattern
Analysis and Machine Intelligence 35(8), 2013.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft

from sparsvm._typing import Array, Floats

SCALES, ORIENTATIONS = 2, 8
CHANNELS = 1 + SCALES * ORIENTATIONS + ORIENTATIONS**2
STRIDE = 2
# Bruna and Mallat's wavelets: width of the Gaussian and frequency of the wave at scale 0, and how
# much longer the Gaussian is across the wave than along it.
WIDTH, FREQUENCY, SLANT = 0.8, 0.75 * np.pi, 4.0 / ORIENTATIONS
# Pixels added around the image by reflection: as many as the low-pass filter averages over.
MARGIN = 2**SCALES
# Images transformed together: their intermediate layers, about 0.5 MB each, stay in the cache of
# a few dozen.
BATCH = 32


def scattering(images: Any, *, n_jobs: int | None = None) -> Floats:
    """Return the scattering coefficients of images, two layers, two scales, eight orientations.

    The transform is linear up to moduli: it does not expand distances, and scaling an image scales
    its coefficients.

    Parameters
    ----------
    images : array-like of shape (n_images, height, width)
        Even heights and widths of at least 8.
    n_jobs : int, optional
        Threads for the Fourier transforms, as ``workers`` of :func:`scipy.fft.fft2`.

    Returns
    -------
    ndarray of shape (n_images, 81, height / 2, width / 2), float32
        Channel 0 is the average, 1 to 16 the first layer (scale 0 before scale 1), 17 to 80 the
        second (the first wavelet's orientation changes slowest).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsvm.datasets import scattering
    >>> stripes = np.tile([1.0, 0.0], (1, 28, 14))
    >>> features = scattering(stripes)
    >>> features.shape
    (1, 81, 14, 14)
    >>> strongest = 1 + int(features[0, 1:17].mean(axis=(1, 2)).argmax())
    >>> strongest  # the finest wavelet across vertical stripes
    1
    """
    pictures = _checked(images)
    n, height, width = pictures.shape
    out = np.empty((n, CHANNELS, height // STRIDE, width // STRIDE), dtype=np.float32)
    for begin in range(0, n, BATCH):
        part = slice(begin, begin + BATCH)
        out[part] = _transform(pictures[part], n_jobs)
    return out


def _checked(images: Any) -> Array:
    pictures = np.asarray(images)
    if pictures.ndim != 3 or pictures.dtype.kind not in "biuf":
        raise ValueError(
            "scattering takes an array of numbers of shape (n_images, height, width); got shape "
            f"{pictures.shape} and type {pictures.dtype}. Reshape rows of pixels with "
            "X.reshape(-1, height, width)."
        )
    if min(pictures.shape[1:]) < 2 * MARGIN or pictures.shape[1] % 2 or pictures.shape[2] % 2:
        raise ValueError(
            f"Heights and widths must be even and at least {2 * MARGIN}; got "
            f"{pictures.shape[1]} x {pictures.shape[2]}. Pad the images."
        )
    if not np.all(np.isfinite(pictures)):
        raise ValueError("The images hold NaN or infinity; replace these values.")
    return pictures


def _transform(pictures: Array, n_jobs: int | None) -> Array:
    """Both layers of one batch."""
    height, width = pictures.shape[1:]
    edges = ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    padded = np.pad(pictures, edges, mode="reflect").astype(np.float32)
    size = padded.shape[1:]
    wavelets = _wavelets(*size)
    first = _moduli(scipy.fft.fft2(padded, workers=n_jobs)[:, None], wavelets, n_jobs)
    spectra = scipy.fft.fft2(first[:, :ORIENTATIONS], workers=n_jobs)[:, :, None]
    # The second layer's spectra are those of the coarse wavelets, so that half the pixels tell all:
    # dropping every other one folds the spectrum.
    folded = _folded(spectra * wavelets[ORIENTATIONS:])
    second = np.abs(scipy.fft.ifft2(folded, workers=n_jobs, overwrite_x=True))
    layers = (
        _averaged(padded[:, None], height, width, 1),
        _averaged(first, height, width, 1),
        _averaged(second.reshape(len(pictures), -1, *second.shape[-2:]), height, width, STRIDE),
    )
    return np.concatenate(layers, axis=1)


def _moduli(spectra: Array, wavelets: Array, n_jobs: int | None) -> Array:
    waves = scipy.fft.ifft2(spectra * wavelets, workers=n_jobs, overwrite_x=True)
    return np.asarray(np.abs(waves))


def _folded(spectra: Array) -> Array:
    """Return the spectrum of every other pixel, the mean of the four aliased frequencies."""
    *batch, rows, columns = spectra.shape
    parts = spectra.reshape(*batch, 2, rows // 2, 2, columns // 2)
    return np.asarray(parts.mean(axis=(-4, -2)))


def _averaged(layer: Array, height: int, width: int, stride: int) -> Array:
    """Low-pass a layer that is sampled at every ``stride``-th pixel, inside the margin only."""
    return np.asarray(_low_pass(height, stride) @ layer @ _low_pass(width, stride).T)


@lru_cache
def _low_pass(length: int, stride: int) -> Array:
    """The matrix that averages a padded line around every second of its inner pixels."""
    size = length + 2 * MARGIN
    line = scipy.fft.ifft(_gaussian_spectrum(size)).real
    centres = MARGIN + STRIDE * np.arange(length // STRIDE)
    pixels = stride * np.arange(size // stride)
    return np.asarray(stride * line[(centres[:, None] - pixels) % size], dtype=np.float32)


def _gaussian_spectrum(size: int) -> Floats:
    """Spectrum of one line of the low-pass filter, which is separable."""
    width = WIDTH * 2 ** (SCALES - 1)
    return np.asarray(np.exp(-0.5 * (width * _frequencies(size)) ** 2))


@lru_cache
def _wavelets(rows: int, columns: int) -> Array:
    r"""Spectra of the 16 wavelets, scale 0 first.

    They are as large as :math:`|\hat\phi(\omega)|^2 + \frac12 \sum (|\hat\psi(\omega)|^2 +
    |\hat\psi(-\omega)|^2) \le 1` allows, which makes the transform of real images
    non-expansive.
    """
    spectra = _morlet_spectra(rows, columns)
    low = np.outer(_gaussian_spectrum(rows), _gaussian_spectrum(columns)) ** 2
    high = (spectra**2).sum(axis=0)
    high = 0.5 * (high + np.roll(high[::-1, ::-1], 1, axis=(0, 1)))
    room = (1.0 - low).ravel()[1:] / high.ravel()[1:]  # at frequency 0, low is 1 and high is 0
    return np.asarray(np.sqrt(room.min()) * spectra, dtype=np.float32)


def _morlet_spectra(rows: int, columns: int) -> Floats:
    """Spectra (real) of Morlet's wavelets, aliased copies summed as sampling does.

    In space they are Gaussians of the widths s along the wave and s / SLANT across it; in frequency
    Gaussians around the wave's frequency, less the one around zero that makes the mean zero.
    """
    copies = 2.0 * np.pi * np.arange(-2, 3)
    vertical = (_frequencies(rows)[:, None] + copies)[:, None, :, None]
    horizontal = (_frequencies(columns)[:, None] + copies)[None, :, None, :]
    spectra = []
    for scale in range(SCALES):
        width, frequency = WIDTH * 2**scale, FREQUENCY / 2**scale
        for turn in range(ORIENTATIONS):
            angle = np.pi * turn / ORIENTATIONS
            along = np.cos(angle) * horizontal + np.sin(angle) * vertical
            across = np.cos(angle) * vertical - np.sin(angle) * horizontal
            wide = np.exp(-0.5 * (across * width / SLANT) ** 2)
            wave = (wide * np.exp(-0.5 * (width * (along - frequency)) ** 2)).sum(axis=(2, 3))
            still = (wide * np.exp(-0.5 * (width * along) ** 2)).sum(axis=(2, 3))
            spectra.append(wave - wave[0, 0] / still[0, 0] * still)
    return np.array(spectra)


def _frequencies(size: int) -> Floats:
    return np.asarray(2.0 * np.pi * np.fft.fftfreq(size), dtype=np.float64)
