import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FleetView } from '@servegym/simulator';
import { GUEST, type Guest, type Hook } from './guest.ts';
import { type GuestPolicy, playGuest } from './guest-policy.ts';

export interface PythonPolicy {
  readonly source: string;
  /** Its file, as tracebacks name it. */
  readonly file: string;
  /** Keeps it from files, network, other processes and most modules, with so much memory. Default: all is the user's own. */
  readonly isolatedMiB?: number;
  /** Time of one call after which the process is ended, s. */
  readonly seconds: number;
  readonly python: string;
}

/** The end of the process that plays it. */
type Ending = { close(): void; hasEnded(): boolean };

/** Replicas that a call shows: those of the largest fleets that are simulated. */
const REPLICAS = 4096;
/** Doubles before the numbers of a call, and of an answer. */
const [CALL, ANSWER] = [8, 3];
const { REQUEST, REPLICA, ROWS, HASHES } = GUEST;

/** The Python to run policies with. */
export const pythonOf = (environment: NodeJS.ProcessEnv) => environment.SERVEGYM_PYTHON ?? 'python3';

/** True for a file in Python. */
export const isPython = (path: string) => path.endsWith('.py');

/** The text of a policy in Python without texts of several lines and lines of comments. */
export const pythonCode = (source: string) => source.replace(/"""[\s\S]*?"""|^\s*#.*$/gm, '');

/**
 * The functions of a policy in Python. Calls wait for its answer; they throw once its process has ended.
 * @param random the next random number of a run
 * @throws Error with a sentence for the policy's author, also where there is no such Python
 */
export function playPython(policy: PythonPolicy, random: (fleet: FleetView) => number): GuestPolicy & Ending {
  let fleet: FleetView | null = null;
  const guest = startGuest(policy, () => random(fleet!));
  const code = pythonCode(policy.source);
  try {
    const played = playGuest(guest, guest.adopt(undefined), code, (seen) => {
      fleet = seen;
    });
    return { ...played, close: guest.close, hasEnded: guest.hasEnded };
  } catch (error) {
    guest.close();
    throw error;
  }
}

function startGuest(policy: PythonPolicy, random: () => number): Guest & Ending {
  const { source, file, isolatedMiB, seconds, python } = policy;
  const pipes = startProcess(python, isolatedMiB !== undefined);
  const numbers = ROWS * REQUEST.length + HASHES;
  const sizes = [CALL + numbers, ANSWER + 2 * ROWS, ROWS * REQUEST.length, REPLICAS * REPLICA.length];
  const [call, answer, requests, replicas] = sizes.map((size) => new Float64Array(size));
  const [fleet, hashes] = [new Float64Array(GUEST.FLEET.length), new Float64Array(HASHES)];
  const [list, kinds] = [new Float64Array(ROWS), new Float64Array(ROWS)];
  let [shown, hashed, text, isOver] = [0, 0, '', false];
  const over = (began: number) => {
    isOver = true;
    const isLate = performance.now() - began >= 1000 * seconds;
    const reason = isLate ? `did not answer within ${seconds} s, and was ended` : 'ended';
    return new Error(`the process of ${basename(file)} ${reason}`);
  };
  const write = (bytes: Uint8Array, began: number) => {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(pipes.calls, bytes, at);
    } catch {
      throw over(began);
    }
  };
  /** Waits for the answer: values into `list`, kinds into `kinds`, and text. */
  const receive = (began: number): void => {
    if (!isRead(pipes.answers, answer)) throw over(began);
    const [values, kindCount, bytes] = answer;
    if (values < 0) {
      write(new Uint8Array(new Float64Array([random()]).buffer), began);
      receive(began);
      return;
    }
    const end = ANSWER + values + kindCount;
    list.set(answer.subarray(ANSWER, ANSWER + values));
    kinds.set(answer.subarray(ANSWER + values, end));
    if (bytes > 0) text = Buffer.from(answer.buffer, 8 * end, bytes).toString();
  };
  const ask = (hook: Hook | null, now: number, rows: number, replicaCount: number, json = ''): number => {
    const began = performance.now();
    if (isOver) throw over(began);
    const place = hook === null ? -1 : GUEST.HOOKS.indexOf(hook);
    const sent = rows === 1 ? hashed : 0;
    const told = Buffer.from(json);
    call.set([place, now, rows, replicaCount, sent, told.length, fleet[0], fleet[1]]);
    let end = CALL;
    for (const numbers of [
      requests.subarray(0, rows * REQUEST.length),
      replicas.subarray(0, replicaCount * REPLICA.length),
      hashes.subarray(0, sent),
    ]) {
      call.set(numbers, end);
      end += numbers.length;
    }
    write(new Uint8Array(call.buffer, 0, 8 * end), began);
    write(told, began);
    receive(began);
    return answer[0];
  };
  return {
    ...{ requests, replicas, fleet, hashes, list, kinds },
    adopt() {
      const names = { request: REQUEST, replica: REPLICA, fleet: GUEST.FLEET };
      const isolation = { isolated: isolatedMiB !== undefined, memory_mib: isolatedMiB ?? 0 };
      const given = { source, file, names, hooks: GUEST.HOOKS, roles: GUEST.ROLES, seconds, numbers };
      const began = performance.now();
      write(Buffer.from(`${JSON.stringify({ ...given, ...isolation })}\n`), began);
      receive(began);
      return text;
    },
    show(count, hashCount) {
      [shown, hashed] = [count, hashCount];
    },
    order: (rows, now) => ask('order', now, rows, 0),
    ask(hook, now) {
      ask(hook, now, 1, shown);
      return list[0];
    },
    score: (now) => void ask('score', now, 1, shown),
    scale(metrics, now) {
      ask('scale', now, 0, 0, metrics);
      return kinds[0] === GUEST.ANSWER.number ? text : '';
    },
    text: () => text,
    spentMs() {
      if (!isOver) ask(null, 0, 0, 0);
      return isOver ? 0 : list[0];
    },
    hasEnded: () => isOver,
    close() {
      isOver = true;
      closeSync(pipes.calls);
      closeSync(pipes.answers);
    },
  };
}

