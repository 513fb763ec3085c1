"""The calculus of regions: lists of boxes as sets of points, domains cut into blocks, blocks in an order that suits.

None of it knows ranks or memory, and nothing is collective. `Region` itself, and `FloorPlan`, which gives regions
owners, are also `longshore.Region` and `longshore.FloorPlan`. (The Data Mover, section 2.)
"""

from ._core import (
    Region,
    RegionIndex,
    bounding_region,
    directions,
    order_along,
    periodic_shifts,
    process_grid,
    split_at,
    split_evenly,
    split_to_size,
    subtract,
    unite,
)

__all__ = [
    "Region",
    "RegionIndex",
    "bounding_region",
    "directions",
    "order_along",
    "periodic_shifts",
    "process_grid",
    "split_at",
    "split_evenly",
    "split_to_size",
    "subtract",
    "unite",
]
