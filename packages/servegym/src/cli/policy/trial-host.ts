import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type PythonPolicy, pythonOf } from './python-guest.ts';
import type { ReferenceName } from './references.ts';
import type { Trial } from './trial.ts';
import type { TrialAnswer, TrialJob } from './trial-process.ts';

export interface Limits {
  /** Requests to draw. Default: those of the suite. */
  readonly requests?: number | undefined;
  readonly seconds: number;
  readonly memoryMiB: number;
  /** Plays the default and the best known also where their values are recorded. */
  readonly isRecording?: boolean;
}

/** Why a policy was stopped on a trace: its time, its memory, or a result that cannot be. */
type Stop = 'time' | 'memory' | 'result';

/** What is played: the JavaScript of a module, a file in Python, or one of our policies. */
export type PlayedPolicy =
  | { readonly source: string }
  | { readonly python: Pick<PythonPolicy, 'source' | 'file'> }
  | { readonly reference: ReferenceName };

/** Times the limit that a trace may take by the clock: where a process waits instead of working, or shares its core. */
const WAITING = 10;

/** Processor time of a process, s; `null` where the system has no such file, or the process has ended. */
function processorSeconds(pid: number | string | undefined): number | null {
  try {
    // The name, in parentheses, may hold spaces. Times are in hundredths.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return null;
  }
}

/** Measures processor time of a process and of the Pythons that it starts from now on, s; answers `null` where the system does not. */
function processorClock({ pid }: ChildProcess, startsPython: boolean): () => number | null {
  const pythons = (): readonly string[] =>
    startsPython ? (readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? []) : [];
  try {
    const [before, earlier] = [processorSeconds(pid), pythons()];
    return () => {
      const own = processorSeconds(pid);
      const theirs = pythons().filter((each) => !earlier.includes(each));
      if (own === null || before === null) return null;
      return theirs.reduce((sum, each) => sum + (processorSeconds(each) ?? 0), own - before);
    };
  } catch {
    return () => null;
  }
}

/** Whether this Node lets a process give up a permission that it was started with. */
function canDropPermissions(): boolean {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 26 || (major === 26 && minor >= 5) || (major === 24 && minor >= 21);
}

/** Starts as many processes of trials as there are cores, or traces. */
export function startTrials(limits: Limits, traces: number): readonly TrialProcess[] {
  const width = Math.min(availableParallelism(), traces);
  return Array.from({ length: width }, () => new TrialProcess(limits));
}

/**
 * The process of trials, which starts at once. With a policy in JavaScript it reads the packages' files and no others, starts
 * nothing and loads no addons. With one in Python, which is isolated by itself, it starts the process of that.
 */
export class TrialProcess {
  readonly #limits: Pick<Limits, 'seconds' | 'memoryMiB'>;
  #child: ChildProcess | null;
  #startsPython = false;
  #isReady = false;
  #isClosed = false;

  constructor(limits: Pick<Limits, 'seconds' | 'memoryMiB'>) {
    this.#limits = limits;
    this.#child = this.#start();
  }

  /**
   * Serves a trace; answers why it was stopped where it took too long or too much memory.
   * @param onSent called once the process has the trace
   */
  async run(trial: Trial, policy: PlayedPolicy, onSent = () => {}): Promise<TrialAnswer | Stop> {
    if (this.#isClosed) throw new Error('the process of trials is closed');
    const startsPython = 'python' in policy;
    if (!('reference' in policy) && this.#startsPython !== startsPython) {
      this.#kill();
      this.#startsPython = startsPython;
    }
    this.#child ??= this.#start();
    const child = this.#child;
    let timer: NodeJS.Timeout | undefined;
    const answer = await new Promise<TrialAnswer | Stop>((settle, fail) => {
      child.on('message', (message) => message !== 'ready' && settle(message as TrialAnswer));
      child.once('exit', (code) => {
        if (this.#isReady) settle('memory');
        else fail(new Error(`the process of trials ended with ${code} before it began`));
      });
      child.send({ trial, ...this.#limited(policy) } satisfies TrialJob, onSent);
      const { seconds } = this.#limits;
      const [begunMs, used] = [performance.now(), processorClock(child, startsPython)];
      const look = () => {
        const left = seconds - (used() ?? seconds);
        if (left <= 0 || performance.now() - begunMs >= 1000 * WAITING * seconds) settle('time');
        else timer = setTimeout(look, 1000 * left);
      };
      timer = setTimeout(look, 1000 * seconds);
    }).finally(() => {
      clearTimeout(timer);
      child.removeAllListeners();
    });
    if (typeof answer === 'string') this.#kill();
    return answer;
  }

  #limited(policy: PlayedPolicy) {
    if (!('python' in policy)) return policy;
    const { memoryMiB: isolatedMiB, seconds } = this.#limits;
    // A call may take longer by the clock than the trace by processor time, which is looked at here.
    const waits = { isolatedMiB, seconds: WAITING * seconds };
    return { python: { ...policy.python, ...waits, python: pythonOf(process.env) } };
  }

  close(): void {
    this.#isClosed = true;
    this.#kill();
  }

  #kill(): void {
    this.#child?.kill('SIGKILL');
    this.#child = null;
  }

  #start(): ChildProcess {
    const file = fileURLToPath(new URL('./trial-process.ts', import.meta.url));
    // The folder of all packages: of the checkout, or `node_modules`.
    const packages = resolve(fileURLToPath(import.meta.resolve('@servegym/simulator')), '../../../..');
    const permissions = ['--permission', `--allow-fs-read=${packages}`];
    // Compiled modules, which halve the time of the start. The process gives up writing them before it plays a policy.
    const compiled = canDropPermissions() && getCompileCacheDir();
    const cache = compiled ? join(dirname(compiled), 'servegym-trials') : undefined;
    if (cache !== undefined) {
      mkdirSync(cache, { recursive: true });
      permissions.push(`--allow-fs-read=${cache}`, `--allow-fs-write=${cache}`);
    }
    const child = fork(file, {
      execArgv: [
        ...(this.#startsPython ? [] : permissions),
        ...['--no-warnings', '--experimental-vm-modules'],
        '--disallow-code-generation-from-strings',
        `--max-old-space-size=${this.#limits.memoryMiB}`,
        // MiB for what is new: traces of 20,000 requests then take a twentieth less processor time.
        '--min-semi-space-size=16',
        // A process serves few traces: it takes a twelfth less where V8 compiles less of the engine into one function than by default.
        '--max-inlined-bytecode-size-cumulative=400',
        // And a fifth less on its first four traces where V8 waits twenty times as long as by default before it compiles once more.
        '--invocation-count-for-turbofan=60000',
      ],
      env: {
        ...(this.#startsPython && { PATH: process.env.PATH }),
        ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }),
      },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', process.env.SERVEGYM_DEBUG === '1' ? 'inherit' : 'ignore', 'ipc'],
    });
    this.#isReady = false;
    child.once('message', () => {
      this.#isReady = true;
    });
    return child;
  }
}
