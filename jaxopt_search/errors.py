"""The exceptions of the library. Plain bad arguments raise `ValueError` or `TypeError`."""

import re


class InstanceFormatError(ValueError):
    """An instance or solution file does not follow its format. The message names file and line."""


class UnsupportedInstance(InstanceFormatError):
    """A well-formed instance file of a kind that this library does not read, such as HCP."""


class DownloadError(OSError):
    """A file could not be downloaded, or is not the file that was asked for."""


class CheckpointError(ValueError):
    """A file holds no whole checkpoint, or the one of another run. The message names the file."""


class NotPortable(ValueError):
    """A search cannot run as a fused kernel. The message names the function and the operation."""


def is_about_memory(error: Exception) -> bool:
    """Returns whether an error says that there is too little memory."""
    found = re.search("RESOURCE_EXHAUSTED|[Oo]ut of memory|Unable to allocate", str(error))
    return found is not None
