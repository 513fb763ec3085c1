"""What people type on a command line, turned into values; mistakes become click's usage errors."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import click
import numpy as np

from .._words import size_in_bytes
from ..errors import ArgumentError


class Shape(click.ParamType):
    """8192x8192"""

    name = "shape"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        words = re.split(r"[x,]", value.strip().lower().strip("()").rstrip(","))
        if not all(re.fullmatch(r"\s*\d{1,20}\s*", word) for word in words):
            self.fail(
                f"{value!r} is no shape; write the extents with x between them, such as 8192x8192", param, context
            )
        shape = tuple(int(word) for word in words)
        if max(shape) >= 2**63:
            self.fail(f"{max(shape)} does not fit in 63 bits", param, context)
        return shape


class Axes(click.ParamType):
    """1,0"""

    name = "axes"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        words = value.strip().strip("()").split(",")
        if not all(re.fullmatch(r"\s*\d{1,3}\s*", word) for word in words):
            self.fail(f"{value!r} is no list of axes; write them with commas, such as 1,0", param, context)
        axes = tuple(int(word) for word in words)
        if sorted(axes) != list(range(len(axes))):
            self.fail(f"{value!r} is no permutation of 0 to {len(axes) - 1}", param, context)
        return axes


class Size(click.ParamType):
    """256MiB"""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        try:
            return size_in_bytes(value, "")
        except ArgumentError as error:
            self.fail(str(error), param, context)


class Finite(click.FloatRange):
    """0.5, in a range; a range of click's may also be given nan, or inf where it is open."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        number = super().convert(value, param, context)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not finite", param, context)
        return number


class ElementType(click.ParamType):
    """float64"""

    name = "dtype"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        if isinstance(value, np.dtype):
            return value
        try:
            if value.lstrip().startswith("["):
                fields = json.loads(value)
                dtype = np.dtype([tuple(tuple(x) if isinstance(x, list) else x for x in field) for field in fields])
            else:
                dtype = np.dtype(value)
        except Exception:
            self.fail(
                f'{value!r} is no element type NumPy knows; float64, ">i4", S10 and [["x", "<f4"], ["n", "<i8"]] '
                "are some",
                param,
                context,
            )
        if dtype.hasobject or dtype.itemsize == 0:
            self.fail(f"{value!r} has no fixed size in bytes", param, context)
        return dtype
