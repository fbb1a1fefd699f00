"""Programs on a terminal of so many columns, and the lines that they draw there."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

PATIENCE = 60  # seconds


class Terminal:
    """A process on a terminal of its own. session: it is that of the process's session, as a person's is; mpirun gives each rank one
    that is not."""

    def __init__(self, command, columns=80, *, cwd=None, session=True, kind="xterm", piped=(), **environment):
        self.outer, inner = pty.openpty()
        self.resize(columns)
        streams = {name: subprocess.PIPE if name in piped else inner for name in ("stdout", "stderr")}
        starter = ["setsid", "--ctty", "--wait"] if session else []
        self.process = subprocess.Popen([*starter, *command], cwd=cwd, stdin=inner, **streams,
                                        env={**os.environ, "TERM": kind, **environment})
        os.close(inner)
        self.drawn = b""

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.outer, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        """More of what it draws; False at its end."""
        if not select.select([self.outer], [], [], PATIENCE)[0]:
            self.process.kill()
            raise TimeoutError(f"nothing more is drawn after {self.drawn[-200:]}")
        try:
            piece = os.read(self.outer, 65536)
        except OSError:  # the other end is closed
            return False
        self.drawn += piece
        return piece != b""

    def read_until(self, pattern):
        """Reads until the pattern is drawn, and gives the match; None where the process ends before."""
        until = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.drawn)):
            if time.monotonic() > until or not self.read():
                return None
        return found

    def press(self, keys):
        os.write(self.outer, keys)

    def end(self):
        """Waits for its end: status and text."""
        while self.read():
            pass
        status = self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        os.close(self.outer)
        return status, self.drawn.decode().replace("\r\n", "\n")


def show(command, columns=80, **how):
    """What a command draws, and its status."""
    return Terminal(command, columns, **how).end()


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def lines(text):
    """Every line that was drawn at any time, those that others replaced as well."""
    return [part for line in plain(text).split("\n") for part in line.split("\r") if part]


def broken(text, columns=80):
    """Lines that do not fit. A word that is longer than a line, such as a path, has one to itself."""
    return [line for line in lines(text) if len(line) > columns and " " in line.strip()]
