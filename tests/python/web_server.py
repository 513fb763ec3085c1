"""A web server of this machine for tests: it has the files of a folder, and ranges of them, and may err."""

from __future__ import annotations

import contextlib
import http.server
import os
import threading


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files, and ranges of them, as a web server gives them."""

    ranges = True
    """Whether it gives ranges; else whole files."""
    cut = 0
    """So many bytes are missing at the end of what it sends."""
    more = b""
    """What it sends behind that."""
    shift = 0
    """So far from where it should do the ranges begin that it sends and says so."""
    losses = 0
    """How many of its next answers end in the middle."""
    busy = 0
    """How many of its next requests it refuses for a while."""
    tells_dates = True
    lists_folders = False
    asked: list[tuple[str, str | None]]
    """Paths and ranges."""

    def do_GET(self):
        path = self.translate_path(self.path)
        own = type(self)
        own.asked.append((self.path, self.headers.get("Range")))
        if own.busy > 0:
            own.busy -= 1
            self.send_error(503)
            return
        if os.path.isdir(path) and self.lists_folders:
            super().do_GET()
            return
        if not os.path.isfile(path):
            self.send_error(404)
            return
        asked = self.headers.get("Range")
        whole = os.path.getsize(path)
        with open(path, "rb") as file:
            if asked and self.ranges:
                start, _, stop = asked.removeprefix("bytes=").partition("-")
                begin = int(start) + (self.shift if int(start) else 0)
                if begin >= whole:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{whole}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                file.seek(begin)
                body = file.read(int(stop) - int(start) + 1 if stop else -1)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{begin + len(body) - 1}/{whole}")
            else:
                body = file.read()
                self.send_response(200)
        body = body[: max(0, len(body) - self.cut)] + self.more
        self.send_header("Content-Length", str(len(body)))
        if self.tells_dates:
            self.send_header("Last-Modified", self.date_time_string(os.stat(path).st_mtime))
            self.send_header("ETag", f'"{os.stat(path).st_mtime_ns}-{whole}"')
        self.end_headers()
        if own.losses > 0:
            own.losses -= 1
            body = body[: len(body) // 2]
            self.close_connection = True
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(folder):
    """The URL of a folder's files, and the handler's class, whose ways may be changed."""
    handler = type("Here", (Handler,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: handler(*given, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
