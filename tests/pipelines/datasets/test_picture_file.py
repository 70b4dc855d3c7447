"""A picture file of any mode and size becomes an array of the declared shape."""

import numpy as np
import pytest
from PIL import Image

from pipelines.datasets.picture_file import picture

RED, CLEAR = (255, 0, 0), (255, 255, 255, 0)
MODES = {  # mode -> (how it is made and saved, what grey 1-channel and RGB should then be)
    "1": (Image.new("1", (6, 6), 1), "png", 255, (255, 255, 255)),
    "L": (Image.new("L", (6, 6), 40), "png", 40, (40, 40, 40)),
    "LA": (Image.new("LA", (6, 6), (200, 0)), "png", 0, (0, 0, 0)),
    "P": (Image.new("RGB", (6, 6), RED).quantize(4), "png", 76, RED),
    "RGB": (Image.new("RGB", (6, 6), RED), "png", 76, RED),
    "RGBA": (Image.new("RGBA", (6, 6), (*RED, 255)), "png", 76, RED),
    "RGBA, clear": (Image.new("RGBA", (6, 6), CLEAR), "png", 0, (0, 0, 0)),
    "CMYK": (Image.new("CMYK", (6, 6), (0, 255, 255, 0)), "tiff", 76, RED),
    "I;16": (Image.fromarray(np.full((6, 6), 0x6432, np.uint16)), "png", 0x64, (0x64,) * 3),
    "I;16, tiff": (Image.fromarray(np.full((6, 6), 0xFFFF, np.uint16)), "tiff", 255, (255,) * 3),
    "gif": (Image.new("RGB", (6, 6), RED).quantize(4), "gif", 76, RED),
}


@pytest.mark.parametrize("name", MODES)
def test_every_mode_becomes_grey_or_rgb(tmp_path, name):
    image, extension, grey, colour = MODES[name]
    image.save(tmp_path / f"x.{extension}")
    one = picture(tmp_path / f"x.{extension}", [4, 3, 1])
    three = picture(tmp_path / f"x.{extension}", [4, 3, 3])
    assert (
        one.shape == (4, 3, 1) and three.shape == (4, 3, 3) and one.dtype == three.dtype == np.uint8
    )
    assert np.all(one == grey) and np.all(three == np.array(colour))


def test_a_16_bit_ramp_keeps_its_order(tmp_path):
    """Pillow's own conversion would make everything above 255 white."""
    ramp = (np.arange(64, dtype=np.uint16) * 1000).reshape(8, 8)
    Image.fromarray(ramp).save(tmp_path / "x.png")
    np.testing.assert_array_equal(picture(tmp_path / "x.png", [8, 8, 1])[..., 0], ramp // 256)


def test_same_size_is_untouched_and_halving_averages(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    np.testing.assert_array_equal(picture(tmp_path / "x.png", [8, 12, 3]), pixels)
    stripes = np.tile(np.array([0, 255], np.uint8), (64, 32))
    Image.fromarray(stripes).save(tmp_path / "s.png")
    small = picture(tmp_path / "s.png", [8, 8, 1]).astype(int)
    assert np.abs(small - 127.5).max() < 12  # the nearest pixel alone would be black or white


def test_a_photograph_taken_sideways_stands_upright(tmp_path):
    pixels = np.zeros((4, 8), np.uint8)
    pixels[:, :4] = 250
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned a quarter clockwise
    Image.fromarray(pixels).save(tmp_path / "x.png", exif=exif)
    upright = picture(tmp_path / "x.png", [8, 4, 1])[..., 0]
    assert np.all(upright[:4] == 250) and np.all(upright[4:] == 0)
