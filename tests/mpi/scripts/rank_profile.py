"""Makes communicators and groups of known members, for the profile of communicators to find.

Run under mpiexec with the profile preloaded; knows nothing of Longshore.

    rank_profile.py OUT    rank 0 writes the members that are expected as JSON: {"name": [[members], ...]}
"""

import json
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.size, world.rank
ranks = list(range(size))
expected: dict[str, list[list[int]]] = {}

# Three splits at a time, freed at once but for the last one.
for turn in range(3):
    halves = world.Split(rank % 2, -rank)
    if turn < 2:
        halves.Free()
expected["MPI_Comm_split"] = [ranks[colour::2][::-1] for colour in range(min(2, size))]

kept = [world.Dup() for _ in range(3)]
copy, request = world.Idup()
request.Wait()
told_more = world.Dup_with_info(MPI.INFO_NULL)
of_half = halves.Dup()
for comm in (*kept, copy, told_more, of_half):
    comm.Free()

dims = MPI.Compute_dims(size, 2)
rows = [ranks[at : at + dims[1]] for at in range(0, size, dims[1])]
grid = world.Create_cart(dims, periods=[True, False])
row = grid.Sub([False, True])
neighbours = [(rank - 1) % size, (rank + 1) % size]
all_around = [other for each in range(size) for other in ((each - 1) % size, (each + 1) % size)]
shapes = [
    world.Create_graph([2 * each + 2 for each in range(size)], all_around),
    world.Create_dist_graph([rank], [2], neighbours),
    world.Create_dist_graph_adjacent(neighbours, neighbours),
    world.Split_type(MPI.COMM_TYPE_SHARED),
]
for call in ("Cart_create", "Graph_create", "Dist_graph_create", "Dist_graph_create_adjacent", "Comm_split_type"):
    expected["MPI_" + call] = [ranks]
expected["MPI_Cart_sub"] = rows

everybody = world.Get_group()
odd = everybody.Range_incl([(1, size - 1, 2)]) if size > 1 else MPI.GROUP_EMPTY
backwards = everybody.Incl(ranks[::-1])
some = backwards.Excl([0]) if size > 1 else MPI.GROUP_EMPTY
both = MPI.Group.Union(odd, some)
common = MPI.Group.Intersection(some, odd)
others = MPI.Group.Difference(everybody, odd)
of_row = row.Get_group()
first = of_row.Incl([0])
expected["MPI_Group_incl"] = [ranks[::-1], *(each[:1] for each in rows)]
if size > 1:
    expected["MPI_Group_range_incl"] = [ranks[1::2]]
    expected["MPI_Group_excl"] = [ranks[::-1][1:]]
    expected["MPI_Group_union"] = [[*ranks[1::2], *[r for r in ranks[::-1][1:] if r % 2 == 0]]]
    expected["MPI_Group_intersection"] = [[r for r in ranks[::-1][1:] if r % 2]]
    expected["MPI_Group_difference"] = [ranks[::2]]
    team = world.Create(odd)
    expected["MPI_Comm_create"] = [ranks[1::2]]
    if rank % 2:
        odd_ranks = world.Create_group(odd, tag=7)
    expected["MPI_Comm_create_group"] = expected["MPI_Comm_create"]
    mine, other = (ranks[colour::2][::-1] for colour in (rank % 2, 1 - rank % 2))
    between = halves.Create_intercomm(0, world, other[0], tag=3)
    merged = between.Merge(high=rank % 2 == 0)
    remote = between.Get_remote_group()
    evens, odds = ranks[::2][::-1], ranks[1::2][::-1]
    low, high = sorted((evens, odds))
    expected["MPI_Intercomm_create"] = [low + high]
    expected["MPI_Intercomm_merge"] = [odds + evens]
    expected["MPI_Comm_remote_group"] = [odds, evens]

told = world.gather((rank, halves.rank, row.size))
if rank == 0:
    with open(sys.argv[1], "w") as file:
        json.dump(expected, file)
    print(told)


def copied(comm, key, value):
    print("the copy function of an attribute was called")
    raise RuntimeError("it is for nobody to copy")


# The end of MPI copies no attributes of the program's.
world.Set_attr(MPI.Comm.Create_keyval(copy_fn=copied), rank)
MPI.Finalize()
