import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inferencegym, llmserve, type ServeAction } from '@servegym/environments';
import fc from 'fast-check';
import { jsonIn, llmSettings } from './llm-client.ts';
import { type LlmAnswerer, LlmPolicy, type LlmPolicyOptions } from './llm-policy.ts';
import { playEpisode } from './policy.ts';

const task = llmserve.tasks.shipped.static_workload;
const good: ServeAction = { ...task.defaultAction, batch_cap: 77 };

/** Answers with the next of `answers`, and with the last one from then on. */
class Script implements LlmAnswerer {
  readonly conversations: { role: string; content: string }[][] = [];
  readonly schemas: Record<string, unknown>[] = [];
  readonly #answers: readonly (string | null)[];
  constructor(...answers: readonly (string | null)[]) {
    this.#answers = answers;
  }
  async ask(...[messages, schema]: Parameters<LlmAnswerer['ask']>): Promise<string | null> {
    this.conversations.push(messages.map((message) => ({ ...message })));
    this.schemas.push(schema);
    return this.#answers[Math.min(this.conversations.length, this.#answers.length) - 1];
  }
}

async function play(script: Script, options?: LlmPolicyOptions) {
  const policy = new LlmPolicy(llmserve.definition(), script, options);
  const plan = { taskId: task.id, seed: 1, initialAction: task.defaultAction };
  const played = await playEpisode(llmserve.definition().create(), policy, plan);
  return { ...played, answers: policy.answers };
}

describe('the policy of a language model', () => {
  it('sets the knobs that the model answers with', async () => {
    const script = new Script(JSON.stringify(good));
    const { actions, answers } = await play(script);
    assert.equal(actions.length, task.windows);
    for (const action of actions) assert.deepEqual(action, good);
    assert.deepEqual(answers, { asked: task.windows, invalid: 0, repaired: 0, keptLast: 0 });
  });

  it('tells the model the task, the units and ranges, and the last windows with what they earned', async () => {
    const script = new Script(JSON.stringify(good));
    await play(script, { history: 3 });
    const [system, user] = script.conversations[10];
    for (const part of [
      'batch_cap (integer, 1 to 512): Most sequences',
      'quantization_tier (one of ["FP16","INT8","INT4"])',
      'p99_ttft_ms, ',
      task.description,
      '0.4 x tokens emitted',
      'quality_value x (1 - quality), quality FP16 1, INT8 0.9',
      'stops service for',
      'interactive_ttft_ms:500',
      'kv_tokens:',
    ]) {
      assert.ok(system!.content.includes(part), `${part} is not in:\n${system!.content}`);
    }
    const rows = user!.content.split('\n').filter((line) => /^\d+ \|/.test(line));
    assert.deepEqual(
      rows.map((row) => Number.parseInt(row)),
      [7, 8, 9, 10],
    );
    for (const row of rows.slice(0, 3)) {
      const [, seen, set, reward] = row.split(' | ');
      assert.equal(seen!.split(' ').length, 15);
      assert.equal(set, '77 0.5 0 FP16 0 0');
      assert.match(reward!, /^-?[\d.]+$/);
    }
    assert.match(rows[3]!, / \| 77 0\.5 0 FP16 0 0 \| \?$/);
    assert.deepEqual(Object.keys(script.schemas[0].properties as object), script.schemas[0].required);
    assert.equal(script.schemas[0].additionalProperties, false);
  });

  it('stays below 100,000 tokens in an episode of 120 windows', async () => {
    const script = new Script(JSON.stringify(good));
    await play(script);
    const characters = script.conversations.map((each) => each.map(({ content }) => content).join('').length);
    const perCall = characters.reduce((sum, each) => sum + each, 0) / characters.length;
    // Tokenizers of such models take about 3.3 characters a token or more on such text: an estimate.
    assert.ok((120 * perCall) / 3.3 < 100_000, `${perCall} characters a call`);
  });

  it('names the knobs that a task masks, and leaves them one value', async () => {
    const script = new Script('{}');
    const policy = new LlmPolicy(inferencegym.definition(), script);
    policy.reset({ taskId: 1, seed: 0 });
    const environment = inferencegym.definition().create();
    const { observation } = await environment.reset({ task_id: 1, seed: 0 });
    const previousAction = {
      kv_budget: 1,
      spec_length: 0,
      batch_size: 32,
      prefill_disagg: false,
      quant_tier: 0,
    };
    await policy.act({ observation, reward: null, previousAction: previousAction as never, stepIndex: 0 });
    const system = script.conversations[0][0].content;
    assert.match(system, /stay at {"spec_length":0,"prefill_disagg":false,"quant_tier":0}\./);
    const properties = script.schemas[0].properties as Record<string, { enum?: unknown[] }>;
    assert.deepEqual(properties.quant_tier!.enum, [0]);
    assert.equal(properties.kv_budget!.enum, undefined);
  });

  it('does not let a model turn a masked knob: the answer goes back once, and then the last action stays', async () => {
    const masking = { ...task, id: 'llm_masked', maskedKnobs: ['quantization_tier', 'batch_cap'] as const };
    llmserve.tasks.add(masking);
    const disobedient = JSON.stringify({
      ...task.defaultAction,
      kv_budget_fraction: 0.5,
      quantization_tier: 'INT4',
    });
    const obedient = JSON.stringify({ ...task.defaultAction, kv_budget_fraction: 0.5 });
    const plan = { taskId: masking.id, seed: 1, initialAction: task.defaultAction };
    const repaired = new Script(disobedient, obedient);
    const policy = new LlmPolicy(llmserve.definition(), repaired);
    const played = await playEpisode(llmserve.definition().create(), policy, plan);
    for (const action of played.actions) assert.deepEqual(action, JSON.parse(obedient));
    assert.deepEqual(policy.answers, { asked: task.windows, invalid: 1, repaired: 1, keptLast: 0 });
    assert.match(
      repaired.conversations[1][3].content,
      /^That is no valid action: quantization_tier: Expected "FP16", .* got "INT4"/,
    );
    const stubborn = new LlmPolicy(llmserve.definition(), new Script(disobedient));
    const { actions } = await playEpisode(llmserve.definition().create(), stubborn, plan);
    for (const action of actions) assert.deepEqual(action, task.defaultAction);
    assert.equal(stubborn.answers.keptLast, task.windows);
  });

  it('gives an invalid answer back once, with what is wrong with it', async () => {
    const script = new Script('Let me think.', JSON.stringify(good));
    const { actions, answers } = await play(script);
    assert.deepEqual(actions[0], good);
    assert.deepEqual(answers, { asked: task.windows, invalid: 1, repaired: 1, keptLast: 0 });
    const repair = script.conversations[1];
    assert.equal(repair.length, 4);
    assert.match(repair[3].content, /^That is no valid action: /);

    const tooLarge = new Script(JSON.stringify({ ...good, batch_cap: 5000 }), JSON.stringify(good));
    await play(tooLarge);
    assert.match(tooLarge.conversations[1][3].content, /batch_cap: .*512/);
  });

  it('keeps the last valid action when no other comes, and counts it', async () => {
    const { actions, answers } = await play(new Script(JSON.stringify(good), 'no', 'no'));
    for (const action of actions) assert.deepEqual(action, good);
    const kept = task.windows - 1;
    assert.deepEqual(answers, { asked: task.windows, invalid: 2 * kept, repaired: 0, keptLast: kept });
    const silent = await play(new Script(null));
    for (const action of silent.actions) assert.deepEqual(action, task.defaultAction);
    assert.deepEqual(silent.answers, {
      asked: task.windows,
      invalid: 0,
      repaired: 0,
      keptLast: task.windows,
    });
  });

  it('asks before every n-th window only, if it is told to', async () => {
    const script = new Script(JSON.stringify(good));
    const { answers } = await play(script, { decideEvery: 7, history: 2 });
    assert.equal(answers.asked, Math.ceil(task.windows / 7));
    assert.equal(script.conversations.length, answers.asked);
    assert.match(script.conversations[1][1].content, /^6 \| /m);
  });
});

