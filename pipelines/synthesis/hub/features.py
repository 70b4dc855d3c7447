"""Names the columns of the table as Hugging Face's `datasets` does, in YAML and in the file itself.

An image of one, three or four channels is a picture (PNG). Any other is an array, because few
tools read such a picture.
"""

# numbers of channels: grey, colour, and colour with transparency
PICTURES = (1, 3, 4)


def is_picture(shape: list[int]) -> bool:
    """Returns whether images [H, W, C] are written as PNG."""
    return shape[2] in PICTURES


def in_file(shape: list[int], names: list[str]) -> dict:
    """Returns the columns as the metadata of a parquet file state them.

    Args:
        shape: [H, W, C] of each image.
        names: The classes' names, by label.
    """
    image = {"shape": list(shape), "dtype": "uint8", "_type": "Array3D"}
    if is_picture(shape):
        image = {"_type": "Image"}
    return {"image": image, "label": {"names": names, "_type": "ClassLabel"}}


def in_card(shape: list[int], names: list[str]) -> list[dict]:
    """Returns the columns as the front matter of a card states them.

    >>> in_card([8, 8, 1], ["cat", "dog"])[1]
    {'name': 'label', 'dtype': {'class_label': {'names': {'0': 'cat', '1': 'dog'}}}}

    Args:
        shape: [H, W, C] of each image.
        names: The classes' names, by label.
    """
    image = {"array3_d": {"shape": list(shape), "dtype": "uint8"}}
    if is_picture(shape):
        image = "image"
    by_label = {str(label): name for label, name in enumerate(names)}
    return [
        {"name": "image", "dtype": image},
        {"name": "label", "dtype": {"class_label": {"names": by_label}}},
    ]
