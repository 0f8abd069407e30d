import { writeFileSync } from 'node:fs';
import { AGENTS } from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { Command } from 'commander';
import { runCommand } from './run-command.ts';

/** Traces of the training split that every value is tried on, and those that the best are told apart on. */
const TRACES = { few: 4, many: 24 };

/** Tunes the parameters of the policy `rule` for each task, and records them. */
function tuneRulesCommand(): Command {
  return new Command('tune-rules')
    .description('tune the parameters of the policy `rule` on the training split, after rebuild-references')
    .action(() => {
      const tuned: Record<string, object> = {};
      for (const id of llmserve.tasks.shippedIds) {
        const [constant] = llmserve.anchors.configurations(llmserve.tasks.shipped[id]);
        const { rule, meanReturn } = AGENTS.llmserve.tune.rule(llmserve.tasks.shipped[id], constant!, {
          seed: 0,
          traces: TRACES,
        });
        tuned[id] = rule.parameters;
        console.log(`${id}: ${meanReturn.toFixed(1)} with ${JSON.stringify(rule.parameters)}`);
      }
      writeFileSync(AGENTS.llmserve.tunedRules, `${JSON.stringify(tuned, null, 2)}\n`);
    });
}

await runCommand(tuneRulesCommand());
