"""One table of behaviour cases for Python and Ruby, each run the ordinary way and thawed. README.md says how."""
