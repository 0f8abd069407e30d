"""Plays a policy that is written in Python, in a process of its own. `python-guest.ts` starts it and has the other end of the pipes.

A call is eight doubles: hook (-1 for the processor time in ms), now, requests, replicas, hashes, bytes of JSON, and the two
numbers of the fleet. Then come the numbers of requests and replicas and the hashes, or the JSON. An answer is three doubles:
values (-1 to ask for a random number), kinds and bytes of text, and what they count. Numbers are in the byte order of the machine.
"""

import builtins
import faulthandler
import json
import os
import resource
import signal
import sys
import time
from array import array

#: Modules that an isolated policy may import: no clock, chance, files or network.
MODULES = "__future__ bisect collections dataclasses enum functools heapq itertools math operator typing".split()
#: Functions of Python that an isolated policy does not have.
WITHHELD = "open exec eval compile input breakpoint __import__ exit quit help".split()
#: System calls that it may make, by machine: those of memory, of open pipes, of signals, and of the end.
CALLS = {
    "x86_64": (0xC000003E, [0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 38, 60, 131, 202, 219, 228, 231]),
    "aarch64": (0xC00000B7, [57, 62, 63, 64, 80, 93, 94, 98, 103, 113, 124, 128, 132, 134, 135, 139, 214, 215, 216, 222, 226, 233]),
}
#: Numbers of the views that are no integers.
FRACTIONS = {"arrival", "kv_cache_usage_perc", "scrape_age", "prefix_match", "weight", "usd_per_hour", "queue_seconds"}
FRACTIONS |= {"predicted_output_error"}


class Named(dict):
    """A dictionary whose entries are attributes too."""

    __getattr__ = dict.__getitem__


def view_class(name, memory, fields, roles=()):
    """A class of views of numbers in `memory` from `_at` on, which can only be read."""

    def shown(field, offset):
        if field == "role":
            return property(lambda self: roles[int(memory[self._at + offset])])
        kind = float if field in FRACTIONS else int

        def get(self):
            value = memory[self._at + offset]
            return None if value == -1 else kind(value)

        return property(get)

    return type(name, (), {"__slots__": ("_at",), **{field: shown(field, offset) for offset, field in enumerate(fields)}})


def filter_calls():
    """Leaves this process no system calls but those of `CALLS` (seccomp); the others fail as not permitted."""
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: end with the process that started this one.
    machine, calls = CALLS[os.uname().machine]
    wrong_machine, denied, allowed = (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, machine), wrong_machine, (0x20, 0, 0, 0)]
    program += [(0x15, len(calls) - at, 0, call) for at, call in enumerate(calls)] + [denied, allowed]

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]

    instructions = (Instruction * len(program))(*program)
    given = ctypes.byref(Program(len(program), instructions))
    if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, given, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "this system does not filter the calls of a process")


