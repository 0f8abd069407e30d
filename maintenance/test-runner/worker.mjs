// Runs the test files that it is sent, one after the other, and sends what happens in them (`WorkerMessage` of
// file-runner.ts). It leads a process group, in which its test files and all that they start are too.
import { relative } from 'node:path';
import { run } from 'node:test';
import { inspect } from 'node:util';

process.on('message', async (path) => {
  let isWhole = false;
  for await (const { type, data } of run({ files: [path] })) {
    // Node runs the file as a test of that name around those in it.
    const isInside = data?.name !== path;
    if (type === 'test:stdout' || type === 'test:stderr') send({ output: data.message });
    else if (type === 'test:dequeue' && isInside) send({ begins: titleOf(data) });
    else if (type === 'test:complete') send(isInside ? testEnd(data) : fileEnd(data));
    else if (type === 'test:summary' && data.file) isWhole = true;
  }
  send({ isDone: true, isWhole });
});

// The runner disconnects the worker when it has no more files, and when it dies.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

function send(message) {
  if (process.connected) process.send(message);
}

function titleOf({ name, file, line, column }) {
  return `${name}  (${relative(process.cwd(), file)}:${line}:${column})`;
}

function testEnd(data) {
  const { passed, error, type } = data.details;
  const title = titleOf(data);
  const end = { ends: title };
  if (data.skip !== undefined || data.todo !== undefined)
    return { ...end, failure: `${title} is skipped or to do` };
  if (type === 'suite' && (passed || error.failureType === 'subtestsFailed')) return end;
  if (passed) return { ...end, passed: 1 };
  if (error.failureType === 'cancelledByParent') return { ...end, failure: `${title} was cancelled` };
  if (error.failureType === 'subtestsFailed') return { ...end, failure: `${title} has a test that failed` };
  return { ...end, failure: `${title}\n${describe(error.cause ?? error).replace(/^/gm, '    ')}` };
}

function fileEnd({ details: { passed, error } }) {
  if (passed || error.failureType === 'subtestsFailed') return {};
  return { failure: `The file ended with ${error.signal ?? `exit code ${error.exitCode}`}` };
}

/** The error with its fields and without Node's own stack frames. */
function describe(error) {
  return inspect(error, { depth: 4 })
    .split('\n')
    .filter((line) => !/^\s+at .*node:/.test(line))
    .join('\n');
}
