"""Signals at any moment of every verb. A verb that saves does so, and goes on to the bits of one that was left alone; the others end at once."""
import signal
import subprocess
import time

from world import Answer, leftovers, run_difference

SAVING = ("pretrain", "prepare", "study run")
PATIENCE = 20  # seconds from the signal to the end, on a busy machine


def verbs(world):
    """Each verb with the masters that it needs and about how long it takes."""
    sets = ["--set", "data.tokens=tokens"]
    return [("pretrain", world.pretrain("bert", "run"), ["bert.yaml", "tokens"]),
            ("pretrain", world.pretrain("xlnet", "run"), ["xlnet.yaml", "tokens"]),
            ("prepare", world.prepare("tokens", "unigram"), ["text.txt"]),
            ("prepare", world.prepare("tokens"), ["text.txt"]),
            ("study run", ["study", "run", "study.yaml", "--jobs", "2"], ["study.yaml", "bert.yaml", "tokens"]),
            ("study plan", ["study", "plan", "study.yaml"], ["study.yaml", "bert.yaml", "tokens"]),
            ("study report", ["study", "report", "study.yaml"], ["studies", "study.yaml", "bert.yaml", "tokens"]),
            ("tokenize", ["tokenize", "tokens/tokenizer", "wa wb wc"], ["tokens"]),
            ("evaluate", ["evaluate", "run-bert"], ["run-bert", "tokens"]),
            ("generate", ["generate", "run-gpt2", "wa wb", "--max-new-tokens", "100"], ["run-gpt2"]),
            ("fill", ["fill", "run-bert", "wa [MASK] wc"], ["run-bert"]),
            ("inspect", ["inspect", "objective", "bert.yaml", *sets], ["bert.yaml", "tokens"]),
            ("benchmark", ["benchmark", "bert.yaml", *sets, "--steps", "50"], ["bert.yaml", "tokens"]),
            ("describe", ["describe", "bert.yaml"], ["bert.yaml"]),
            ("import", ["import", "export", "--out", "import"], ["export"]),
            ("export", ["export", "run-bert", "--to", "huggingface", "--out", "export"], ["run-bert"]),
            ("export", ["export", "run-gpt2", "--to", "torchscript", "--out", "script.pt"], ["run-gpt2"]),
            ("verify run", ["verify", "run", "run-bert"], ["run-bert"]),
            ("verify data", ["verify", "data", "tokens"], ["tokens"]),
            ("report", ["report", "run-bert", "--metric", "mlm"], ["run-bert"]),
            ("config", ["config", "--resolved", "bert.yaml"], ["bert.yaml"]),
            ("explain", ["explain", "bert.yaml"], ["bert.yaml"]),
            ("completion", ["completion", "bash"], [])]


def interrupted(world, draw, command, folder, length):
    """The answer of a command that gets signals, with the seconds from the first of them to its end."""
    process = world.start(command, folder)
    time.sleep(draw.random() * length)
    number = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    begin = time.time()
    process.send_signal(number)
    if draw.random() < 0.2:  # an impatient user
        process.send_signal(number)
    try:
        out, err = process.communicate(timeout=PATIENCE)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        code = -99
    return number, Answer(code, out.decode(errors="replace"), err.decode(errors="replace"), time.time() - begin)


def finished(world, verb, command, folder):
    """How what a saving verb left goes on; a fault, or nothing."""
    if verb == "pretrain":
        again = [*command, "--resume"] if (folder / "run/run.yaml").exists() else command
        family = command[1].split(".")[0]
        answer = world.ask(again, folder)
        return answer.fault((0,)) or run_difference(folder / "run", world.masters / f"run-{family}") or leftovers(folder)
    answer = world.ask(command, folder)
    return answer.fault((0,)) or (leftovers(folder) if verb == "prepare" else "")


def attack(world, draw, name):
    verb, command, masters = draw.choice(verbs(world))
    folder = world.case_folder(name, *masters)
    length = 0.3 if verb in ("describe", "config", "explain", "completion", "report", "tokenize", "verify data") else world.seconds["run-bert"]
    number, answer = interrupted(world, draw, command, folder, length)
    codes = {0, 130} if verb in SAVING else {0}
    fault = answer.fault({*codes, -number, 128 + number})
    if not fault and answer.code != 0 and verb in ("pretrain", "prepare", "study run"):
        fault = finished(world, verb, command, folder)
    return 1, fault and f"{verb}, {signal.Signals(number).name}: {fault}: {answer.err[-300:]}"
