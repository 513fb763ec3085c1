"""Longshore itself: a bound mover, run again and again."""

from __future__ import annotations

from typing import Any

from .base import Arrays, Case, Contender, Context, Missing, Prepared


def _library() -> Any:
    try:
        import longshore

        longshore.plan, longshore.empty  # noqa: B018 (a checkout that is not built imports as an empty package)
    except (ImportError, AttributeError) as error:
        raise Missing(f"longshore is not built here ({error})") from None
    return longshore


def _plan(ls: Any, case: Case) -> Any:
    source = ls.Layout(case.source.text, shape=case.shape)
    destination = ls.Layout(case.destination.text, shape=tuple(case.shape[a] for a in case.axes))
    return ls.plan(source, destination, "float64", axes=case.axes if case.transposed else None)


def _describe(mover: Any) -> str:
    return "; ".join(line.strip() for line in str(mover.path).splitlines() if line.strip())


class LongshoreThreads(Contender):
    name = "longshore threads"
    needs_mpi = False

    def prepare(self, context: Context, case: Case) -> Prepared:
        ls = _library()
        arrays = context.all_arrays(case)
        threads = context.ranks
        if not context.is_root:
            return Prepared(lambda: None, arrays, root_only=True, threads=threads)
        mover = _plan(ls, case).bind(
            [p.array for p in arrays.sources], [p.array for p in arrays.destinations], threads=threads
        )
        return Prepared(mover, arrays, root_only=True, threads=threads, detail=_describe(mover))


class LongshoreMpi(Contender):
    def __init__(self, name: str, own_arrays: bool) -> None:
        self.name, self._own_arrays = name, own_arrays

    def prepare(self, context: Context, case: Case) -> Prepared:
        ls = _library()
        plan = _plan(ls, case)
        if self._own_arrays:
            layouts = {"source": plan.source, "destination": plan.destination}
            arrays = Arrays.make(
                case, [context.rank], lambda side, rank, shape: ls.empty(layouts[side], "float64", comm=context.comm)
            )
        else:
            arrays = context.local_arrays(case)
        mover = plan.bind(arrays.sources[0].array, arrays.destinations[0].array, comm=context.comm)
        return Prepared(mover, arrays, detail=_describe(mover))
