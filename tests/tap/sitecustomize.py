"""Read by every Python that has this folder on its path: where TAP names a folder, all that NVFlare's message layer
hands to a connection is kept there, before it is encrypted, in a file per process."""

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