describe('the JSON in an answer', () => {
  it('is found alone, in a fence and behind thoughts', () => {
    const text = JSON.stringify(good);
    for (const answer of [text, `\`\`\`json\n${text}\n\`\`\``, `I set {this}: ${text}. Done {sic}.`]) {
      assert.deepEqual(jsonIn(answer), good);
    }
    assert.deepEqual(jsonIn('first {"a": 1}, rather {"a": "}{"}'), { a: '}{' });
    for (const answer of ['', 'none', '{', '{"a": ', '}{']) assert.equal(jsonIn(answer), undefined);
  });

  it('is found whatever stands around it', () => {
    fc.assert(
      fc.property(fc.object(), fc.string(), fc.string(), (value, before, after) => {
        fc.pre(!/[{}"\\]/.test(before + after));
        const text = JSON.stringify(value);
        assert.deepEqual(jsonIn(`${before}x${text}${after}x`), JSON.parse(text));
      }),
    );
  });
});

describe('the settings of a model', () => {
  it('come from the environment, and what is given wins', () => {
    assert.deepEqual(llmSettings({ OPENAI_API_KEY: 'k' }), {
      baseUrl: 'https://api.openai.com/v1',
      apiKey: 'k',
      model: 'gpt-4.1-mini',
    });
    const variables = { HF_TOKEN: 't', API_BASE_URL: 'http://a/v1/', MODEL_NAME: 'm' };
    assert.deepEqual(llmSettings(variables), { baseUrl: 'http://a/v1', apiKey: 't', model: 'm' });
    assert.equal(llmSettings(variables, { model: 'other' }).model, 'other');
    assert.equal(llmSettings({}, { baseUrl: 'http://localhost:1/v1' }).apiKey, 'none');
    assert.throws(() => llmSettings({}), { code: 'LLM_SETTINGS', message: /OPENAI_API_KEY/ });
    assert.throws(() => llmSettings({}, { baseUrl: 'http://me:pw@localhost' }), {
      code: 'LLM_SETTINGS',
      message: /^(?!.*pw@).*without user and password/,
    });
    assert.throws(() => llmSettings({}, { baseUrl: 'localhost' }), { code: 'LLM_SETTINGS' });
  });
});
