"""Conjugate gradients on a mesh of tetrahedra, an alluvial valley in hard rock, whose vertices METIS has dealt to the
ranks: before each product with the matrix, each rank gets the values at the vertices beyond its own.

    mpiexec -n 2 python apps/kernels/fem.py [--vertices N]

A rank knows the tetrahedra that touch its vertices, and no more; `ls.Directory` finds the owners of the others.
"""

import argparse
import sys
from typing import NamedTuple

import longshore as ls
import numpy as np
import pymetis
import scipy.sparse
from scipy.sparse.linalg import cg
from scipy.spatial import Delaunay

SIZE = 4.0, 2.0, 1.0  # of the rock: a box below the surface z = 0
SOIL, ROCK = 1.0, 30.0  # conductivities


def in_soil(places):
    """Whether these places, an array of shape (n, 3), are in the valley's soil."""
    x, y, z = places.T
    return z >= -0.6 * (1 - ((x - 2) / 1.7) ** 2 - ((y - 1) / 0.8) ** 2)


def valley(vertices):
    """A mesh of about so many vertices, closer to each other in the soil: their places, shape (n, 3), and the
    tetrahedra, shape (m, 4), as numbers of vertices."""
    chance, step, lattices = np.random.default_rng(0), (2.1 / vertices) ** (1 / 3), []
    for spacing, soil in ((step, True), (2 * step, False)):
        axes = [np.linspace(0, extent, 1 + max(2, round(extent / spacing))) for extent in SIZE]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        inner = (places > 0) & (places < SIZE)
        places = places + inner * chance.uniform(-0.25, 0.25, places.shape) * spacing - (0, 0, SIZE[2])
        lattices.append(places[in_soil(places) == soil])
    places = np.concatenate(lattices)
    tetrahedra = Delaunay(places).simplices
    edges = places[tetrahedra[:, 1:]] - places[tetrahedra[:, :1]]
    thick = abs(np.linalg.det(edges)) > 1e-6 * step**3  # on the faces of the box there are some of no volume
    numbers, tetrahedra = np.unique(tetrahedra[thick], return_inverse=True)
    return places[numbers], tetrahedra.reshape(-1, 4)


def owners(tetrahedra, ranks):
    """The rank of each vertex, such that few edges go from one rank to another."""
    a, b = (tetrahedra[:, ends].ravel() for ends in np.nonzero(~np.eye(4, dtype=bool)))
    edges = scipy.sparse.csr_array((np.ones(len(a)), (a, b)))
    _, owner = pymetis.part_graph(ranks, adjacency=np.split(edges.indices, edges.indptr[1:-1]))
    return np.array(owner)


def equations(places, tetrahedra):
    """The matrix and the right-hand side of u - div(k grad u) = f by linear elements: f is 1 in the soil, else 0."""
    edges = places[tetrahedra[:, 1:]] - places[tetrahedra[:, :1]]
    volumes = abs(np.linalg.det(edges)) / 6
    slopes = np.linalg.inv(edges).transpose(0, 2, 1)
    slopes = np.concatenate([-slopes.sum(axis=1, keepdims=True), slopes], axis=1)
    soil = in_soil(places[tetrahedra].mean(axis=1))
    conductivity = np.where(soil, SOIL, ROCK)[:, None, None]
    values = volumes[:, None, None] * (conductivity * slopes @ slopes.transpose(0, 2, 1) + (1 + np.eye(4)) / 20)
    rows, columns = (tetrahedra[:, ends].ravel() for ends in np.indices((4, 4)).reshape(2, -1))
    n = len(places)
    matrix = scipy.sparse.csr_array((values.ravel(), (rows, columns)), (n, n))
    return matrix, np.bincount(tetrahedra.ravel(), np.repeat(volumes * soil / 4, 4), n)


class Part(NamedTuple):
    """What a rank knows of the mesh."""

    owned: np.ndarray  # numbers of its vertices
    needed: np.ndarray  # of those of others that its tetrahedra have
    tetrahedra: np.ndarray  # that touch its vertices
    places: np.ndarray  # of its vertices, then of the others


def deal(mesh, comm):
    """Each rank's part of the mesh of rank 0. Collective."""
    parts = None
    if comm.rank == 0:
        places, tetrahedra = mesh
        owner, parts = owners(tetrahedra, comm.size), []
        for rank in range(comm.size):
            touching = tetrahedra[(owner[tetrahedra] == rank).any(axis=1)]
            owned = np.flatnonzero(owner == rank)
            needed = np.setdiff1d(touching, owned)
            parts.append(Part(owned, needed, touching, places[np.concatenate([owned, needed])]))
    return comm.scatter(parts)


class Solver:
    """Conjugate gradients, scaled by the diagonal. `direction` is first at this rank's vertices, then at the others.
    Collective."""

    def __init__(self, part, comm):
        self.part, self.comm, self.own = part, comm, len(part.owned)
        self.plan = ls.Directory(part.owned, comm=comm).gather_points(part.needed)
        self.field = ls.XArray(self.plan.source, float, comm=comm)
        self.direction = self.field[comm.rank]
        self._fill = self.plan.bind(self.field, comm=comm)
        numbers = np.concatenate([part.owned, part.needed])
        order = np.argsort(numbers)
        matrix, load = equations(part.places, order[np.searchsorted(numbers, part.tetrahedra, sorter=order)])
        self.matrix, self.load, self.diagonal = matrix[: self.own], load[: self.own], matrix.diagonal()[: self.own]

    def _dot(self, a, b):
        return self.comm.allreduce(float(a @ b))

    def solve(self, tolerance=1e-10, most=10_000):
        """The solution at this rank's vertices, and the number of steps, so many at most. Collective."""
        rest, solution, direction, steps = self.load.copy(), np.zeros(self.own), self.direction[: self.own], 0
        direction[...] = rest / self.diagonal
        square = self._dot(rest, direction)
        goal = tolerance**2 * square
        while square > goal and steps < most:
            self._fill()
            product = self.matrix @ self.direction
            length = square / self._dot(direction, product)
            solution += length * direction
            rest -= length * product
            scaled = rest / self.diagonal
            before, square = square, self._dot(rest, scaled)
            direction *= square / before
            direction += scaled
            steps += 1
        return solution, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--vertices", type=int, default=10_000, help="of the mesh, about (default: 10000)")
    vertices = parser.parse_args().vertices
    from mpi4py import MPI

    comm, error = MPI.COMM_WORLD, None
    mesh = valley(vertices) if comm.rank == 0 else None
    solver = Solver(deal(mesh, comm), comm)
    solution, steps = solver.solve()
    found = comm.gather((solver.part.owned, len(solver.part.needed), solution))
    if comm.rank == 0:
        matrix, load = equations(*mesh)
        serial, _ = cg(matrix, load, rtol=1e-10, M=scipy.sparse.diags_array(1 / matrix.diagonal()))
        whole = np.full_like(serial, np.nan)
        for owned, _, values in found:
            whole[owned] = values
        error = float(abs(whole - serial).max() / abs(serial).max())
        ghosts = ", ".join(str(needed) for _, needed, _ in found)
        print(f"FEM of {len(mesh[0])} vertices and {len(mesh[1])} tetrahedra on {comm.size} ranks")
        print(
            f"{ghosts} vertices of others, {steps} steps, {error:.1e} from the serial solution:",
            "right" if error < 1e-7 else "WRONG",
        )
    return 0 if comm.bcast(error) < 1e-7 else 1


if __name__ == "__main__":
    sys.exit(main())
