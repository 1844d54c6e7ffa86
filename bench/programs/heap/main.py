"""The main part that all heaps share: nothing, or with the argument `gc` one full collection."""

import gc
import sys

if "gc" in sys.argv:
    gc.collect()
