"""`accel-gen report --serve`: the page and its state while runs grow, come and go; requests that are slow, long, malformed, of other methods, for
files, or of pages elsewhere; where it listens, and how it ends. By Python's http.client and by sockets. Skipped without libmicrohttpd. TAP."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "build")]

from report_page import Page  # noqa: E402
from tap import GENERATOR, TREE, finish, report  # noqa: E402

GONE = (ConnectionError, http.client.HTTPException, TimeoutError)
# What is sent, and the statuses that are right; 0: the connection ends without an answer.
HOST = b"Host: 127.0.0.1\r\n"
REQUESTS = {
    "a file above": (b"GET /../../../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "a file above, encoded": (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "a file of the run": (b"GET /run/metrics.jsonl HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "two slashes": (b"GET //state HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "another server's": (b"GET http://example.org/ HTTP/1.1\r\n" + HOST + b"\r\n", {404, 400}),
    "no path": (b"GET  HTTP/1.1\r\n" + HOST + b"\r\n", {400, 404, 0}),
    "a page elsewhere": (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", {403}),
    "a page elsewhere at this port": (b"GET / HTTP/1.1\r\nHost: example.org:PORT\r\n\r\n", {403}),
    "a name that begins alike": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1.example.org\r\n\r\n", {403}),
    "a name that ends alike": (b"GET / HTTP/1.1\r\nHost: example.localhost\r\n\r\n", {403}),
    "a name with a user": (b"GET / HTTP/1.1\r\nHost: localhost:80@example.org\r\n\r\n", {403, 400}),
    "the state of a page elsewhere": (b"GET /state HTTP/1.1\r\nHost: example.org\r\n\r\n", {403}),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", {403, 400}),
    "an old protocol": (b"GET / HTTP/1.0\r\n\r\n", {403, 400}),
    "a long line": (b"GET /" + 1_000_000 * b"a" + b" HTTP/1.1\r\n" + HOST + b"\r\n", {400, 413, 414, 431, 0}),
    "a line without an end": (1_000_000 * b"a", {400, 413, 414, 431, 0}),
    "a long header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + 1_000_000 * b"a" + b"\r\n\r\n", {400, 413, 431, 0}),
    "many headers": (b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X%d: 1\r\n" % i for i in range(20000)) + b"\r\n", {400, 413, 431, 0}),
    "zeros": (1000 * b"\0" + b"\r\n\r\n", {400, 403, 405, 0}),
    "bytes": (bytes(range(256)) * 40, {400, 403, 405, 0}),
    "a negative length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", {400, 405, 0}),
    "a body that does not come": (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000000\r\n\r\n", {200, 400, 413}),
    "chunks that are none": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzzzz\r\n", {400, 405}),
    "this machine by name": (b"GET /state HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", {200}),
    "a forwarded port": (b"GET /state HTTP/1.1\r\nHost: LocalHost:8888\r\n\r\n", {200}),
}
REQUESTS |= {f"the method {method}": (f"{method} / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{{}}".encode(), {405})
             for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "PROPFIND", "get")}


def write(folder, count, **files):
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps({"step": step, "loss": 4 / step, "step_ms": 10.0}) + "\n" for step in range(1, count + 1)))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


class Server:
    """A server of runs, until the block ends."""

    def __init__(self, *words, port=0):
        self.process = subprocess.Popen([GENERATOR, "report", *words, "--serve", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ has the page until Ctrl-C\n", self.line)
        self.port = int(found[1]) if found else 0

    def get(self, path="/", method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def page(self):
        return self.get()[1]

    def state(self):
        return self.get("/state")[1]

    def until(self, is_right, ask=None):
        """The first answer that is right, of those that come until then: between two pages the server rests."""
        for _ in range(600):
            text = (ask or self.page)()
            if is_right(text):
                return text
            time.sleep(0.1)
        raise AssertionError("the server stays with\n" + text)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def send(self, request):
        """The status of the answer to bytes; 0: there was none."""
        received = b""
        with self.connect() as connection, contextlib.suppress(*GONE):
            connection.sendall(request.replace(b"PORT", str(self.port).encode()))
            received = connection.recv(1 << 16)
        found = re.match(rb"HTTP/1\.[01] (\d+) ", received)
        return int(found[1]) if found else 0

    def end(self, signal_=signal.SIGINT):
        self.process.send_signal(signal_)
        out, error = self.process.communicate(timeout=60)
        return self.process.returncode, out + error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


def shown_state(text):
    return re.search(r'<meta name="accel-state" content="([0-9a-f]{64})">', text)[1]


def steps(text):
    """The last step of the first run; 0 of a page without runs."""
    return Page(text).data.get("runs", [{"last": [0]}])[0]["last"][-1]


def check_growth(folder):
    run, other = folder / "run", folder / "other"
    write(run, 20)
    write(other, 5)
    with Server(run, other) as server:
        answer, text = server.get()
        alone = folder / "alone.html"
        subprocess.run([GENERATOR, "report", run, other, "-o", alone], check=True, timeout=60)
        page, wrong = Page(text), []
        wrong += page.wrong + ([] if page.data == Page(alone.read_text()).data else ["other data than that of -o"])
        wrong += [] if "accel-state" not in alone.read_text() and "fetch(" not in alone.read_text() else ["the page of -o asks for more"]
        wrong += [] if answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8" else [answer.headers.as_string()]
        wrong += [f"{name}: {answer.headers[name]}" for name, value in (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
                                                                         ("Cross-Origin-Resource-Policy", "same-origin"), ("Access-Control-Allow-Origin", None)) if answer.headers[name] != value]
        report("the page is that of -o, and its own", wrong)
        head, nothing = server.get(method="HEAD")
        report("HEAD has no body", [] if nothing == "" and head.headers["Content-Length"] == str(len(text.encode())) else [head.headers.as_string()])
        before = shown_state(text)
        report("the state stays while nothing changes", [] if server.state() == server.state() == shown_state(server.page()) == before else [server.state()])
        write(run, 30)
        after = server.until(lambda state: state != before, server.state)
        text = server.until(lambda text: steps(text) == 30)
        report("another line is another state, and in the page", [] if shown_state(text) == after else [before, after])
        (other / "audit.json").write_text(json.dumps({"program": {"file": "t.c"}, "summary": {"holds": 3, "broken": 0, "cannot_tell": 1}, "claims": []}))
        text = server.until(lambda text: "claims about t.c, 3 hold" in text)
        report("a file that comes is another state", [] if shown_state(text) != after else ["the same"])
        shutil.rmtree(run)
        text = server.until(lambda text: steps(text) == 0)
        report("a run that is gone is noted", [] if "run: is not there" in text else [text])
        write(run, 7)
        server.until(lambda text: steps(text) == 7)
        report("it goes on after all this, and Ctrl-C ends it", [] if server.end() == (0, "") else [server.process.returncode])


def check_waiting(folder):
    run = folder / "waits"
    run.mkdir()
    with Server(run) as server:
        text = server.page()
        first = shown_state(text)
        wrong = Page(text).wrong + ([] if "metrics.jsonl: is not there" in text else [text])
        (run / "metrics.jsonl").touch()
        text = server.until(lambda text: "has not come to its first one" in text)
        wrong += [] if shown_state(text) != first else ["the state is the same"]
        write(run, 2)
        server.until(lambda text: steps(text) == 2)
        report("a run that begins is waited for", wrong)


def check_requests(folder):
    write(folder / "run", 3)
    with Server(folder / "run") as server:
        for name, (request, statuses) in REQUESTS.items():
            status = server.send(request)
            report(f"{name}: {' or '.join(map(str, sorted(statuses)))}", [] if status in statuses else [status])
        report("and the page is there after them", [] if steps(server.page()) == 3 and server.process.poll() is None else [server.process.poll()])


def trickle(connection):
    with connection, contextlib.suppress(ConnectionError):
        for _ in range(600):
            connection.sendall(b"a")
            time.sleep(0.1)
        return ["a connection is open after 600 bytes"]
    return []


def drain(connection):
    """Reads to the end of a connection, which there is."""
    with connection, contextlib.suppress(ConnectionError):
        try:
            while connection.recv(1 << 16):
                pass
        except TimeoutError:
            return ["a connection is open"]
    return []


def check_slow(folder):
    """Some who say nothing, who stop in the middle, who send a byte now and then, and who do not read."""
    write(folder / "run", 3)
    with Server(folder / "run") as server:
        slow = [server.connect() for _ in range(30)]
        for connection in slow[10:]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        deaf = server.connect()
        deaf.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        report("others are answered meanwhile", [] if steps(server.page()) == 3 else ["no"])
        report("who sends a byte now and then is sent away", trickle(slow.pop()))
        report("who does not ask is sent away", [problem for connection in slow for problem in drain(connection)])
        report("and the page is there after them", [] if steps(server.page()) == 3 else ["no"])
        deaf.close()


def listeners(port):
    """The addresses, as the system prints them, at which somebody listens at a port."""
    rows = [line.split() for name in ("tcp", "tcp6") if os.path.exists(f"/proc/net/{name}") for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port]


def check_ends(folder):
    write(folder / "run", 3)
    with Server(folder / "run") as server:
        there = listeners(server.port)
        report("it listens at 127.0.0.1 alone", [] if there == ["%08X" % int.from_bytes(bytes([127, 0, 0, 1]), sys.byteorder)] else there)
        with Server(folder / "run", port=server.port) as second:
            status, said = second.process.wait(60), second.process.communicate()[1]
            right = status == 1 and f"127.0.0.1:{server.port}: another program listens there" in said and "--port N" in said
            report("a port that is taken is named", [] if right else [status, said])
        open_one = server.connect()
        report("SIGTERM ends it, though somebody is there", [] if server.end(signal.SIGTERM) == (0, "") else [server.process.returncode])
        open_one.close()
        with Server(folder / "run", port=server.port) as again:
            report("then the port is free", [] if again.port == server.port else [again.line])


def check_words(folder):
    write(folder / "run", 3)
    for words, part in ((["run", "--serve", "-o", "page.html"], "without -o"), (["run", "--port", "1", "-o", "page.html"], "--port is of --serve"),
                        (["run", "--serve", "--port", "65536"], "a number from 0 to 65535"), (["run", "none", "--serve"], "none: No such file"), (["run"], "an output is missing")):
        done = subprocess.run([GENERATOR, "report", *words], cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        report(f"report {' '.join(words)} is refused", [] if done.returncode in (1, 2) and part in done.stderr and not (folder / "page.html").exists() else [done.stderr])


def main():
    missing = TREE / "build/config/missing"
    if missing.exists() and "server" in missing.read_text().split():
        print("the command was built without libmicrohttpd")
        sys.exit(77)
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        for check in (check_growth, check_waiting, check_requests, check_slow, check_ends, check_words):
            check(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish()


if __name__ == "__main__":
    main()
