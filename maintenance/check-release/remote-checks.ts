import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { validateServer } from '@servegym/openenv/validate';
import { passed, type ReleaseCheck } from './release-check.ts';

const run = promisify(execFile);
const main = join(import.meta.dirname, '../../packages/servegym/src/main.ts');

/** Checks of a Space that is up: it conforms, and shows its page. */
export function spaceChecks(url: URL): ReleaseCheck[] {
  return [
    {
      id: 'space.conforms',
      description: `${url.href} meets the required criteria of \`servegym validate\``,
      async run() {
        const report = await validateServer(url, { steps: 3, mostSessions: 4 });
        if (!report.passed) throw new Error(`not met: ${report.summary.failed_criteria.join(', ')}`);
        return passed(`${report.summary.passed_count} criteria`);
      },
    },
    {
      id: 'space.page',
      description: `${url.href}web/ shows the console, and lets Hugging Face frame it`,
      async run() {
        const answer = await fetch(new URL('web/', url));
        if (!answer.ok) throw new Error(`it was answered ${answer.status}`);
        const framing = answer.headers.get('x-frame-options');
        if (framing) throw new Error(`x-frame-options: ${framing} forbids framing`);
        return passed('200');
      },
    },
  ];
}

/** Check that the baseline of a language model runs through. It costs money. */
export function openaiBaselineCheck(): ReleaseCheck {
  return {
    id: 'openai_baseline',
    description: '`servegym evaluate llm --seed 0` runs through',
    async run() {
      if (!process.env.OPENAI_API_KEY) throw new Error('expected OPENAI_API_KEY in the environment');
      await run(process.execPath, [main, 'evaluate', 'llm', '--seed', '0', '--json'], { maxBuffer: 2 ** 26 });
      return passed('exit code 0');
    },
  };
}
