"""The front end: boots a program, has it frozen, and turns the thawed process into the newly started one.

Programs never import this package: `snapboot freeze` starts the interpreter on `freeze.py`, and `loader.py` loads the other modules.
"""
