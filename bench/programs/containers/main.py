import json
import sys

from handler import handler

print(json.dumps(handler(json.load(sys.stdin))))
