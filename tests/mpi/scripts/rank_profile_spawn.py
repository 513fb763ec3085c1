"""Two processes spawn a third, and all make communicators together: the profile of communicators knows one world."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
parent = MPI.Comm.Get_parent()
spawned = parent != MPI.COMM_NULL
between = parent if spawned else world.Spawn(sys.executable, [__file__], maxprocs=1)
bridge = between.Merge(high=spawned)
# Of two communicators that are followed, each by its own world.
other = world.Create_intercomm(0, bridge, 0 if spawned else 2, tag=5)
remote = other.Get_remote_group()
everybody = other.Merge(high=spawned)
assert everybody.Split(0, 0).size == 3
# Of one that is followed, and one that is not.
half = bridge.Split(spawned, 0)
(world if spawned else half).Create_intercomm(0, bridge, 0 if spawned else 2, tag=6)
between.Disconnect()
