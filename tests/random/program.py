"""Runs of dtrain, and what they left: exit code, error lines, records."""
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import time

PATIENCE = int(os.environ.get("PATIENCE", 3))
LIMIT = 60 * PATIENCE  # seconds: for what hangs


class Failure(Exception):
    """A promise that does not hold. kind: the same for the same defect, whatever its figures."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Result:
    def __init__(self, code, out, err, directory):
        self.code, self.out, self.err, self.directory = code, out, err, directory
        self.errors = re.findall(r"^dtrain: error:.*", err, re.M)

    def records(self, kind, of=None):
        """of: the set of eval.also that evaluations are of; None: the rows held out."""
        with open(f"{self.directory}/metrics.jsonl", encoding="utf-8") as file:
            made = [json.loads(line) for line in file if line.endswith("\n")]
        return [record for record in made if record["kind"] == kind and record.get("set") == of]

    def final(self):
        records = self.records("final")
        if not records:
            raise Failure("no final record", self.err)
        return records[-1]

    def resolved(self, key):
        section, name = key.split(".")
        with open(f"{self.directory}/config.ini", encoding="utf-8") as file:
            of = file.read().split(f"[{section}]\n")[1].split("\n[")[0]
        return re.search(rf"^{name} = ?(.*)$", of, re.M).group(1)


class Program:
    """Of one seed: runs in a directory, and the commands so far, for who reads a failure."""

    def __init__(self, dtrain, directory, hosts_library=None):
        self.dtrain, self.directory, self.hosts_library = dtrain, directory, hosts_library
        self.log, self.count = [], itertools.count()
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                OMPI_MCA_hwloc_base_binding_policy="none")
        self.environment.pop("LD_PRELOAD", None)

    def new_directory(self):
        return f"{self.directory}/run-{next(self.count)}"

    def command(self, np, hosts, arguments):
        launcher = ["mpirun", "--timeout", str(LIMIT), "--oversubscribe", "-np",
                    str(np)] if np > 1 else []
        if hosts:
            launcher += ["-x", f"LD_PRELOAD={self.hosts_library}", "-x", f"DELAY_HOSTS={hosts}"]
        return launcher + [self.dtrain] + arguments

    def start(self, command, text=None):
        self.log.append(" ".join(map(shlex.quote, command)) + (f" <{text}" if text else ""))
        return subprocess.Popen(command, cwd=self.directory, env=self.environment,
                                stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def end(self, process, directory=None, given=b""):
        try:
            out, err = process.communicate(given, timeout=LIMIT + 20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failure("hangs", f"{self.log[-1]}\n{err.decode(errors='replace')}")
        result = Result(process.returncode, out, err.decode(errors="replace"), directory)
        for sign in ("AddressSanitizer", "runtime error:", "LeakSanitizer", "Segmentation fault",
                     "Assertion"):
            if sign in result.err:
                raise Failure(f"sanitizer {sign}", result.err[-4000:])
        if process.returncode < 0 and process.returncode not in (-signal.SIGKILL, -signal.SIGUSR1):
            raise Failure(f"signal {-process.returncode}", result.err[-4000:])
        return result

    def train(self, np, config, hosts=None, directory=None):
        """To its end, whatever that is."""
        directory = directory or self.new_directory()
        return self.end(self.start(self.command(np, hosts, settings(config, directory))), directory)

    def other(self, *arguments, given=None, text=None):
        """A command beside train, alone."""
        return self.end(self.start([self.dtrain, *arguments], text), given=given or b"")

    def interrupted(self, np, config, how, step):
        """Trains until the checkpoint of a step is there, then sends a signal: USR1 to mpirun, or
        KILL to one rank."""
        directory = self.new_directory()
        process = self.start(self.command(np, None, settings(config, directory)))
        self.log[-1] += f"   # {how.name} at step {step}"
        file, deadline = f"{directory}/ckpt/step-{step:09d}.h5", time.monotonic() + LIMIT
        while process.poll() is None and not os.path.exists(file) and time.monotonic() < deadline:
            time.sleep(0.002)
        if process.poll() is None:
            victim = process.pid
            if np > 1 and how == signal.SIGKILL:
                with open(f"/proc/{victim}/task/{victim}/children", encoding="ascii") as children:
                    victim = max(map(int, children.read().split()), default=victim)
            os.kill(victim, how)
        return self.end(process, directory)


def settings(config, directory):
    return [f"run.dir={directory}"] + [f"{key}={value}" for key, value in config.items()]
