"""What a wheel with compiled parts has to say of itself: whom it is for. No extension module is in it, so any CPython will do."""

import os
import platform

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Equal to GLIBC in tools/packages.py, which has the parts linked against that version and names the architecture; a test compares them.
TAG = "py3-none-manylinux_2_28_" + os.environ.get("SNAPBOOT_ARCHITECTURE", platform.machine())


class Platform(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = TAG
