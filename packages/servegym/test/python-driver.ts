import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A Python that has the `openenv` package; `npm test` sets it up. */
export const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** A Python process that drives servers with the clients of the `openenv` package. */
export interface PythonDriver {
  /** Calls a function of `python/drive_server.py`. Throws its traceback. */
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what its function returns
  call(name: string, args: Readonly<Record<string, unknown>>): Promise<any>;
  stop(): Promise<void>;
}

export function startPythonDriver(): PythonDriver {
  const child = spawn(python, [join(import.meta.dirname, 'python', 'drive_server.py')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async call(name, args) {
      child.stdin.write(`${JSON.stringify({ do: name, with: args })}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error('Python ended before it answered');
      const { result, error } = JSON.parse(value);
      if (error) throw new Error(error);
      return result;
    },
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}
