import type { RegisteredEnvironment } from '@servegym/environments';
import type { OpenEnvServer, ResetOptions } from '@servegym/openenv';
import type { BackgroundEnvironment } from './background/background-environment.ts';
import { mountBaselineRoutes } from './baseline-routes.ts';
import { type BaselineParts, baselineSuite } from './baseline-suite.ts';
import { mountInfoRoute } from './info-route.ts';
import { modelBaseline } from './llm-player.ts';

/** Seed of the baselines' episodes. */
const BASELINE_SEED = 0;

/** Agents of the baselines of each environment that has any, and the range in which their source expects the scores. */
const BASELINES: Readonly<Record<string, Pick<BaselineParts, 'agents' | 'expectedRanges'>>> = {
  llmserve: { agents: ['heuristic', 'random', 'default'] },
  fleet: { agents: ['hpa', 'rule', 'static'] },
  // Of InferenceGym's baseline agent on the table that comes with the package.
  inferencegym: {
    agents: ['baseline', 'default', 'random'],
    expectedRanges: { 1: [0.3, 0.4], 2: [0.22, 0.32], 3: [0.18, 0.28] },
  },
};

/** True for an environment with `/baseline` and `/info`. */
export function hasBaselines({ id }: Pick<RegisteredEnvironment, 'id'>): boolean {
  return Object.hasOwn(BASELINES, id);
}

/** `/baseline` and `/info` of an environment. */
export function mountSeedRoutes(
  server: OpenEnvServer<unknown, object, object>,
  entry: RegisteredEnvironment,
  background: BackgroundEnvironment,
): void {
  const { agents, expectedRanges } = BASELINES[entry.id]!;
  const ownTable = server.definition.version.includes('+table.');
  mountBaselineRoutes(server, {
    suite: baselineSuite(server.definition, {
      agents,
      seed: BASELINE_SEED,
      play: background.playBaseline.bind(background),
      ...(expectedRanges && !ownTable && { expectedRanges }),
    }),
    model: modelBaseline(server.definition, (reset: ResetOptions) => entry.initialAction(reset)),
  });
  const tasks = entry.tasks.all();
  mountInfoRoute(server, {
    rewardWeights: Object.fromEntries(tasks.map((task) => [task.id, entry.rewardWeights(task)])),
    episodeLengths: Object.fromEntries(tasks.map((task) => [task.id, entry.steps(task)])),
  });
}
