// Reporter of `node --test-reporter` inside a test file: sends the process that started the file what happens in it, as
// `TestEvent` of run-tests.ts.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { inspect } from 'node:util';

// The end of the runner ends this file with all that it has started. It leads a process group.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
process.channel?.unref();

// biome-ignore lint/correctness/useYield: Node takes a generator, and this one prints nothing
export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type === 'test:dequeue') send({ begins: titleOf(data) });
    else if (type === 'test:complete') send(endOf(data));
    else if (type === 'test:summary') send({ processorSeconds: processorSeconds() });
  }
}

/** Processor time of this process and, on Linux, of the processes that it has waited for. */
function processorSeconds() {
  const { user, system } = process.cpuUsage();
  const stat = '/proc/self/stat';
  const fields = existsSync(stat) ? readFileSync(stat, 'utf8').split(') ')[1].split(' ') : [];
  // `cutime` and `cstime`, in ticks of 10 ms.
  return (user + system) / 1e6 + (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) / 100;
}

function send(event) {
  if (process.connected) process.send(event);
}

function titleOf({ name, file, line, column }) {
  return `${name}  (${relative(process.cwd(), file)}:${line}:${column})`;
}

function endOf(data) {
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

/** The error with its fields and without Node's own stack frames. */
function describe(error) {
  return inspect(error, { depth: 4 })
    .split('\n')
    .filter((line) => !/^\s+at .*node:/.test(line))
    .join('\n');
}
