"""How fast Mnemon is, beside the least that the raw driver needs for the same work, in the same run.

Everybody multiplies matrices on one thread, Mnemon and numpy alike. Numpy asks for that when it is loaded.
"""

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
