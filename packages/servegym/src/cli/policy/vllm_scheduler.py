"""A vLLM scheduler whose waiting queue a policy of ServeGym orders, made by `servegym policy export --to vllm`.

    vllm serve MODEL --no-async-scheduling --scheduler-cls MODULE.PolicyScheduler
    vllm serve MODEL --scheduler-cls MODULE.AsyncPolicyScheduler

Needs vLLM 0.32 with `--scheduling-policy fcfs`. A policy in JavaScript runs in Node 22.18 or newer, `node`. An answer that is no order
of the queue leaves the requests in order of arrival.
"""

import json
import subprocess
import time
from types import SimpleNamespace

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.request_queue import FCFSRequestQueue, SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler

POLICY = "{{policy}}"
IN_PYTHON = False
#: What vLLM does not know of a request.
UNKNOWN = {"prefix_hashes": (), "predicted_output_tokens": None, "predicted_output_error": None}

RUNNER = """
import { createInterface } from 'node:readline';
globalThis.definePolicy = (policy) => policy;
const { default: made } = await import('data:text/javascript,' + encodeURIComponent(process.argv[1]));
const { order } = typeof made === 'function' ? made() : made;
const none = { prefix_hashes: [], predicted_output_tokens: null, predicted_output_error: null };
for await (const line of createInterface({ input: process.stdin })) {
  const { now, requests } = JSON.parse(line);
  const queue = requests.map(([prompt_tokens, priority, arrival]) =>
    Object.freeze({ prompt_tokens, priority, arrival, ...none }));
  let answer = null;
  try { answer = order(queue.slice(), now).map((each) => queue.indexOf(each)); } catch {}
  process.stdout.write(JSON.stringify(answer) + '\\n');
}
"""


class OrderedQueue(FCFSRequestQueue):
    """Asks the policy once a scheduling pass, before the first request is admitted."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.is_ordered = False
        if IN_PYTHON:
            self.policy = {"__name__": "policy"}
            exec(POLICY, self.policy)
            self.places = self.places_by_python
        else:
            command = ["node", "--input-type=module", "-e", RUNNER, POLICY]
            self.runner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.places = self.places_by_node

    def peek_request(self):
        if not self.is_ordered and len(self) > 1:
            self.order()
        self.is_ordered = True
        return super().peek_request()

    def order(self):
        queue = list(self)
        places = self.places([(each.num_prompt_tokens, each.priority, each.arrival_time) for each in queue])
        self.clear()
        if places is not None and sorted(places) == list(range(len(queue))):
            self.extend(queue[place] for place in places)
        else:
            self.extend(sorted(queue, key=lambda each: each.arrival_time))

    def places_by_node(self, requests):
        self.runner.stdin.write(json.dumps({"now": self.clock(), "requests": requests}) + "\n")
        self.runner.stdin.flush()
        return json.loads(self.runner.stdout.readline())

    def places_by_python(self, requests):
        names = ("prompt_tokens", "priority", "arrival")
        queue = [SimpleNamespace(place=at, **dict(zip(names, each)), **UNKNOWN) for at, each in enumerate(requests)]
        try:
            return [each.place for each in self.policy["order"](list(queue), self.clock())]
        except Exception:
            return None


class OrderedByPolicy:
    clock = staticmethod(time.time)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.policy != SchedulingPolicy.FCFS:
            raise ValueError("expected --scheduling-policy fcfs: under priority, vLLM preempts in an order of its own")
        self.waiting = OrderedQueue(lambda: self.clock())

    def schedule(self, *args, **kwargs):
        self.waiting.is_ordered = False
        return super().schedule(*args, **kwargs)


class PolicyScheduler(OrderedByPolicy, Scheduler):
    pass


class AsyncPolicyScheduler(OrderedByPolicy, AsyncScheduler):
    pass
