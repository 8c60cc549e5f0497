#!/usr/bin/env python3
"""Holds a run of several processes to what docs/clusters.md says of their start and of their ends.

    tests/acceptance/processes.py build/cloze [--torchrun TORCHRUN] [--kills 60]

Runs of a tiny model by `--processes`, by the variables of srun and, where they are there, by torchrun and mpirun:
kills, stops, signals, errors. Each must end with its exit code and with one sentence where it was started. Needs two
cores for `--processes 2`; what cannot be tried is said. `--kills` is how often one run is killed at a random moment, to
go on with one or two processes.
"""
import argparse
import contextlib
import os
import pathlib
import random
import resource
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
parser.add_argument("--kills", type=int, default=4)
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

    def await_that(self, condition):
        """Waits until something holds, for a minute at most and no longer than the command runs."""
        until = time.time() + 60
        while time.time() < until and self.process.poll() is None and not condition():
            time.sleep(0.02)

    def await_steps(self, run, step=""):
        """Waits until the run has saved a checkpoint, or one after `step`."""
        self.await_that(lambda: last_step(run) > step)

    def await_text(self, text):
        self.await_that(lambda: text in self.text())


def last_step(run):
    """The name of the last checkpoint of a run, or nothing."""
    latest = pathlib.Path(run, "latest")
    return latest.read_text().strip() if latest.exists() else ""


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


def check_many_kills():
    """One run, killed again and again, has the weights of one that was left alone."""
    chance = random.Random(1)
    budget = ["--set", f"train.budget.steps={100 * options.kills}"]
    check("a run is left alone", pretrain("alone", *budget, "--set", "train.parts=2").code(600) == 0)
    begins, kills = ["--processes", 2], 0
    while kills < options.kills:
        before, size = last_step("often"), 2 if kills % 3 < 2 else 1
        run = pretrain("often", *budget, *(begins if not before else ["--resume", "--processes", size]))
        run.await_steps("often", before)
        time.sleep(chance.random() * 0.3)
        ranks = {**run.ranks(), **({} if size > 1 else {0: run.process.pid})}
        if run.process.poll() is not None or not ranks:
            break  # the budget is used up
        with contextlib.suppress(ProcessLookupError):
            os.kill(ranks[chance.randrange(len(ranks))], signal.SIGKILL)
        code = run.code(20)
        check(f"kill {kills + 1} ends all", code == (4 if size > 1 else -signal.SIGKILL), f"{code}\n{run.text()}")
        kills += 1
    run = pretrain("often", *budget, "--resume", "--processes", 2)
    check("a run that was killed often ends well", run.code(600) == 0, run.text())
    check("it has the weights of one that was left alone", same_weights("often", "alone"))
    print(f"a run was killed {kills} times")


def same_weights(run, other):
    step = last_step(run)
    return step == last_step(other) and all(
        pathlib.Path(run, step, name).read_bytes() == pathlib.Path(other, step, name).read_bytes()
        for name in ("weights.safetensors", "optimizer.safetensors"))


def check_a_full_disk():
    run = pretrain("full", "--processes", 2)
    run.await_steps("full")
    resource.prlimit(run.ranks()[0], resource.RLIMIT_FSIZE, (4096, 4096))  # what a full disk is to its writes
    run.await_text("cannot be written (File too large); the run continues")
    run.process.send_signal(signal.SIGTERM)
    check("what has no room when all end is told once", run.code() == 1 and "File too large" in run.last() and
          run.text().count("error:") == 1, run.text())
    again = pretrain("full", "--resume", "--processes", 2, "--set",
                     f"train.budget.steps={int(last_step('full')[5:]) + 20}")
    check("the last checkpoint before is whole", again.code() == 0, again.text())


def check_a_log_that_cannot_be():
    shutil.rmtree("whole/ranks")
    pathlib.Path("whole/ranks").touch()
    run = pretrain("whole", "--resume", "--processes", 2, "--set", "train.budget.steps=60")
    check("a process without a log speaks where it was started, after its rank", run.code() == 0 and
          "rank 1: [processes] warning: whole/ranks/1.log cannot be written (Not a directory)" in run.text(), run.text())


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


def check_a_second_signal():
    run = pretrain("twice", "--processes", 2, "--set", "train.accumulation=100000")  # a step of minutes
    run.await_text("[processes] 2 by --processes")
    time.sleep(1)
    run.process.send_signal(signal.SIGINT)
    time.sleep(1)
    check("a signal waits for the step", run.process.poll() is None, run.text())
    start = time.time()
    run.process.send_signal(signal.SIGINT)
    code, seconds = run.code(), time.time() - start
    check("a second one does not", code == 130 and seconds < 2, f"{code}, {seconds}\n{run.text()}")


def check_errors():
    run = pretrain("bad", "--processes", 2, "--set", "train.batch_size=none")
    check("a mistake is told once", run.code() == 2 and run.text().count("error:") == 1, run.text())
    check("nothing is left of it", not pathlib.Path("bad").exists())
    run = pretrain("gpu", "--processes", 2, "--set", "train.device=cuda")
    check("GPUs that are not there are named", run.code() == 2 and "each takes one of its own" in run.last(), run.text())
    run = pretrain("gpu", "--processes", 2, "--set", "train.device=cuda:1")
    check("one GPU for all is refused", run.code() == 2 and "a GPU of its own; use cuda" in run.last(), run.text())
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
          ranks[0].last() and "train.deterministic=false" in ranks[0].last(), ranks[0].text())
    port = free_port()
    ranks = [pretrain("mixed", "--set", "train.deterministic=false", *SET,
                      variables={**{k: str(v) for k, v in by_srun(rank, 2, port).items()}, **(slow if rank else {})})
             for rank in (0, 1)]
    codes = [one.code() for one in ranks]
    check("they train together where the order of sums is free", codes == [0, 0] and
          "train.deterministic is false" in ranks[0].text(), ranks[0].text())


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
    check("what was started again has the same weights", same_weights("again", "torch"))
    bad = Process([*command, "--", cloze, "pretrain", "tiny.yaml", "--set", "train.batch_size=none"])
    check("torchrun repeats the sentence", bad.code() == 1 and "train.batch_size" in bad.text().split("FAILED")[-1],
          bad.text())


def check_cores_of_mpirun():
    """Two processes that mpirun has bound to one core each, of machines that have more."""
    place = ["--rendezvous", f"127.0.0.1:{free_port()}"]
    ranks = [Process(["taskset", "-c", min(os.sched_getaffinity(0)), cloze, "pretrain", "tiny.yaml", "--run", "bound",
                      *place, *SET],
                     {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                      "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}) for rank in (0, 1)]
    codes = [rank.code() for rank in ranks]
    check("a binding of mpirun to one core is told", codes == [0, 0] and "start it with `mpirun --bind-to none`" in
          ranks[0].text(), ranks[0].text())


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
            check_a_log_that_cannot_be()
            check_kills()
            check_many_kills()
            check_a_full_disk()
            check_a_frozen_process()
            check_a_slow_process()
            check_signals()
            check_a_second_signal()
            check_cores_of_mpirun()
        else:
            print("not tried: --processes 2, for want of a second core")
        torchrun = options.torchrun or shutil.which("torchrun")
        check_torchrun(torchrun) if torchrun else print("not tried: torchrun, which is not here")
        check_mpirun() if shutil.which("mpirun") else print("not tried: mpirun, which is not here")
    print("all processes end as they should" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
