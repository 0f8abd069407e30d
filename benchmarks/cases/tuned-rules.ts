import { writeFileSync } from 'node:fs';
import { AGENTS } from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { benchmark } from '../harness.ts';

/** Traces of the training split that every value is tried on, and those that the best are told apart on. */
const TRACES = { few: 4, many: 24 };

export default benchmark({
  what: 'The parameters of the policy `rule` of llmserve, tuned on the training split of each task. Writes them into the checkout. After the case `references`.',
  options: {},
  async *run() {
    const tuned: Record<string, object> = {};
    for (const id of llmserve.tasks.shippedIds) {
      const [constant] = llmserve.anchors.configurations(llmserve.tasks.shipped[id]);
      const { rule, meanReturn } = await AGENTS.llmserve.tune.rule(llmserve.tasks.shipped[id], constant!, {
        seed: 0,
        traces: TRACES,
      });
      tuned[id] = rule.parameters;
      yield { task: id, 'mean return': meanReturn, ...rule.parameters };
    }
    writeFileSync(AGENTS.llmserve.tunedRules, `${JSON.stringify(tuned, null, 2)}\n`);
  },
});
