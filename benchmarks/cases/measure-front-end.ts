import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Matrix, solve } from 'ml-matrix';
import { benchmark, required, timed } from '../harness.ts';

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

export default benchmark({
  what: 'CPU time that the front end of a running vLLM takes for a request, a prompt word and a streamed output token: the process that tokenizes, answers HTTP and streams (`--pid` of `vllm serve`), beside the one that runs the model. CPU time, so that other programs on the machine hardly change it. Linux only.',
  options: { url: 'http://127.0.0.1:8000/v1', pid: required, requests: 160 },
  async *run({ url, pid, requests }) {
    const { data } = (await (await fetch(`${url}/models`)).json()) as { data: { id: string }[] };
    const [{ id }] = data;
    await send(url, id, 16, 4);
    const rows: number[][] = [];
    const seconds: number[] = [];
    for (const [words, output, inFlight] of SHAPES) {
      const before = processorSeconds(pid);
      let left = requests;
      const { wallS } = await timed(() =>
        Promise.all(
          Array.from({ length: inFlight }, async () => {
            while (left > 0) {
              left -= 1;
              await send(url, id, words, output);
            }
          }),
        ),
      );
      const spent = processorSeconds(pid) - before;
      rows.push([requests, requests * words, requests * output]);
      seconds.push(spent);
      yield {
        'words in': words,
        'tokens out': output,
        'in flight': inFlight,
        'CPU ms a request': (1e3 * spent) / requests,
        s: wallS,
      };
    }
    // Relative errors count.
    const design = new Matrix(rows.map((row, i) => row.map((count) => count / seconds[i])));
    const [perRequest, perWord, perToken] = solve(design, Matrix.ones(rows.length, 1)).getColumn(0);
    yield {
      'ms a request': 1e3 * perRequest,
      'us a prompt word': 1e6 * perWord,
      'us an output token': 1e6 * perToken,
    };
  },
});

async function send(url: string, model: string, words: number, output: number): Promise<void> {
  const prompt = Array.from({ length: words }, () => WORDS[Math.floor(Math.random() * WORDS.length)]).join(
    ' ',
  );
  const response = await fetch(`${url}/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, prompt, max_tokens: output, ignore_eos: true, stream: true }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`expected a stream of tokens, got ${text.slice(0, 200)}`);
}

/** Processor time that a process has had, user and system, s. */
function processorSeconds(pid: string): number {
  // The name of the program, in brackets before these fields, may hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  const ticksPerS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return (Number(fields[11]) + Number(fields[12])) / ticksPerS;
}
