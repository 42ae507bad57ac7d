"""The scattering transform has the properties that Bruna and Mallat prove or publish."""

import numpy as np
import pytest

from sparsvm.datasets import scattering

ORIENTATIONS = 8


def _blobs(n, size=28, seed=0):
    """Smooth images that vanish at their edges, like digits."""
    rng = np.random.default_rng(seed)
    grid = np.arange(size)
    images = np.zeros((n, size, size))
    for image in images:
        for row, column, width in zip(
            *rng.uniform(9, 19, (2, 6)), rng.uniform(0.7, 2.5, 6), strict=True
        ):
            bump = np.exp(-0.5 * ((grid - row) / width) ** 2)
            image += np.outer(bump, np.exp(-0.5 * ((grid - column) / width) ** 2))
    return images


def _energy(features):
    """Squared norm; every second pixel in both directions stands for four."""
    return 4.0 * np.sum(features.astype(np.float64) ** 2, axis=(-2, -1))


def _reference(image):
    """The same coefficients by circular convolutions at full resolution, wavelet by wavelet."""
    from sparsvm.datasets.scattering import MARGIN, _gaussian_spectrum, _wavelets

    padded = np.pad(image, MARGIN, mode="reflect")
    wavelets = _wavelets(*padded.shape).astype(np.float64)
    low = np.multiply.outer(*map(_gaussian_spectrum, padded.shape))

    def filtered(picture, spectrum):
        return np.fft.ifft2(np.fft.fft2(picture) * spectrum)

    first = [np.abs(filtered(padded, wavelet)) for wavelet in wavelets]
    second = [
        np.abs(filtered(u, wavelet))
        for u in first[:ORIENTATIONS]
        for wavelet in wavelets[ORIENTATIONS:]
    ]
    inner = slice(MARGIN, -MARGIN, 2)
    return np.array([filtered(u, low).real[inner, inner] for u in (padded, *first, *second)])


def test_coefficients_are_those_of_plain_convolutions():
    for image in _blobs(3):
        expected = _reference(image)
        found = scattering(image[None])[0]
        assert found.shape == expected.shape == (81, 14, 14)
        assert found[:17] == pytest.approx(expected[:17], rel=1e-4, abs=1e-5)
        # The second layer is computed on every other pixel, which aliases a little.
        assert np.linalg.norm(found[17:] - expected[17:]) <= 0.02 * np.linalg.norm(expected[17:])


def test_distances_are_not_expanded():
    rng = np.random.default_rng(1)
    images = np.concatenate([_blobs(4), rng.standard_normal((4, 28, 28))])
    features = scattering(images)
    for a in range(8):
        for b in range(a):
            distance = np.sum((images[a] - images[b]) ** 2)
            # The reflected margin repeats pixels at the edges, which noise has and digits have not.
            allowed = 1.0 if max(a, b) < 4 else (36 / 28) ** 2
            assert _energy(features[a] - features[b]).sum() <= allowed * distance


def test_two_layers_hold_most_of_the_energy_and_each_less_than_the_one_before():
    images = _blobs(20)
    energy = _energy(scattering(images)).sum(axis=0)
    total = np.sum(images**2)
    layers = energy[0], energy[1:17].sum(), energy[17:].sum()
    assert 0.85 * total <= sum(layers) <= total
    assert layers[0] > layers[1] > layers[2]


def test_a_shift_changes_features_less_than_pixels():
    images = _blobs(10)
    shifted = np.roll(images, 1, axis=2)
    moved = _energy(scattering(shifted) - scattering(images)).sum(axis=1)
    pixels = np.sum((shifted - images) ** 2, axis=(1, 2))
    assert np.all(moved <= 0.6 * pixels)


def test_constant_images_have_no_wavelet_coefficients():
    features = scattering(np.full((1, 16, 24), 3.0))
    assert features.shape == (1, 81, 8, 12)
    assert features[0, 0] == pytest.approx(3.0, rel=1e-5)
    assert np.abs(features[0, 1:]).max() <= 1e-5


def test_a_quarter_turn_of_the_image_permutes_the_orientations():
    # An odd number of pixels between the sampled ones: the turn maps sampled pixels on others, so
    # that averages over the image are compared.
    images = _blobs(3)
    turned = scattering(np.rot90(images, axes=(1, 2))).mean(axis=(2, 3))[:, 1:9]
    before = scattering(images).mean(axis=(2, 3))[:, 1:9]
    assert turned == pytest.approx(np.roll(before, 4, axis=1), rel=0.02)


def test_scaling_an_image_scales_its_coefficients():
    images = _blobs(2)
    assert scattering(5.0 * images) == pytest.approx(5.0 * scattering(images), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((3, 784)), "reshape"),
        (np.zeros((3, 27, 28)), "even"),
        (np.zeros((3, 6, 28)), "at least 8"),
        (np.full((1, 28, 28), np.nan), "NaN"),
        (np.full((1, 28, 28), "x"), "numbers"),
    ],
)
def test_what_cannot_be_transformed_is_refused_in_a_sentence(images, message):
    with pytest.raises(ValueError, match=message):
        scattering(images)
