"""Records what NVFlare's message layer sends, if TAP names a folder.

Every Python with this folder on its path runs this file. All that a connection gets is written
before it is encrypted, in a file per process.
"""

import os

if "TAP" in os.environ:
    from nvflare.fuel.f3.drivers import aio_conn, socket_conn

    def kept(send):
        def send_frame(self, frame):
            with open(f"{os.environ['TAP']}/{os.getpid()}", "ab") as file:
                file.write(bytes(frame))
            return send(self, frame)

        return send_frame

    for kind in (socket_conn.SocketConnection, aio_conn.AioConnection):
        kind.send_frame = kept(kind.send_frame)
