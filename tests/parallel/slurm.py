"""A cluster of Slurm for tests: one controller and two nodes with names of their own, all on this machine. They run in a
namespace of processes that ends with the test, and all that Slurm starts with it. Needs root, slurm-wlm and munge."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from ranks import MPI, PATIENCE, free_ports, wait_for

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "unshare")
NODES = ("node1", "node2")

CONFIGURATION = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
KillWait=20
NodeName=node1 NodeAddr=127.0.0.1 Port={ports[1]} CPUs={processors}
NodeName=node2 NodeAddr=127.0.0.1 Port={ports[2]} CPUs={processors}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# The first process of the namespace: with it all others end, and it ends with its standard input.
CLUSTER = """munged --force --key-file=$1/munge.key --socket=$1/munge.socket --pid-file=$1/munge.pid \\
  --log-file=$1/munge.log --seed-file=$1/munge.seed
slurmctld -f $1/slurm.conf
for node in node1 node2; do unshare --uts sh -c "hostname $node; exec slurmd -N $node -f $1/slurm.conf"; done
cat >/dev/null
"""


def missing():
    """Why there can be no cluster here; None when there can."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    absent = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    return f"{absent[0]} is not installed (slurm-wlm, munge)" if absent else None


class Cluster:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm"))
        self.environment = {**os.environ, **MPI, "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        for name in ("state", *NODES):
            (self.folder / name).mkdir()
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        self.folder.chmod(0o755)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, ports=free_ports(3),
            processors=len(os.sched_getaffinity(0))))
        self.first = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", CLUSTER,
                                       "sh", self.folder], stdin=subprocess.PIPE, env=self.environment)
        try:
            self.wait_for(lambda: self.read("sinfo", "--noheader", "--format=%T") == "idle", "the nodes")
        except BaseException:
            self.close()
            raise

    def close(self):
        self.first.stdin.close()
        try:
            self.first.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.first.kill()
            self.first.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command, **more):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, **more)

    def read(self, *command, **more):
        return self.run(*command, **more).stdout.strip()

    def wait_for(self, is_so, what):
        wait_for(is_so, what, lambda: self.read("scontrol", "show", "jobs") + "\n" + (self.folder / "controller.log").read_text()[-3000:])
