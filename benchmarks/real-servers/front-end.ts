// CPU time that the front end of a running vLLM takes for a request, a prompt word and a streamed output token: the
// process that tokenizes, answers HTTP and streams, beside the one that runs the model. Linux only. CPU time, so that other
// programs on the machine hardly change it.
//
//   npx node benchmarks/real-servers/front-end.ts --url http://127.0.0.1:8000/v1 --pid PID_OF_VLLM_SERVE
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Matrix, solve } from 'ml-matrix';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8000/v1' },
    pid: { type: 'string' },
    requests: { type: 'string', default: '160' },
  },
});
const { url, pid } = values;
if (pid === undefined) throw new Error('expected --pid, the process id of `vllm serve`');
const requests = Number(values.requests);
/** Prompt words, output tokens, requests in flight. */
const SHAPES = [
  [16, 1, 16],
  [1000, 1, 16],
  [16, 100, 16],
  [1000, 100, 16],
  [250, 50, 16],
  [500, 20, 16],
] as const;
const WORDS = 'time year people way day man thing woman life child world school state family'.split(' ');
const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

const { data } = (await (await fetch(`${url}/models`)).json()) as { data: { id: string }[] };
await send(16, 4);
const rows: number[][] = [];
const seconds: number[] = [];
for (const [words, output, inFlight] of SHAPES) {
  const before = cpuSeconds();
  const startedMs = performance.now();
  let left = requests;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left > 0) {
        left -= 1;
        await send(words, output);
      }
    }),
  );
  const spent = cpuSeconds() - before;
  rows.push([requests, requests * words, requests * output]);
  seconds.push(spent);
  const wallS = (performance.now() - startedMs) / 1000;
  console.log(
    `${words} words in, ${output} tokens out, ${inFlight} in flight: ${((1e3 * spent) / requests).toFixed(2)} ms of CPU a request (${requests} in ${wallS.toFixed(1)} s)`,
  );
}
// Relative errors count.
const design = new Matrix(rows.map((row, i) => row.map((count) => count / seconds[i])));
const transposed = design.transpose();
const [perRequest, perWord, perToken] = solve(
  transposed.mmul(design),
  transposed.mmul(Matrix.ones(rows.length, 1)),
).getColumn(0);
console.log(
  `${(1e3 * perRequest).toFixed(2)} ms a request, ${(1e6 * perWord).toFixed(1)} us a prompt word, ${(1e6 * perToken).toFixed(0)} us an output token`,
);

/** CPU time of the process so far, user and system. */
function cpuSeconds(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

/** Sends a streamed request and reads its answer. */
async function send(words: number, output: number): Promise<void> {
  const prompt = Array.from({ length: words }, () => WORDS[Math.floor(Math.random() * WORDS.length)]).join(
    ' ',
  );
  const response = await fetch(`${url}/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: data[0].id, prompt, max_tokens: output, ignore_eos: true, stream: true }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`expected a stream of tokens, got ${text.slice(0, 200)}`);
}
