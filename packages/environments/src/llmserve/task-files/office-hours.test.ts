import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import officeHours from '../../../examples/office-hours.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { parseServeTask } from './serve-task-schema.ts';

describe('the task of docs/your-own-task.md', () => {
  it('data: is shown as it stands in its file', () => {
    const page = readFileSync(new URL('../../../../../docs/your-own-task.md', import.meta.url), 'utf8');
    const file = readFileSync(new URL('../../../examples/office-hours.ts', import.meta.url), 'utf8');
    assert.ok(page.includes(`\`\`\`ts\n${file}\`\`\`\n`));
  });

  it('can be played', () => {
    const task = parseServeTask(officeHours, 'office-hours.ts');
    const episode = new ServeEpisode(task, 1);
    while (!episode.done) episode.step(task.defaultAction);
    assert.ok(episode.totals.reward > 0.3 * task.windows, `${episode.totals.reward}`);
  });
});
