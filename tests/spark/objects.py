"""An object store that speaks as much of S3 as reading takes: listing, sizes, and ranges of objects."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"


@contextmanager
def object_store(objects: Mapping[str, bytes]) -> Iterator[str]:
    """Serve objects by ``bucket/key``; gives what a URI needs behind its ``?``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            name, query = unquote(address.path).strip("/"), parse_qs(address.query)
            if "list-type" in query:
                self._answer(200, self._listing(name, query.get("prefix", [""])[0], "delimiter" in query))
            elif name not in objects:
                is_bucket = any(key.startswith(f"{name}/") for key in objects) and "/" not in name
                self._answer(200 if is_bucket else 404, b"")
            else:
                self._object(objects[name])

        def _object(self, data: bytes) -> None:
            asked = self.headers.get("Range")
            if asked is None:
                self._answer(200, data)
                return
            first, _, last = asked.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1 if last else len(data), len(data))
            self._answer(206, data[int(first) : end], f"bytes {first}-{end - 1}/{len(data)}")

        def _listing(self, bucket: str, prefix: str, is_flat: bool) -> bytes:
            keys = [
                name.partition("/")[2] for name in sorted(objects) if name.startswith(f"{bucket}/{prefix}")
            ]
            inner = {key: key[len(prefix) :].partition("/") for key in keys if is_flat}
            folders = sorted({f"{prefix}{name}/" for name, slash, _ in inner.values() if slash})
            keys = [key for key in keys if not is_flat or not inner[key][1]]
            contents = "".join(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[f'{bucket}/{key}'])}</Size></Contents>"
                for key in keys
            )
            contents += "".join(
                f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders
            )
            count = len(keys) + len(folders)
            head = f"<Name>{bucket}</Name><KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>"
            return f'<ListBucketResult xmlns="{_XMLNS}">{head}{contents}</ListBucketResult>'.encode()

        def _answer(self, status: int, data: bytes, span: str | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Last-Modified", formatdate(usegmt=True))
            self.send_header("ETag", '"1"')
            if span is not None:
                self.send_header("Content-Range", span)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
