"""Options of sockets that differ between systems."""

import sys

# Whether a server may take a port again soon after another server has closed it. On Windows, this option would let it
# take the port of a running server.
REUSE_ADDRESS = sys.platform != "win32"
