"""Typed, validated settings: the only reader of params.yaml, settings/*.yaml and profiles/*.yaml.

The meaning, unit and source of every knob stand in those files. What each block may hold stands in
`data`, `generators`, `heads`, `training`, `dp` and `federation`, and the kinds of values in
`values`. Which file holds which block stands in `places`; `files` reads them and `bases` lets a
block begin from another. How a data set's own settings are found stands in `blocks`, and what must
hold between blocks in `checks`. `show` prints settings with where each value comes from.
"""

from pipelines.config.dp import looks_at_images
from pipelines.config.params import Params, load

__all__ = ["Params", "load", "looks_at_images"]
