#!/usr/bin/env python3
"""Holds a run of several processes to what docs/clusters.md says of their start and of their ends.

    tests/acceptance/processes.py build/cloze [--torchrun TORCHRUN]

Runs of a tiny model by `--processes`, by the variables of srun and, where they are there, by torchrun and mpirun:
kills, stops, signals, errors. Each must end with its exit code and with one sentence where it was started. Needs two
cores for `--processes 2`; what cannot be tried is said.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONFIG = """
model: {kind: bert, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64,
  max_position_embeddings: 64}
objectives: [{kind: mlm}]
data: {tokens: tokens, max_seq_length: 32}
train: {batch_size: 8, threads: 1, budget: {steps: 100000}}
evaluation: {every: 0, sequences: 16}
checkpoint: {every: 20, log_every: 10, keep: 1}
"""
SET = ["--set", "train.budget.steps=40"]
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "SLURM_", "OMPI_", "CLOZE_", "TORCHELASTIC_")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cloze", type=pathlib.Path)
parser.add_argument("--torchrun", type=pathlib.Path)
options = parser.parse_args()
cloze = str(options.cloze.resolve())
failures = []
clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}\n  " + "\n  ".join(str(detail).strip().splitlines()[-12:]), flush=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Process:
    """A command in a folder, whose output goes to a file."""

    def __init__(self, command, variables=(), name="out"):
        self.path = pathlib.Path(f"{name}-{len(list(pathlib.Path('.').iterdir()))}.txt")
        with open(self.path, "w") as out:
            self.process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL, env={**clean, **dict(variables)})

    def text(self):
        return self.path.read_text()

    def last(self):
        return (self.text().strip().splitlines() or [""])[-1]

    def code(self, limit=60):
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "no end"

    def ranks(self):
        """The processes that a launcher of this machine has started, by rank."""
        found = {}
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                variables = (folder / "environ").read_bytes().split(b"\0")
                rank = [one[5:] for one in variables if one.startswith(b"RANK=")]
                if parent == self.process.pid and rank:
                    found[int(rank[0])] = int(folder.name)
        return found

    def await_steps(self, run):
        """Waits until the run has saved a checkpoint."""
        until = time.time() + 60
        while time.time() < until and self.process.poll() is None:
            if pathlib.Path(run, "latest").exists():
                return
            time.sleep(0.02)


def pretrain(run, *more, variables=()):
    return Process([cloze, "pretrain", "tiny.yaml", "--run", run, *more], variables, run)


def by_srun(rank, size, port):
    return {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": size, "SLURM_LOCALID": rank, "MASTER_PORT": port,
            "SLURM_STEP_TASKS_PER_NODE": size, "SLURM_JOB_ID": "7"}


def started_by_srun(run, size, *more, commands=()):
    port = free_port()
    return [pretrain(run, *more, *(commands[rank] if commands else ()),
                     variables={name: str(value) for name, value in by_srun(rank, size, port).items()})
            for rank in range(size)]


def check_a_whole_run():
    run = pretrain("whole", "--processes", 2, *SET)
    check("a run of two processes ends well", run.code() == 0, run.text())
    check("the other process has a log", "rank 1 on " in pathlib.Path("whole/ranks/1.log").read_text())
    check("the first one alone prints", run.text().count("stopped by budget") == 1, run.text())


def check_kills():
    for victim in (0, 1):
        name = f"killed-{victim}"
        run = pretrain(name, "--processes", 2)
        run.await_steps(name)
        os.kill(run.ranks()[victim], signal.SIGKILL)
        start = time.time()
        code, seconds = run.code(), time.time() - start
        check(f"the death of rank {victim} ends all in two seconds", code == 4 and seconds < 2, f"{code}, {seconds}")
        wanted = f"continue with `cloze pretrain --run {name} --resume`"
        check(f"the death of rank {victim} is told", f"error: rank {victim} on " in run.last() and wanted in run.last(),
              run.text())
        check("it is told once", run.text().count("cloze: error:") == 1, run.text())
        steps = int(pathlib.Path(name, "latest").read_text().strip()[5:]) + 20
        again = Process([cloze, "pretrain", "--run", name, "--resume", "--set", f"train.budget.steps={steps}"],
                        name=name)
        check("one process goes on with the run", again.code() == 0, again.text())


def check_a_frozen_process():
    for victim in (0, 1):
        name = f"frozen-{victim}"
        run = pretrain(name, "--processes", 2, "--timeout", 3)
        run.await_steps(name)
        os.kill(run.ranks()[victim], signal.SIGSTOP)
        start = time.time()
        code, seconds = run.code(), time.time() - start
        check(f"frozen rank {victim} is lost after the time-out", code == 4 and seconds < 3 + 8, f"{code}, {seconds}")
        check(f"frozen rank {victim} is named", f"rank {victim} on " in run.text() and
              "has not answered for 3 seconds" in run.text(), run.text())


def check_a_slow_process():
    run = pretrain("slow", "--processes", 2)
    run.await_steps("slow")
    slow = run.ranks()[1]
    until = time.time() + 30
    while time.time() < until and "the others wait for rank 1 on " not in run.text():
        for number in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(slow, number)
            time.sleep(0.02)
    check("a process that all wait for is named", "the others wait for rank 1 on " in run.text(), run.text())
    run.process.send_signal(signal.SIGTERM)
    run.code()


def check_signals():
    for number in (signal.SIGINT, signal.SIGTERM):
        name = f"signal-{int(number)}"
        run = pretrain(name, "--processes", 2)
        run.await_steps(name)
        run.process.send_signal(number)
        check("a signal saves and stops all", run.code() == 130, run.text())
        check("it is said where to go on", f"continue with `cloze pretrain --run {name} --resume`" in run.last(),
              run.text())
    run = pretrain("one", "--processes", 2)
    run.await_steps("one")
    os.kill(run.ranks()[1], signal.SIGTERM)
    check("a signal to one process saves and stops all", run.code() == 130, run.text())


def check_errors():
    run = pretrain("bad", "--processes", 2, "--set", "train.batch_size=none")
    check("a mistake is told once", run.code() == 2 and run.text().count("error:") == 1, run.text())
    check("nothing is left of it", not pathlib.Path("bad").exists())
    run = pretrain("gpu", "--processes", 2, "--set", "train.device=cuda")
    check("a GPU is refused", run.code() == 2 and "several processes train on CPUs" in run.last(), run.text())
    ranks = started_by_srun("other", 2, commands=([], ["--set", "train.seed=3"]))
    codes = [one.code(20) for one in ranks]
    check("processes with other commands are refused", codes == [2, 2] and "rank 1 on " in ranks[0].last() and
          "the command is" in ranks[0].last(), ranks[0].text())
    slow = {"CLOZE_ISA": "portable"}
    port = free_port()
    ranks = [pretrain("isa", variables={**{k: str(v) for k, v in by_srun(rank, 2, port).items()},
                                        **(slow if rank else {})}) for rank in (0, 1)]
    codes = [one.code() for one in ranks]
    check("other instruction sets are refused", codes == [2, 2] and "the instruction set is portable" in
          ranks[0].last(), ranks[0].text())


def check_launchers_without_training():
    one = Process([cloze, "describe", "tiny.yaml"], {k: str(v) for k, v in by_srun(1, 2, 1).items()})
    check("another verb is a matter of one process", one.code() == 2 and "is a matter of one process" in one.last(),
          one.text())
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"}
    check("a batch script waits for nobody", pretrain("batch", *SET, variables=batch).code() == 0)


def check_torchrun(torchrun):
    command = [torchrun, "--no-python", "--nproc-per-node", "2", "--master-port", free_port()]
    run = Process([*command, "--", cloze, "pretrain", "tiny.yaml", "--run", "torch", *SET])
    check("torchrun starts a run", run.code() == 0, run.text())
    hook = "grep -q '\"event\":\"checkpoint\"' && ! [ -e crashed ] && touch crashed && kill -9 $PPID; true"
    run = Process([*command, "--max-restarts", "2", "--", cloze, "pretrain", "tiny.yaml", "--run", "again", *SET, "--hook",
                   hook])
    check("torchrun starts a run again, which goes on", run.code(120) == 0 and pathlib.Path("crashed").exists(),
          run.text())
    bad = Process([*command, "--", cloze, "pretrain", "tiny.yaml", "--set", "train.batch_size=none"])
    check("torchrun repeats the sentence", bad.code() == 1 and "train.batch_size" in bad.text().split("FAILED")[-1],
          bad.text())


def check_mpirun():
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"]
    run = Process([*command, cloze, "pretrain", "tiny.yaml", "--run", "mpi", "--rendezvous",
                   f"127.0.0.1:{free_port()}", *SET])
    check("mpirun starts a run", run.code() == 0, run.text())


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("tiny.yaml").write_text(CONFIG)
        pathlib.Path("text.txt").write_text("The cat sat on the mat. Then it slept.\n\nA dog barked.\n" * 400)
        subprocess.run([cloze, "prepare", "text.txt", "--vocab-size", "80", "--out", "tokens"], check=True, env=clean,
                       stderr=subprocess.DEVNULL)
        check_launchers_without_training()
        check_errors()
        if len(os.sched_getaffinity(0)) > 1:
            check_a_whole_run()
            check_kills()
            check_a_frozen_process()
            check_a_slow_process()
            check_signals()
        else:
            print("not tried: --processes 2, for want of a second core")
        torchrun = options.torchrun or shutil.which("torchrun")
        check_torchrun(torchrun) if torchrun else print("not tried: torchrun, which is not here")
        check_mpirun() if shutil.which("mpirun") else print("not tried: mpirun, which is not here")
    print("all processes end as they should" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