/** Reads an answer. False: the pipe ended before it did. */
function isRead(pipe: number, answer: Float64Array): boolean {
  let [got, expected] = [0, 8 * ANSWER];
  while (got < expected) {
    const read = readSync(pipe, answer, got, answer.byteLength - got, null);
    if (read === 0) return false;
    got += read;
    if (answer[0] >= 0) expected = 8 * (ANSWER + answer[0] + answer[1]) + answer[2];
  }
  return true;
}

/** Starts Python with a pipe for calls and one for answers, whose ends here block: a policy is asked in the middle of a simulation. */
function startProcess(python: string, isIsolated: boolean): Readonly<{ calls: number; answers: number }> {
  if (process.platform === 'win32') throw new Error('expected Linux or macOS for a policy in Python');
  const folder = mkdtempSync(join(tmpdir(), 'policy-'));
  try {
    const [callPath, answerPath] = [join(folder, 'calls'), join(folder, 'answers')];
    execFileSync('mkfifo', [callPath, answerPath]);
    // Opened for both, as the first end of a pipe would wait for the other one.
    const both = [openSync(callPath, 'r+'), openSync(answerPath, 'r+')];
    const theirs = [openSync(callPath, 'r'), openSync(answerPath, 'w')];
    const [calls, answers] = [openSync(callPath, 'a'), openSync(answerPath, 'r')];
    const guest = fileURLToPath(new URL('./policy_guest.py', import.meta.url));
    const child = spawn(python, ['-B', ...(isIsolated ? ['-s', '-S'] : []), guest], {
      // Sets of strings have the same order in each run.
      env: { ...(isIsolated ? {} : process.env), PATH: process.env.PATH, PYTHONHASHSEED: '0' },
      stdio: [theirs[0], theirs[1], isIsolated ? 'ignore' : 'inherit'],
    });
    for (const end of [...both, ...theirs]) closeSync(end);
    child.once('error', () => {});
    child.unref();
    if (child.pid !== undefined) return { calls, answers };
    closeSync(calls);
    closeSync(answers);
    throw new Error(`expected Python as \`${python}\`, which did not start: set SERVEGYM_PYTHON to one`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
