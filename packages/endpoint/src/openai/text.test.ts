import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chatPrompt, planReply, prefixIds, promptTokens, type ReplyLimits } from './text.ts';

const limits: ReplyLimits = { maxTokens: 100, minTokens: 0, ignoreEos: true, stop: [] };

describe('a reply', () => {
  it('counts as many tokens as it has, whatever its pieces', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 300 }), fc.nat(), (seed, maxTokens, cut) => {
        const reply = planReply(seed, { ...limits, maxTokens });
        const text = reply.text(0, reply.tokens);
        assert.equal(promptTokens(text), maxTokens);
        const middle = cut % (maxTokens + 1);
        assert.equal(reply.text(0, middle) + reply.text(middle, maxTokens), text);
      }),
    );
  });

  it('ends by itself with `stop`, or at its limit with `length`', () => {
    const reasons = Array.from({ length: 50 }, (_, seed) =>
      planReply(seed, { ...limits, ignoreEos: false, maxTokens: 180 }),
    );
    for (const { tokens, finishReason } of reasons) {
      assert.equal(finishReason, tokens < 180 ? 'stop' : finishReason);
      assert.ok(tokens >= 1 && tokens <= 180);
    }
    assert.deepEqual(new Set(reasons.map(({ finishReason }) => finishReason)), new Set(['stop', 'length']));
    assert.equal(planReply(3, limits).finishReason, 'length');
    assert.ok(planReply(3, { ...limits, ignoreEos: false, maxTokens: 5000, minTokens: 900 }).tokens >= 900);
  });

  it('ends before a stop text, which is no part of it, but not before `minTokens`', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 0, max: 390 }),
        fc.integer({ min: 1, max: 9 }),
        (seed, at, length) => {
          const whole = planReply(seed, limits).text(0, 100);
          const stop = whole.slice(at, at + length);
          const reply = planReply(seed, { ...limits, stop: [stop] });
          assert.equal(reply.finishReason, 'stop');
          let text = '';
          for (let i = 0; i < reply.tokens; i++) text += reply.text(i, i + 1);
          assert.equal(text, whole.slice(0, whole.indexOf(stop)));
          const later = planReply(seed, { ...limits, stop: [stop], minTokens: 50 });
          assert.ok(later.tokens >= 50);
        },
      ),
    );
  });
});

describe('prompts', () => {
  it('that begin alike share the ids of the blocks they share, and no others', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 0, maxLength: 400 }),
        fc.string({ minLength: 1, maxLength: 100 }),
        fc.string({ minLength: 1, maxLength: 100 }),
        (common, one, other) => {
          fc.pre(one[0] !== other[0]);
          const [a, b] = [prefixIds(common + one, 4), prefixIds(common + other, 4)];
          const shared = Math.floor(common.length / 16);
          assert.deepEqual(a.slice(0, shared), b.slice(0, shared));
          assert.equal(
            new Set([...a.slice(shared), ...b.slice(shared)]).size,
            a.length + b.length - 2 * shared,
          );
          for (const id of a) assert.ok(Number.isSafeInteger(id) && id >= 0);
        },
      ),
    );
  });

  it('of token ids count their ids', () => {
    assert.equal(promptTokens([5, 6, 7]), 3);
    assert.equal(prefixIds(Array(33).fill(1), 16).length, 2);
    assert.equal(promptTokens(''), 1);
    assert.equal(promptTokens('five!'), 2);
  });

  it('of a conversation that goes on begin with the one before, without the start of its reply', () => {
    const first = [{ role: 'user', content: 'hello' }];
    const reply = ' the and for';
    const next = [
      ...first,
      { role: 'assistant', content: reply },
      { role: 'user', content: [{ type: 'text', text: 'more' }] },
    ];
    assert.equal(chatPrompt(first), 'user: hello\nassistant:');
    assert.ok(chatPrompt(next).startsWith(chatPrompt(first)));
    assert.throws(() => chatPrompt([{ role: 'user', content: [{ type: 'image_url' }] }]), {
      code: 'unsupported_content',
    });
  });
});