class Guest:
    """The policy, and the numbers that it is shown."""

    def __init__(self, source, file, names, hooks, roles, isolated, seconds, memory_mib, numbers, pipes):
        self.file, self.hooks, self.seconds, (self.calls, self.answers) = file, hooks, seconds, pipes
        self.memory = memory = array("d", bytes(8 * numbers))
        self.bytes = memoryview(memory).cast("B")
        self.fleet_memory = array("d", [0, 0])
        self.Request = view_class("Request", memory, names["request"])
        self.Replica = view_class("Replica", memory, names["replica"], roles)
        self.request_size, self.replica_size = len(names["request"]), len(names["replica"])
        self.hashes, self.replicas, self.known = (0, 0), (), []
        self.Request.prefix_hashes = property(lambda view: tuple(int(each) for each in memory[slice(*self.hashes)]))
        Fleet = view_class("Fleet", self.fleet_memory, names["fleet"])
        Fleet.replicas = property(lambda view: self.replicas)
        Fleet.random = lambda view: self.random()
        self.fleet = Fleet()
        self.fleet._at = 0
        namespace = {"__name__": "policy", "__file__": file}
        if isolated:
            namespace["__builtins__"] = self.isolated(memory_mib)
        exec(compile(source, file, "exec"), namespace)
        self.functions = {hook: takes(namespace[hook]) for hook in hooks if callable(namespace.get(hook))}
        self.ties = namespace.get("ties", "in_turns")
        if not self.functions:
            raise TypeError(f"expected any of the functions {', '.join(hooks)}, got none")
        if self.ties not in ("in_turns", "first"):
            raise TypeError(f"expected `ties` to be in_turns or first, got {self.ties!r}")

    @staticmethod
    def isolated(memory_mib):
        """Keeps this process from all that a policy is not to have. Answers the functions that Python leaves it."""
        for name in MODULES:
            __import__(name)  # Now, as no file can be read later.

        def imported(name, *given):
            if name.split(".")[0] in MODULES:
                return __import__(name, *given)
            raise ImportError(f"expected no imports but {', '.join(MODULES)}; got {name}")

        resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, memory_mib << 20))
        if sys.platform == "linux":
            filter_calls()
        own = {name: value for name, value in vars(builtins).items() if name not in WITHHELD}
        return {**own, "__import__": imported}

    @staticmethod
    def view(kind, at):
        made = kind()
        made._at = at
        return made

    def random(self):
        send(self.answers, [-1, 0, 0])
        number = array("d", [0])
        self.calls.readinto(number)
        return number[0]

    def play(self):
        """Answers calls until the pipe is closed."""
        head = array("d", bytes(64))
        while self.calls.readinto(head) == 64:
            if head[0] < 0:
                send(self.answers, [1, 0, 0, 1000 * time.process_time()])
                continue
            hook, rows, shown, hashed, size = (int(head[at]) for at in (0, 2, 3, 4, 5))
            self.fleet_memory[0], self.fleet_memory[1] = head[6], head[7]
            first = rows * self.request_size
            self.hashes = first + shown * self.replica_size, first + shown * self.replica_size + hashed
            self.calls.readinto(self.bytes[: 8 * self.hashes[1]])
            while len(self.known) < shown:
                self.known.append(self.view(self.Replica, self.request_size + len(self.known) * self.replica_size))
            if len(self.replicas) != shown:
                self.replicas = tuple(self.known[:shown])
            text = self.calls.read(size)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
            values, kinds, told = self.answer(self.hooks[hook], head[1], rows, text)
            signal.setitimer(signal.ITIMER_REAL, 0)
            send(self.answers, [len(values), len(kinds), len(told), *values, *kinds], told)

    def answer(self, hook, now, rows, text):
        """Values, the kind of each, and text: JSON, or what was raised."""
        call, request = self.functions[hook], self.view(self.Request, 0)
        try:
            if hook == "order":
                queue = [self.view(self.Request, row * self.request_size) for row in range(rows)]
                ordered = call(queue, now)
                return [each._at // self.request_size if type(each) is self.Request else -1 for each in ordered], [0], b""
            if hook == "scale":
                return [], [0], json.dumps(call(*json.loads(text, object_hook=Named), now)).encode()
            if hook == "score":
                answers = [number(call(request, replica, now, self.fleet)) for replica in self.replicas]
            else:
                answers = [number(call(request, self.fleet, now))]
            return [value for value, _ in answers], [kind for _, kind in answers], b""
        except BaseException as error:
            return [], [2] * max(1, len(self.replicas)), message_of(error, self.file).encode()


def send(pipe, numbers, text=b""):
    pipe.write(array("d", numbers).tobytes() + text)
    pipe.flush()


def number(value):
    """An answer as a number with its kind: 0 for a number, 1 for true or false."""
    if isinstance(value, bool):
        return value, 1
    if hasattr(value, "__float__"):
        return float(value), 0
    raise TypeError(f"expected a number, True or False, got {value!r}"[:160])


def takes(call):
    """The function with only so many arguments as it declares."""
    code = getattr(call, "__code__", None)
    if code is None or code.co_flags & 4:
        return call
    count = code.co_argcount
    return lambda *given: call(*given[:count])


def message_of(error, file):
    """What was raised, with the last line of the policy that it went through."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    text = f"{type(error).__name__}: {getattr(error, 'msg', None) or error}"[:200]
    return text if line is None else f"{text} (line {line})"


def main():
    pipes = open(os.dup(0), "rb", 1 << 16), open(os.dup(1), "wb", 1 << 16)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # What the policy prints.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given = json.loads(pipes[0].readline())
    if not given["isolated"]:
        # The alarm ends a call that takes too long. Here a traceback comes first, also where Python itself handles no signals.
        faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
        sys.path[0] = os.path.dirname(os.path.abspath(given["file"]))
    signal.setitimer(signal.ITIMER_REAL, given["seconds"])
    guest = None
    try:
        guest = Guest(**given, pipes=pipes)
        text = f"{' '.join(guest.functions)}/{guest.ties}"
    except BaseException as error:
        text = f"!{message_of(error, given['file'])}"
    signal.setitimer(signal.ITIMER_REAL, 0)
    send(pipes[1], [0, 0, len(text.encode())], text.encode())
    if guest is not None:
        guest.play()


main()
