"""Every way of moving blocks under MPI."""

WAYS = [
    {}, {"node": "direct"}, {"node": "ring"}, {"node": "messages"}, {"node": "messages", "aggregate": False},
    {"node": "messages", "packet_bytes": 256}, {"node": "messages", "exchange": "neighborhood"},
    {"node": "messages", "exchange": "alltoall"}, {"node": "messages", "preallocate": False}, {"max_mem": 20000},
    {"node": "messages", "max_mem": 2000}, {"proxy": True}, {"node": "ring", "aggregate": False}, {"checked": True},
    {"checked": True, "node": "messages"}, {"checked": True, "proxy": True},
]  # fmt: skip
