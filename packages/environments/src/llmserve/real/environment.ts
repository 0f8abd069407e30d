import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
} from '@servegym/openenv/definition';
import { readSeed } from '../../scenario.ts';
import { episodeSession, requireMaskedKnobsHeld } from '../../window-environment.ts';
import { chooseTask } from '../scenario.ts';
import type { ServeAction, ServeObservation, ServeState } from '../schema.ts';
import { episodeState } from '../serve-episode.ts';
import { serveTasks } from '../serve-task.ts';
import { failureCode, RealClient } from './real-client.ts';
import { RealEpisode, type RealServer } from './real-episode.ts';
import type { RealSettings } from './real-settings.ts';
import { ServerControls } from './server-controls.ts';
import { requirePrecision, warmUp } from './warm-up.ts';

function realSession(settings: RealSettings): Environment<ServeAction, ServeObservation, ServeState> {
  const closing = new AbortController();
  const { signal } = closing;
  let connected: RealServer | undefined;
  const session = episodeSession<ServeAction, ServeObservation, ServeState, RealEpisode>({
    async begin(options) {
      const task = chooseTask(options);
      const seed = readSeed(options);
      connected ??= await connectTo(settings, signal);
      const { controls, precision } = connected;
      if (precision !== null) requirePrecision(precision, task, settings);
      const applied = await controls.apply(task.defaultAction, signal);
      const hasProfile = options.profile !== undefined || serveTasks.isOwn(task.id);
      return new RealEpisode(task, seed, connected, {
        hasProfile,
        applied,
        reading: await controls.read(signal),
      });
    },
    play: (episode, action) => episode.step(requireMaskedKnobsHeld(episode.task, action), signal),
    length: ({ window }) => `${window} windows`,
    report: ({ report }) => report,
    stateOf: (episode, reset) => episodeState(episode, reset, episode?.totals.sloViolations ?? 0),
  });
  // Ends the requests that are under way.
  return { ...session, close: () => closing.abort() };
}

/** @throws EnvironmentError `REAL_SERVER_UNREACHABLE`, `REAL_SERVER_REFUSED` or `REAL_SETTINGS` */
async function connectTo(settings: RealSettings, signal: AbortSignal): Promise<RealServer> {
  const client = await RealClient.create(settings);
  const controls = new ServerControls(settings, client.refusedFields);
  const model = settings.model ?? (await firstModel(client, settings, signal));
  const precision = await warmUp(client, controls, settings, model, signal);
  return { settings, client, controls, model, precision };
}

async function firstModel(client: RealClient, settings: RealSettings, signal: AbortSignal): Promise<string> {
  const models = await client.models(signal);
  if ('outcome' in models) {
    throw new EnvironmentError(
      failureCode(models) ?? 'REAL_SERVER_UNREACHABLE',
      `${client.describe(models, '/models')}. LLMSERVE_REAL_MODEL names a model without the list`,
    );
  }
  if (models[0] !== undefined) return models[0];
  throw new EnvironmentError(
    'REAL_SETTINGS',
    `${settings.baseUrl}/models lists no model. Name one in LLMSERVE_REAL_MODEL`,
  );
}

/**
 * `llmserve` whose steps send the task's requests to a real server and measure it. The same schemas as in simulation;
 * what is measured is not repeatable, so that sessions are not kept and episodes are not graded.
 */
export function realServeEnvironment(
  settings: RealSettings,
  { grade: _, splits: __, ...simulated }: EnvironmentDefinition<ServeAction, ServeObservation, ServeState>,
): EnvironmentDefinition<ServeAction, ServeObservation, ServeState> {
  return defineEnvironment<ServeAction, ServeObservation, ServeState>({
    ...simulated,
    description: `${simulated.description} Each step sends real requests to ${settings.baseUrl}.`,
    replayable: false,
    create: () => realSession(settings),
  });
}
