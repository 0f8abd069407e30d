import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  type FleetView,
  type PolicyFunctions,
  type ReplicaView,
  type RequestView,
  startPolicy,
} from '@servegym/simulator';
import { PolicyEvaluator } from './evaluate-policy.ts';
import { importPolicy } from './import-policy.ts';
import { playPython, pythonOf } from './python-guest.ts';
import pythonTemplates from './python-templates.json' with { type: 'json' };
import { STANDARD } from './references.ts';
import { policyReport } from './report.ts';
import { drawTrial, SUITE_NAMES, tracesOf } from './suite.ts';
import templates from './templates.json' with { type: 'json' };
import { runScaledTrial, runTrial } from './trial.ts';

const folder = await mkdtemp(join(tmpdir(), 'python-policies-'));

async function evaluate(name: string, source: string, seconds = 60) {
  const file = join(folder, name);
  await writeFile(file, source);
  const limits = { seconds, memoryMiB: 512, requests: 200 };
  const evaluator = new PolicyEvaluator(
    'router',
    'train',
    tracesOf('router', 'train', '').slice(0, 1),
    limits,
  );
  try {
    return policyReport(await evaluator.evaluate(file));
  } finally {
    evaluator.close();
  }
}

/** Asks a policy for a score, without isolation but for `isolatedMiB`. */
function scored(
  source: string,
  { seconds = 10, isolatedMiB = undefined as number | undefined, python = pythonOf(process.env) } = {},
) {
  const policy = { source, file: 'mine.py', seconds, python, isolatedMiB };
  const played = playPython(policy, () => 0.25);
  const request = {
    prompt_tokens: 9,
    priority: 0,
    arrival: 1,
    prefix_hashes: [7, 8],
  } as unknown as RequestView;
  const replica = { index: 0, role: 'both', prefix_match: 0.5 } as ReplicaView;
  const fleet = { replicas: [replica], num_requests_held: 0, queue_seconds: 2 } as unknown as FleetView;
  try {
    return played.functions.score!(request, replica, 3, fleet);
  } finally {
    played.close();
  }
}

describe('a policy in Python', () => {
  it('has the results of the same policy in TypeScript, for each function', async () => {
    for (const suite of SUITE_NAMES) {
      const trial = drawTrial(suite, tracesOf(suite, 'train', '')[0], 400);
      const run = trial.task === undefined ? runTrial : runScaledTrial;
      const results = [];
      for (const [extension, text] of Object.entries({ py: pythonTemplates[suite], ts: templates[suite] })) {
        const file = join(folder, `${suite}.${extension}`);
        await writeFile(file, text.join('\n'));
        results.push(await run(trial, startPolicy(await importPolicy(file)), STANDARD as PolicyFunctions));
      }
      assert.deepEqual(results[0], results[1], suite);
      assert.deepEqual(results[0].faults, [], suite);
    }
  });

  it('is scored apart', async () => {
    const { combinedScore, faults, calls, policyShare } = await evaluate(
      'router.py',
      pythonTemplates.router.join('\n'),
    );
    assert.deepEqual([combinedScore, faults], [0, []]);
    assert.ok(calls >= 200 && policyShare > 0 && policyShare < 1);
  });

  it('sees what one in TypeScript sees', () => {
    const sees = `
def score(request, replica, now, fleet):
    assert (request.prompt_tokens, request.prefix_hashes, request.predicted_output_tokens) == (9, (7, 8), None)
    assert (replica.role, replica.prefix_match, fleet.queue_seconds, now) == ("both", 0.5, 2.0, 3.0)
    assert isinstance(replica.index, int) and fleet.replicas[replica.index] is replica
    return fleet.random()
`;
    assert.equal(scored(sees), 0.25);
    assert.equal(scored('def score(request, replica):\n    return True'), true);
  });

  it('is told where it raises, what it answers, and what it may not write', () => {
    const cases: [body: string, message: RegExp][] = [
      ['return 1 / 0', /^ZeroDivisionError: division by zero \(line 2\)$/],
      ['return "high"', /^TypeError: expected a number, True or False, got 'high'$/],
      ['request.priority = 3', /^AttributeError: .*\(line 2\)$/],
      ['raise SystemExit', /^SystemExit: {2}\(line 2\)$/],
    ];
    for (const [body, message] of cases)
      assert.throws(() => scored(`def score(request, replica):\n    ${body}`), { message });
    assert.throws(() => scored('def score(request:\n  pass'), { message: /^SyntaxError: .* \(line 1\)$/ });
    assert.throws(() => scored('def rank(): pass'), {
      message: /expected any of the functions order, .* got none/,
    });
    assert.throws(() => scored('score = 1\nties = "last"\ndef admit(): pass'), {
      message: /`ties` to be in_turns/,
    });
  });

  it('that hangs or ends does not hold its caller', () => {
    const hangs = 'def score(request, replica):\n    return sum(range(10**14))';
    for (const isolatedMiB of [undefined, 512])
      assert.throws(() => scored(hangs, { seconds: 0.3, isolatedMiB }), {
        message: /did not answer within 0\.3 s/,
      });
    assert.throws(() => scored(hangs, { python: 'no-python' }), { message: /`no-python`.*SERVEGYM_PYTHON/ });
    const ends = 'import os\ndef score(request, replica):\n    os._exit(3)';
    assert.throws(() => scored(ends), { message: 'the process of mine.py ended' });
  });

  it('that hangs on a trace is -1 there', async () => {
    const { combinedScore, traces } = await evaluate('hangs.py', 'def score(*_):\n    while True: pass', 3);
    assert.ok(combinedScore <= -1 + 1e-9);
    assert.match(traces[0].stopped!, /had not served the trace after 3 s/);
  });

  it('opens no file, starts nothing and has its memory, whatever it finds', () => {
    const attempts = {
      'posix.open("/etc/passwd", 0)': /PermissionError/,
      'posix.listdir("/")': /PermissionError/,
      'posix.fork()': /PermissionError/,
      'posix.kill(posix.getppid(), 9)': /PermissionError/,
      'posix.execv("/bin/ls", ["ls"])': /PermissionError/,
      'load("_socket").socket()': /PermissionError|ImportError/,
      'bytearray(1 << 30)': /MemoryError/,
      'open("/etc/passwd")': /NameError/,
      '__import__("os")': /ImportError/,
    };
    for (const [attempt, message] of Object.entries(attempts)) {
      const source = `
def score(request, replica):
    load = [each for each in ().__class__.__base__.__subclasses__() if each.__name__ == "BuiltinImporter"][0].load_module
    posix = load("posix")
    raise ValueError("LOOT", ${attempt})
`;
      assert.throws(() => scored(source, { isolatedMiB: 256 }), { message });
    }
    assert.throws(() => scored('import math\nimport os\ndef score(): pass', { isolatedMiB: 256 }), {
      message: /expected no imports but .*, math, .*; got os \(line 2\)/,
    });
  });
});
