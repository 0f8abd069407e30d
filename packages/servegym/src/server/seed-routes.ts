import { listPolicies } from '@servegym/agents';
import {
  EPISODE_STEPS,
  type FleetAction,
  type FleetObservation,
  type FleetState,
  findServeTask,
  fleetTasks,
  GYM_TASK_IDS,
  GYM_TASKS,
  type GymAction,
  type GymObservation,
  type GymState,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveTaskIds,
} from '@servegym/environments';
import type { EnvironmentDefinition, OpenEnvServer } from '@servegym/openenv';
import type { BackgroundEnvironment } from './background/background-environment.ts';
import { mountBaselineRoutes } from './baseline-routes.ts';
import { baselineSuite } from './baseline-suite.ts';
import { mountInfoRoute } from './info-route.ts';
import { modelBaseline } from './llm-player.ts';
import { FLEET_POLICIES, GYM_POLICIES, SERVE_POLICIES } from './policy-catalogue.ts';

/** Seed of the baselines' episodes. */
const BASELINE_SEED = 0;
/** Range in which InferenceGym expects the baseline agent on the table that comes with the package. */
const EXPECTED_RANGES = { 1: [0.3, 0.4], 2: [0.22, 0.32], 3: [0.18, 0.28] } as const;

/** `/baseline` and `/info` of `llmserve`. */
export function mountServeSeedRoutes(
  server: OpenEnvServer<ServeAction, ServeObservation, ServeState>,
  background: BackgroundEnvironment,
): void {
  const names = listPolicies().map(({ name }) => name);
  const agents = ['heuristic', ...names.filter((name) => ['default', 'random'].includes(name))];
  mountBaselineRoutes(server, {
    suite: baselineSuite(server.definition as unknown as EnvironmentDefinition, {
      agents,
      seed: BASELINE_SEED,
      play: background.playBaseline.bind(background),
    }),
    model: modelBaseline(server.definition, SERVE_POLICIES.initialAction),
  });
  const tasks = serveTaskIds().map((id) => findServeTask(id)!);
  mountInfoRoute(server, {
    rewardWeights: Object.fromEntries(tasks.map(({ id, reward }) => [id, reward])),
    episodeLengths: Object.fromEntries(tasks.map(({ id, windows }) => [id, windows])),
  });
}

/** `/baseline` and `/info` of `fleet`. */
export function mountFleetSeedRoutes(
  server: OpenEnvServer<FleetAction, FleetObservation, FleetState>,
  background: BackgroundEnvironment,
): void {
  mountBaselineRoutes(server, {
    suite: baselineSuite(server.definition as unknown as EnvironmentDefinition, {
      agents: ['hpa', 'rule', 'static'],
      seed: BASELINE_SEED,
      play: background.playBaseline.bind(background),
    }),
    model: modelBaseline(server.definition, FLEET_POLICIES.initialAction),
  });
  const tasks = fleetTasks.ids().map((id) => fleetTasks.find(id)!);
  mountInfoRoute(server, {
    rewardWeights: Object.fromEntries(
      tasks.map(({ id, prices, referenceUsd }) => [id, { prices, reference_usd: referenceUsd }]),
    ),
    episodeLengths: Object.fromEntries(tasks.map(({ id, windows }) => [id, windows])),
  });
}

/** `/baseline` and `/info` of `inferencegym`. */
export function mountGymSeedRoutes(
  server: OpenEnvServer<GymAction, GymObservation, GymState>,
  background: BackgroundEnvironment,
): void {
  const ownTable = server.definition.version.includes('+table.');
  mountBaselineRoutes(server, {
    suite: baselineSuite(server.definition as unknown as EnvironmentDefinition, {
      agents: ['baseline', 'default', 'random'],
      seed: BASELINE_SEED,
      play: background.playBaseline.bind(background),
      ...(!ownTable && { expectedRanges: EXPECTED_RANGES }),
    }),
    model: modelBaseline(server.definition, GYM_POLICIES.initialAction),
  });
  mountInfoRoute(server, {
    rewardWeights: Object.fromEntries(GYM_TASK_IDS.map((id) => [id, GYM_TASKS[id].reward])),
    episodeLengths: Object.fromEntries(GYM_TASK_IDS.map((id) => [id, EPISODE_STEPS])),
  });
}
