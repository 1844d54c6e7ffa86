"""The front end: boots a program, has it frozen, and makes the thawed process the new one.

Nobody imports it: `snapboot freeze` starts the interpreter on `freeze.py`, and `loader.py` loads the rest.
"""
