import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import OpenAI, { APIError } from 'openai';
import { sendLoad } from './bench-serve-load.ts';
import { type EndpointProcess, startEndpointProcess } from './endpoint-process.ts';
import { python } from './python-driver.ts';

const MODEL = 'Llama-3-8B';

/** Fields of vLLM, of which the client's types know nothing; they are sent as they are. */
const vllm = (fields: { readonly ignore_eos: boolean }): object => fields;

describe('servegym endpoint', () => {
  let endpoint: EndpointProcess;
  let client: OpenAI;
  before(async () => {
    endpoint = await startEndpointProcess('--time-scale', '20', '--deployment', '--max-model-len 120000');
    client = new OpenAI({ baseURL: `${endpoint.url}/v1`, apiKey: 'any', maxRetries: 0 });
  });
  after(async () => assert.equal(await endpoint.stop(), 0));

  const metric = async (series: RegExp): Promise<number> => {
    const text = await (await fetch(`${endpoint.url}/metrics`)).text();
    const line = text.split('\n').find((candidate) => series.test(candidate));
    assert.ok(line, `${series} is not in:\n${text}`);
    return Number(line.split(' ').at(-1));
  };

  /** Asks again until the metric is as wished; a test that waits in vain fails by its file's limit. */
  const until = async (series: RegExp, wish: (value: number) => boolean) => {
    while (!wish(await metric(series)));
  };

  it('streams chat completions to the official client, with usage at the end', async () => {
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: 'user', content: 'Tell me something.' }],
      max_completion_tokens: 12,
      stream: true,
      stream_options: { include_usage: true },
      ...vllm({ ignore_eos: true }),
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.equal(chunks[0].choices[0].delta.role, 'assistant');
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
    assert.equal(text.length, 12 * 4);
    assert.equal(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length, 12);
    assert.equal(chunks.at(-2)!.choices[0].finish_reason, 'length');
    assert.deepEqual(chunks.at(-1)!.choices, []);
    const prompt = Math.ceil('user: Tell me something.\nassistant:'.length / 4);
    assert.deepEqual(chunks.at(-1)!.usage, {
      prompt_tokens: prompt,
      completion_tokens: 12,
      total_tokens: prompt + 12,
    });
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  });

  it('answers in one piece, and with several choices', async () => {
    const answer = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: 'user', content: 'Hello' }],
      n: 3,
      max_tokens: 2000,
    });
    assert.deepEqual(
      answer.choices.map(({ index }) => index),
      [0, 1, 2],
    );
    const tokens = answer.choices.map(({ message }) => message.content!.length / 4);
    assert.equal(answer.usage!.completion_tokens, tokens[0] + tokens[1] + tokens[2]);
    for (const { finish_reason } of answer.choices) assert.equal(finish_reason, 'stop');
    assert.notEqual(answer.choices[0].message.content, answer.choices[1].message.content);
  });

  it('completes texts, arrays of texts and token ids, and keeps to seed and stop', async () => {
    const one = await client.completions.create({
      model: MODEL,
      prompt: [1, 2, 3, 4, 5],
      max_tokens: 40,
      seed: 7,
      ...vllm({ ignore_eos: true }),
    });
    assert.equal(one.usage!.prompt_tokens, 5);
    const word = one.choices[0].text.slice(40, 44);
    const [again, stopped, many] = await Promise.all([
      client.completions.create({
        model: MODEL,
        prompt: 'x',
        max_tokens: 40,
        seed: 7,
        ...vllm({ ignore_eos: true }),
      }),
      client.completions.create({
        model: MODEL,
        prompt: 'x',
        max_tokens: 40,
        seed: 7,
        stop: word,
        ...vllm({ ignore_eos: true }),
      }),
      client.completions.create({ model: MODEL, prompt: ['one', 'two words'], n: 2, max_tokens: 3 }),
    ]);
    assert.equal(again.choices[0].text, one.choices[0].text);
    assert.equal(stopped.choices[0].finish_reason, 'stop');
    assert.equal(stopped.choices[0].text, one.choices[0].text.slice(0, one.choices[0].text.indexOf(word)));
    assert.deepEqual(
      many.choices.map(({ index }) => index),
      [0, 1, 2, 3],
    );
    assert.equal(many.usage!.prompt_tokens, 1 + 3);
  });

  it('answers the Responses API, whole and in typed events', async () => {
    const asked = {
      model: MODEL,
      input: 'Tell me a story',
      instructions: 'Be brief',
      ...vllm({ ignore_eos: true }),
    };
    const whole = await client.responses.create({ ...asked, max_output_tokens: 12 });
    assert.equal(whole.output_text.length, 4 * 12);
    assert.deepEqual([whole.status, whole.incomplete_details?.reason], ['incomplete', 'max_output_tokens']);
    assert.equal(whole.usage!.output_tokens, 12);
    const [message] = whole.output;
    assert.equal(message.type, 'message');
    const input = [
      { role: 'user' as const, content: [{ type: 'input_text' as const, text: 'Hello' }] },
      { role: 'assistant' as const, content: 'Hi' },
    ];
    const stream = await client.responses.create({ model: MODEL, input, stream: true });
    const types: string[] = [];
    let text = '';
    for await (const event of stream) {
      assert.equal(event.sequence_number, types.length);
      types.push(event.type);
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.completed') {
        assert.equal(event.response.status, 'completed');
        assert.equal(event.response.usage!.output_tokens * 4, text.length);
      }
    }
    const delta = 'response.output_text.delta';
    assert.deepEqual(
      types.filter((type, i) => type !== delta || types[i - 1] !== delta),
      [
        ...['created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta'],
        ...['output_text.done', 'content_part.done', 'output_item.done', 'completed'],
      ].map((name) => `response.${name}`),
    );
    const previous = client.responses.create({ model: MODEL, input: 'x', previous_response_id: 'resp_1' });
    await assert.rejects(previous, { status: 400, param: 'previous_response_id' });
  });

  it('says at its address what it is', async () => {
    const answer = await (await fetch(endpoint.url)).json();
    assert.equal(answer.base_url, `${endpoint.url}/v1`);
    assert.match(answer.description, new RegExp(`simulated vLLM that serves ${MODEL}`));
  });

  it('is used by the official Python client', async () => {
    const script = join(import.meta.dirname, 'python', 'openai_endpoint.py');
    const { stdout } = await promisify(execFile)(python, [script, `${endpoint.url}/v1`, MODEL]);
    assert.deepEqual(JSON.parse(stdout), {
      models: [MODEL, 'a100-40gb-llama-3-8b'],
      streamed: 9,
      usage: 9,
      finish_reason: 'length',
      whole: 'stop',
      error: ['NotFoundError', 'model_not_found'],
    });
  });

  it('refuses what it cannot serve, in the shape of the API', async () => {
    const refused = async (body: object, status: number, code: string, param: string | null) => {
      const sent = client.post('/completions', { body: { model: MODEL, prompt: 'x', ...body } });
      await assert.rejects(sent, (error) => {
        assert.ok(error instanceof APIError);
        assert.deepEqual([error.status, error.code, error.param], [status, code, param], error.message);
        return true;
      });
    };
    await refused({ model: 'gpt-4.1-mini' }, 404, 'model_not_found', 'model');
    await refused({ prompt: 5 }, 400, 'invalid_value', 'prompt');
    await refused({ max_tokens: 0 }, 400, 'invalid_value', 'max_tokens');
    await refused({ max_tokens: 1_000_000 }, 400, 'context_length_exceeded', 'max_tokens');
    await refused({ priority: 9 }, 400, 'invalid_value', 'priority');
    await refused({ prompt: Array(20).fill('x'), n: 100 }, 400, 'invalid_value', 'n');
    await refused({ logprobs: 1 }, 400, 'unsupported_parameter', 'logprobs');
    await refused(
      { response_format: { type: 'json_object' } },
      400,
      'unsupported_parameter',
      'response_format',
    );
    const broken = await fetch(`${endpoint.url}/v1/completions`, { method: 'POST', body: '{"prompt":' });
    assert.equal(broken.status, 400);
    assert.equal((await broken.json()).error.code, 'invalid_json');
    const keys = `{${Array.from({ length: 1001 }, (_, i) => `"k${i}":0`).join(',')}}`;
    const entries = (count: number) => `{"prompt":[${'{},'.repeat(count)}0]}`;
    for (const [body, status, code] of [
      [keys, 400, 'json_over_limit'],
      [entries(600_000), 400, 'json_over_limit'],
      [entries(400_000), 400, 'invalid_value'],
      [`"${'x'.repeat(16 * 2 ** 20)}"`, 413, 'body_too_large'],
    ] as const) {
      const refusedBody = await fetch(`${endpoint.url}/v1/completions`, { method: 'POST', body });
      assert.deepEqual([refusedBody.status, (await refusedBody.json()).error.code], [status, code]);
    }
    const messages = `{"messages":[${'0,'.repeat(20_000)}0]}`;
    const chat = await fetch(`${endpoint.url}/v1/chat/completions`, { method: 'POST', body: messages });
    assert.match((await chat.json()).error.message, /`messages`: .*10000/);
    const unknown = await fetch(`${endpoint.url}/v1/embeddings`, { method: 'POST', body: '{}' });
    assert.equal(unknown.status, 404);
    assert.equal((await unknown.json()).error.type, 'not_found_error');
  });

  it('serves the load of a load generator, every token of it', async () => {
    const totals = async () => ({
      prompt: await metric(/^vllm:prompt_tokens_total\{/),
      generation: await metric(/^vllm:generation_tokens_total\{/),
      finished: await metric(/finished_reason="length"/),
    });
    const before = await totals();
    const load = Array.from({ length: 120 }, (_, i) => ({
      atMs: i * 2,
      inputTokens: 20 + ((i * 37) % 700),
      outputTokens: 1 + ((i * 13) % 60),
    }));
    const results = await sendLoad(endpoint.url, MODEL, load);
    assert.deepEqual(
      results.map(({ promptTokens, outputTokens }) => [promptTokens, outputTokens]),
      load.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens]),
    );
    const after = await totals();
    const sum = (key: 'inputTokens' | 'outputTokens') => load.reduce((total, one) => total + one[key], 0);
    assert.deepEqual(after, {
      prompt: before.prompt + sum('inputTokens'),
      generation: before.generation + sum('outputTokens'),
      finished: before.finished + load.length,
    });
    for (const { ttftMs } of results) assert.ok(ttftMs > 0);
  });

  it('frees the KV blocks of a client that leaves', async () => {
    const stream = await client.completions.create({
      model: MODEL,
      prompt: Array.from({ length: 4000 }, (_, i) => i),
      max_tokens: 100_000,
      stream: true,
      ...vllm({ ignore_eos: true }),
    });
    for await (const _ of stream) break;
    await until(/^vllm:num_requests_running\{/, (running) => running === 0);
    assert.equal(await metric(/^vllm:kv_cache_usage_perc\{/), 0);
    assert.equal(await metric(/finished_reason="abort"/), 1);

    const left = request(`${endpoint.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    left.on('error', () => {});
    left.end(JSON.stringify({ prompt: 'x', max_tokens: 100_000, ignore_eos: true }));
    await until(/^vllm:num_requests_running\{/, (running) => running === 1);
    left.destroy();
    await until(/^vllm:num_requests_running\{/, (running) => running === 0);
    assert.equal(await metric(/finished_reason="abort"/), 2);
  });

  it('finds the prefix of a prompt cached', async () => {
    const prompt = 'a system prompt that all requests share '.repeat(40);
    for (const question of ['one?', 'two?']) {
      await client.completions.create({ model: MODEL, prompt: prompt + question, max_tokens: 2 });
    }
    const hits = await metric(/^vllm:prefix_cache_hits_total\{/);
    assert.equal(hits, 16 * Math.floor(prompt.length / 64));
  });

  it('changes its knobs while it serves', async () => {
    const knobs = async (changes?: object) => {
      const answer = await fetch(`${endpoint.url}/admin/knobs`, {
        method: changes ? 'PATCH' : 'GET',
        ...(changes && { body: JSON.stringify(changes) }),
      });
      return { status: answer.status, body: await answer.json() };
    };
    const before = (await knobs()).body;
    const { body } = await knobs({ max_num_seqs: 1, kv_budget_fraction: 0.5 });
    assert.equal(body.knobs.max_num_seqs, 1);
    assert.equal(body.knobs.weights, 'FP16');
    assert.ok(Math.abs(body.engines[0].kv_blocks_total / before.engines[0].kv_blocks_total - 0.5) < 0.001);
    const streams = await Promise.all(
      [0, 1].map(() =>
        client.completions.create({
          model: MODEL,
          prompt: 'x',
          max_tokens: 50_000,
          stream: true,
          ...vllm({ ignore_eos: true }),
        }),
      ),
    );
    await until(/^vllm:num_requests_waiting\{/, (waiting) => waiting === 1);
    await until(/^vllm:num_requests_running\{/, (running) => running === 1);
    for (const stream of streams) stream.controller.abort();
    assert.equal((await knobs({ split: true })).status, 400);
    assert.equal((await knobs({ weights: 'FP64' })).status, 400);
    const unknown = await knobs({ batch_cap: 4 });
    assert.match(unknown.body.error.message, /batch_cap/);
    assert.deepEqual((await knobs()).body.knobs, {
      ...before.knobs,
      max_num_seqs: 1,
      kv_budget_fraction: 0.5,
    });
    await knobs(before.knobs);
  });

  it('tells its metrics by the names and labels of vLLM', async () => {
    const text = await (await fetch(`${endpoint.url}/metrics`)).text();
    for (const name of [
      'num_requests_running',
      'num_requests_waiting',
      'kv_cache_usage_perc',
      'prompt_tokens_total',
      'generation_tokens_total',
      'num_preemptions_total',
      'time_to_first_token_seconds_bucket',
      'inter_token_latency_seconds_count',
      'request_time_per_output_token_seconds_sum',
      'e2e_request_latency_seconds_count',
      'request_queue_time_seconds_count',
      'iteration_tokens_total_count',
    ]) {
      assert.match(
        text,
        new RegExp(`^vllm:${name}\\{.*model_name="${MODEL}",engine="0".*\\} \\d`, 'm'),
        name,
      );
    }
    const served = /^vllm:request_generation_tokens_sum\{.*\} (\d+)$/m.exec(text)![1];
    assert.ok(Number(served) > 0);
    assert.match(text, /^# TYPE vllm:time_to_first_token_seconds histogram$/m);
    assert.doesNotMatch(text, /^# TYPE \S+_total gauge$/m);
    assert.match(text, /^vllm:time_to_first_token_seconds_bucket\{le="\+Inf"|^vllm:.*le="\+Inf"/m);
  });
});

describe('the process of servegym endpoint', () => {
  it("has the model's context, as far as the KV pool holds it, unless it is told otherwise", async (t) => {
    const contextOf = async (...args: string[]) => {
      const endpoint = await startEndpointProcess(...args);
      t.after(() => endpoint.stop());
      const { data } = await (await fetch(`${endpoint.url}/v1/models`)).json();
      return data[0].max_model_len;
    };
    const [model, pool, told] = await Promise.all([
      contextOf('--profile', 'a100-40gb-llama-3-8b'),
      contextOf('--profile', 'a100-40gb-llama-3-8b', '--deployment', '--gpu-memory-utilization 0.425'),
      contextOf('--deployment', '--max-model-len 12000'),
    ]);
    assert.deepEqual([model, told], [8192, 12_000]);
    assert.ok(pool > 0 && pool < 8192, `${pool}`);
  });

  it('answers no name but its own, and no page of another site', async (t) => {
    const endpoint = await startEndpointProcess('--allowed-hosts', 'llm.example');
    t.after(() => endpoint.stop());
    const ask = async (headers: Record<string, string>) => {
      const asked = request(`${endpoint.url}/v1/models`, { headers }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      const body = (await json(answer)) as { readonly error?: { readonly code: string } };
      return [answer.statusCode, body.error?.code];
    };
    assert.deepEqual(await ask({ host: 'rebound.evil.example:8000' }), [403, 'host_refused']);
    assert.deepEqual(await ask({ origin: 'https://evil.example' }), [403, 'origin_refused']);
    const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' };
    assert.deepEqual(await ask(image), [403, 'origin_refused']);
    for (const headers of [{ host: 'llm.example' }, { host: 'localhost:8000' }])
      assert.deepEqual(await ask(headers), [200, undefined]);
  });

  it('serves the adapters of its line by their names, which share no KV', async () => {
    const flags = '--enable-lora --max-loras 2 --lora-modules sql=/sql chat=/chat';
    const endpoint = await startEndpointProcess('--time-scale', '20', '--deployment', flags);
    const { data } = await (await fetch(`${endpoint.url}/v1/models`)).json();
    const last = data.slice(-2).map(({ id, parent }: Record<string, string>) => [id, parent]);
    assert.deepEqual(last, [
      ['sql', MODEL],
      ['chat', MODEL],
    ]);
    const found: number[] = [];
    for (const model of ['sql', 'sql', 'chat', MODEL]) {
      const body = JSON.stringify({ model, prompt: Array(64).fill(7), max_tokens: 2, ignore_eos: true });
      const headers = { 'content-type': 'application/json' };
      await (await fetch(`${endpoint.url}/v1/completions`, { method: 'POST', headers, body })).text();
      const text = await (await fetch(`${endpoint.url}/metrics`)).text();
      found.push(Number(/^vllm:prefix_cache_hits_total\{.*\} (\d+)$/m.exec(text)![1]));
    }
    assert.deepEqual(found, [0, 48, 48, 48]);
    assert.equal(await endpoint.stop(), 0);
  });

  it('starts replicas, each with metrics of its own', async () => {
    const endpoint = await startEndpointProcess('--replicas', '2', '--time-scale', '20');
    const urls = [endpoint.url, ...endpoint.others];
    assert.equal(urls.length, 2);
    const body = JSON.stringify({ prompt: 'x', max_tokens: 3, ignore_eos: true });
    const headers = { 'content-type': 'application/json' };
    await (await fetch(`${urls[1]}/v1/completions`, { method: 'POST', headers, body })).text();
    const tokens = await Promise.all(
      urls.map(async (url) => {
        const text = await (await fetch(`${url}/metrics`)).text();
        return Number(/^vllm:generation_tokens_total\{.*\} (\d+)$/m.exec(text)![1]);
      }),
    );
    assert.deepEqual(tokens, [0, 3]);
    assert.equal(await endpoint.stop(), 0);
  });

  it('lets in those with a key, and everybody to its health', async () => {
    const endpoint = await startEndpointProcess('--api-key', 'sesame', '--served-model-name', 'mine');
    const models = (key: string) =>
      fetch(`${endpoint.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    const refused = await models('simsim');
    assert.equal(refused.status, 401);
    assert.equal((await refused.json()).error.code, 'invalid_api_key');
    const listed = await (await models('sesame')).json();
    assert.equal(listed.data[0].id, 'mine');
    assert.equal((await fetch(`${endpoint.url}/admin/knobs`)).status, 401);
    assert.equal((await fetch(`${endpoint.url}/health`)).status, 200);
    assert.equal(await endpoint.stop(), 0);
  });

  it('finishes what streams when it is told to stop', async () => {
    const endpoint = await startEndpointProcess('--time-scale', '20');
    const client = new OpenAI({ baseURL: `${endpoint.url}/v1`, apiKey: 'any', maxRetries: 0 });
    const stream = await client.completions.create({
      model: MODEL,
      prompt: 'x',
      max_tokens: 500,
      stream: true,
      ...vllm({ ignore_eos: true }),
    });
    let tokens = 0;
    let stopped: Promise<number | null> | undefined;
    for await (const chunk of stream) {
      stopped ??= endpoint.stop();
      tokens += chunk.choices[0].text.length / 4;
    }
    assert.equal(tokens, 500);
    assert.equal(await stopped, 0);
  });

  it('says what is wrong with its options', async () => {
    await assert.rejects(startEndpointProcess('--profile', 'nothing-like-it'), /nothing-like-it/);
    await assert.rejects(startEndpointProcess('--split'), /split/);
    await assert.rejects(startEndpointProcess('--time-scale', '0'), /time-scale/);
  });
});
