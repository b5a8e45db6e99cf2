"""A way to a node that can be cut, slowed down and made to lose answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time


class Proxy:
    """Passes bytes on, as far as it is told to."""

    def __init__(self, target: str) -> None:
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._refuses = self._deaf = False
        self._delay = 0.0
        self._passes = threading.Event()
        self._passes.set()
        self.taken, self.last = 0, 0.0
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """Breaks every connection; new ones may be made at once."""
        with self._lock:
            for one in self._open:
                _reset(one)
            self._open = []

    def refuse(self) -> None:
        """Breaks every connection, and each new one at once."""
        self._refuses = True
        self.cut()

    def silence(self) -> None:
        """Lets nothing pass, without closing anything."""
        self._passes.clear()

    def deaf(self) -> None:
        """Passes on what clients say, and breaks the connection in place of the answer."""
        self._deaf = True

    def delay(self, seconds: float) -> None:
        self._delay = seconds

    def heal(self) -> None:
        """As if nothing had happened; what was on its way in silence still arrives."""
        self._refuses = self._deaf = False
        self._delay = 0.0
        self._passes.set()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                _reset(near)
                continue
            self.taken, self.last = self.taken + 1, time.monotonic()
            try:
                far = socket.create_connection(self._target)
            except OSError:
                _reset(near)
                continue
            with self._lock:
                self._open += [near, far]
            for one, other, answers in ((near, far, False), (far, near, True)):
                words = (one, other, answers)
                threading.Thread(target=self._pass_on, args=words, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := source.recv(65536):
                if answers and self._deaf:
                    break
                if self._delay:
                    time.sleep(self._delay)
                self._passes.wait()
                sink.sendall(data)
        _reset(source)
        _reset(sink)


def _reset(one: socket.socket) -> None:
    """Wakes up who reads from it, and lets the other end know at once."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
