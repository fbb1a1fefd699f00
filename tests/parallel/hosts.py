"""Hosts for tests: network namespaces of this machine with names and addresses of their own, on one switch. Needs root
and iproute2. What runs on one sees its own network and its own host's name; files are shared."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from ranks import MPI, TREE

NETWORK = "10.213.77"


def missing():
    """Why there can be no hosts here; None when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "unshare", "mpirun"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (iproute2, util-linux, openmpi-bin)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    name = f"accel{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
        return "this system makes no network namespaces"
    ip("netns", "delete", name)
    return None


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Hosts:
    """`count` hosts, named host0 and on, on a switch whose links can be shaped and cut (switch.c)."""

    def __init__(self, count):
        self.key = f"accel{os.getpid()}"
        self.count = count
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hosts"))
        self.namespaces = []
        self.switch = None
        try:
            self.make()
        except BaseException:
            self.close()
            raise

    def make(self):
        program = self.folder / "switch"
        subprocess.run(["cc", "-O2", "-o", program, TREE / "tests" / "parallel" / "switch.c"], check=True)
        for i in range(self.count):
            self.namespace(f"host{i}")
        self.switch = subprocess.Popen([program, *self.namespaces], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(self.switch.pid, os.SCHED_FIFO, os.sched_param(1))  # links do not wait for processors
        if self.switch.stdout.readline() != "ready\n":
            raise RuntimeError("the switch does not start")
        for i, name in enumerate(self.namespaces):
            ip("-n", name, "address", "add", f"{NETWORK}.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "mtu", "9000", "up")
            ip("-n", name, "link", "set", "lo", "up")
        self.agent = self.folder / "agent"
        self.agent.write_text('#!/bin/sh\nhost=$1\nshift\n'
                              f'exec ip netns exec {self.key}$host unshare --uts sh -c \'hostname "$1" && shift && eval "$*"\' sh $host "$@"\n')
        self.agent.chmod(0o755)

    def namespace(self, name):
        ip("netns", "add", self.key + name)
        self.namespaces.append(self.key + name)
        return self.key + name

    def close(self):
        if self.switch is not None:
            self.switch.kill()
            self.switch.communicate()
        self.end_all()
        for name in self.namespaces:
            ip("netns", "delete", name)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- What is done to them ----

    def on(self, host, *command):
        """The words that run a command on a host."""
        return ["ip", "netns", "exec", f"{self.key}host{host}", "unshare", "--uts", "sh", "-c",
                'hostname "$1" && shift && exec "$@"', "sh", f"host{host}", *map(str, command)]

    def environment(self):
        return {**os.environ, **MPI, "OMPI_MCA_plm_rsh_agent": str(self.agent), "OMPI_MCA_btl": "tcp,self"}

    def names(self):
        return ",".join(f"host{i}" for i in range(self.count))

    def processes(self, host):
        """The numbers of what runs on a host."""
        text = subprocess.run(["ip", "netns", "pids", f"{self.key}host{host}"], capture_output=True, text=True).stdout
        return [int(word) for word in text.split()]

    def end_all(self):
        for process in [process for host in range(self.count) for process in self.processes(host)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def shape(self, host, delay=0.0, loss=0.0, rate=0.0):
        """What leaves a host: seconds on the way, the fraction that is lost, bytes a second (0: any number)."""
        self.switch.stdin.write(f"{host} {1e6 * delay} {loss} {rate}\n")
        self.switch.stdin.flush()
        if self.switch.stdout.readline() != "ok\n":
            raise RuntimeError("the switch has ended")

    def cut(self, host):
        self.shape(host, loss=1)
