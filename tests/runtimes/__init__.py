"""The runtimes' own test suites, and whole programs, thawed against ordinary."""
