"""What Python's modules keep to themselves and an event loop of one's own
needs, under public names.
"""

import asyncio
import sys

frame_above = sys._getframe
running_loop = asyncio.events._get_running_loop
set_running_loop = asyncio.events._set_running_loop
