// Runs the test files that it is sent, one after the other, and sends what happens in them. It leads a process group,
// in which its test files and all that they start are too. Its messages are those of worker-message.ts.
import { run } from 'node:test';
import { inspect } from 'node:util';

process.on('message', async ({ path }) => {
  for await (const { type, data } of run({ files: [path] })) {
    // What has an entry file happened in the file; the rest is about the file as a whole.
    const isInside = data?.entryFile !== undefined;
    if (type === 'test:stdout' || type === 'test:stderr') send({ type: 'output', text: data.message });
    else if (type === 'test:dequeue' && isInside) send({ type: 'begin', ...placeOf(data) });
    else if (type === 'test:complete') send({ type: isInside ? 'test' : 'end', ...outcomeOf(data) });
    else if (type === 'test:summary' && data.file) send({ type: 'whole' });
  }
  send({ type: 'done' });
});

// The runner lets go of the worker when it has no more files, and when it dies.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

function send(message) {
  if (process.connected) process.send(message);
}

function placeOf({ name, line, column }) {
  return { name, line, column };
}

function outcomeOf(data) {
  const { passed, error, type } = data.details;
  return {
    ...placeOf(data),
    isSuite: type === 'suite',
    isLeftOut: data.skip !== undefined || data.todo !== undefined,
    passed,
    failureType: error?.failureType,
    ending: error?.signal ?? `exit code ${error?.exitCode}`,
    error: error && describe(error.cause ?? error),
  };
}

/** The error with its fields and without Node's own stack frames. */
function describe(error) {
  return inspect(error, { depth: 4 })
    .split('\n')
    .filter((line) => !/^\s+at .*node:/.test(line))
    .join('\n');
}
