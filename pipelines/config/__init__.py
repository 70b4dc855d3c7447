"""Typed, validated parameters: the only reader of params.yaml.

The meaning, unit and source of every knob stand in params.yaml. What each block may hold stands in `data`,
`generators`, `training`, `dp` and `federation`, the kinds of values in `values`, and what must hold between blocks in
`params`.
"""

from pipelines.config.params import Params, load, looks_at_images

__all__ = ["Params", "load", "looks_at_images"]
