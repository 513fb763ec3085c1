"""Layouts and shapes for Hypothesis: nothing, one, primes, more ranks than indices, every kind of distribution."""

import longshore as ls
import numpy as np
from hypothesis import strategies as st

EXTENTS = st.sampled_from([0, 1, 2, 3, 5, 7, 8, 13, 16, 29])
DTYPES = st.sampled_from(["f8", "i1", "u2", "c16", "f4", ">i4", "S3", "S40", "M8[ns]", "i4,f8", "?"])


@st.composite
def layouts(draw, shape, max_ranks=4, disjoint=True):
    words, grid = [], []
    for n in shape:
        kind = draw(st.sampled_from(["*", "BLOCK", "BLOCK(b)", "CYCLIC", "CYCLIC(b)", "GEN_BLOCK"]))
        if kind == "*":
            words.append("*")
            continue
        p = draw(st.integers(1, max_ranks))
        grid.append(p)
        if kind == "BLOCK(b)":
            kind = f"BLOCK({-(-n // p) + draw(st.integers(0, 3)) or 1})"
        elif kind == "CYCLIC(b)":
            kind = f"CYCLIC({draw(st.integers(1, 7))})"
        elif kind == "GEN_BLOCK":
            cuts = sorted(draw(st.lists(st.integers(0, n), min_size=p - 1, max_size=p - 1)))
            kind = "GEN_BLOCK(" + ", ".join(str(b - a) for a, b in zip([0, *cuts], [*cuts, n])) + ")"
        words.append(kind)
    source = [
        draw(st.integers(0, p - 1)) if "GEN" not in w else 0 for p, w in zip(grid, [w for w in words if w != "*"])
    ]
    extents = [str(p) for p in grid] or ["1"]
    if draw(st.integers(0, 4)) == 0:
        extents.insert(draw(st.integers(0, len(extents))), f"REPLICATED({draw(st.integers(1, 3))})")
    layout = ls.Layout(
        f"({', '.join(words)}) on {'x'.join(extents)}",
        shape,
        order=draw(st.sampled_from("CF")),
        rank_order=draw(st.sampled_from("CF")),
        source=source if grid and any(source) else None,
    )
    if disjoint and draw(st.integers(0, 3)) == 0:  # other world ranks, in any order
        ranks = draw(st.permutations(range(draw(st.integers(0, 3)) + layout.rank_count)))[: layout.rank_count]
        layout = ls.Layout(str(layout), shape, ranks=ranks)
    return layout


@st.composite
def redistributions(draw, max_ndim=4):
    """(source layout, destination layout, axes)."""
    shape = tuple(draw(st.lists(EXTENTS, min_size=1, max_size=max_ndim)))
    axes = draw(st.permutations(range(len(shape))))
    source = draw(layouts(shape))
    destination = draw(layouts(tuple(shape[a] for a in axes)))
    return source, destination, tuple(axes)


def distinct(shape, dtype):
    """An array whose elements tell their places apart as well as the dtype can."""
    n = int(np.prod(shape))
    dtype = np.dtype(dtype)
    raw = np.arange(1, n + 1, dtype="u8").view("u1").reshape(n, 8)
    out = np.zeros((n, dtype.itemsize), "u1")
    k = min(8, dtype.itemsize)
    out[:, :k] = raw[:, :k]
    return (out[:, 0] & 1).astype(bool).reshape(shape) if dtype.kind == "b" else out.view(dtype).reshape(shape)


def same(a, b):
    """Equal to the byte: NaNs and padding too."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )
