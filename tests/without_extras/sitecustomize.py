"""Python imports this module when it starts: from then on it finds none of the modules in BLOCKED_MODULES."""

import os
import sys
from importlib.machinery import PathFinder


class Finder(PathFinder):
    """The ordinary finder, blind to some modules."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] in os.environ.get("BLOCKED_MODULES", "").split():
            return None
        return super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
