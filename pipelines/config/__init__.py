"""Typed, validated parameters: the only reader of params.yaml.

The meaning, unit and source of every knob stand in params.yaml. What each block may hold stands in
`data`, `generators`, `training`, `dp` and `federation`, and the kinds of values in `values`. How a
data set's own settings are found stands in `blocks`, and what must hold between blocks in `params`.
"""

from pipelines.config.dp import looks_at_images
from pipelines.config.params import Params, load

__all__ = ["Params", "load", "looks_at_images"]
