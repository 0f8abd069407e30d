import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const main = join(import.meta.dirname, '../../packages/servegym/src/main.ts');
/** What the program says when it takes requests. */
const READY = /^ServeGym is ready: (\S+)\/web\//m;

/** `servegym serve` in a process of its own, as whoever installs the release starts it. */
export interface ServedEnvironment {
  readonly id: string;
  /** Without a slash at the end. */
  readonly url: string;
  /** From the start of the process to its first healthy answer, ms. */
  readonly healthyMs: number;
  /** The answer to a GET or, with a body, a POST. @throws Error when it is not 2xx */
  ask(path: string, body?: object): Promise<unknown>;
  /** Ends it as a container engine does. Resolves to the exit code. */
  stop(): Promise<number | null>;
}

/** @throws Error with what the program said when it does not start */
export async function serveEnvironment(id: string): Promise<ServedEnvironment> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [main, 'serve', '--env', id, '--host', '127.0.0.1', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SERVEGYM_STORE: 'memory' },
  });
  const ended = once(child, 'exit');
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  let told = '';
  let url: string | undefined;
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    told += text;
    url = READY.exec(told)?.[1];
    if (url) break;
  }
  if (!url) throw new Error(`\`servegym serve --env ${id}\` did not start: ${complaint.trim() || told}`);
  // Nobody reads what it says from here on; it must not wait for a reader.
  child.stdout.resume();
  const ask = async (path: string, body?: object) => {
    const init = body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    const answer = await fetch(`${url}/${path}`, init);
    const text = await answer.text();
    if (!answer.ok)
      throw new Error(`${body ? 'POST' : 'GET'} /${path} was answered ${answer.status}: ${text}`);
    return JSON.parse(text);
  };
  const { status } = (await ask('health')) as { status: string };
  if (status !== 'healthy') throw new Error(`expected /health to say healthy, got ${status}`);
  return {
    id,
    url,
    ask,
    healthyMs: performance.now() - startedAt,
    async stop() {
      child.kill('SIGTERM');
      const [code] = await ended;
      return code as number | null;
    },
  };
}
