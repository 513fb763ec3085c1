"""A program that ends with windows open, whose progress threads are in MPI much of the time."""

import longshore as ls
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
windows = [ls.Window(np.arange(9) + comm.rank, comm=comm, node="messages") for _ in range(2)]
peer = (comm.rank + 1) % comm.size
assert windows[0][peer].get().tolist() == list(range(peer, peer + 9))
