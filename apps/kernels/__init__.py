"""The application kernels of the copy-transfer model's paper (section 6), as programs that run on any number of ranks:

    mpiexec -n 2 python apps/kernels/fft2d.py    # and fem.py, sor.py

Each compares its result with that of a serial solver. `longshore bench chained` times their communication.
"""
