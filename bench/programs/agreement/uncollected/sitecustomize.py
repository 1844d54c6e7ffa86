"""Nothing is collected while `-X importtime` measures: see bench/agreement.py. PYTHONPATH names this folder."""

import gc

gc.disable()
