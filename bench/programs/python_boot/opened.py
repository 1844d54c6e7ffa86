"""Opens the archive of this process and prints how many milliseconds of CPU that takes.

opened.py [ARCHIVE]    ARCHIVE: one of code-data-share; without it Snapboot's, which this process was started with
"""

import sys
import time

if len(sys.argv) > 1:
    import cds

    began = time.process_time()
    cds.share(sys.argv[1])
else:
    finder = next(finder for finder in sys.meta_path if hasattr(finder, "is_of_archive"))
    if "find_spec" in vars(finder):
        sys.exit("the archive is open before this program begins: what opens it is not measured")
    began = time.process_time()
    finder.open()
took = time.process_time() - began
if len(sys.argv) == 1 and type(finder.find_spec).__name__ != "Search":
    sys.exit("the archive was not opened")
print(took * 1000)
