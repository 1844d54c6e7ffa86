"""Imports the web trio and prints how many kilobytes the compiled files of all modules have that are imported then."""

import os
import sys

import flask  # noqa: F401
import pymongo  # noqa: F401
import requests  # noqa: F401

files = {getattr(module, "__cached__", None) for module in list(sys.modules.values())} - {None}
print(sum(os.path.getsize(file) for file in files if os.path.exists(file)) / 1000)
