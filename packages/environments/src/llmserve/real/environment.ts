import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type StepResult,
} from '@servegym/openenv/definition';
import { readSeed } from '../../scenario.ts';
import { requireMaskedKnobsHeld, requireOpen } from '../../window-environment.ts';
import { chooseTask } from '../scenario.ts';
import type { ServeAction, ServeObservation, ServeState } from '../schema.ts';
import { episodeState } from '../serve-episode.ts';
import { serveTasks } from '../serve-task.ts';
import { isRefusal, RealClient } from './real-client.ts';
import { RealEpisode, type RealServer } from './real-episode.ts';
import type { RealSettings } from './real-settings.ts';
import { ServerControls } from './server-controls.ts';
import { requirePrecision, warmUp } from './warm-up.ts';

/** One session of `llmserve` in real mode. */
class RealLlmServe implements Environment<ServeAction, ServeObservation, ServeState> {
  readonly #settings: RealSettings;
  readonly #closing = new AbortController();
  #server: RealServer | null = null;
  #episode: RealEpisode | null = null;
  #reset: ResetOptions = {};

  constructor(settings: RealSettings) {
    this.#settings = settings;
  }

  async reset(options: ResetOptions): Promise<StepResult<ServeObservation>> {
    const task = chooseTask(options);
    const seed = readSeed(options);
    this.#server ??= await connectTo(this.#settings, this.#closing.signal);
    const { precision } = this.#server;
    if (precision !== null) requirePrecision(precision, task, this.#settings);
    const applied = await this.#server.controls.apply(task.defaultAction, this.#closing.signal);
    const hasProfile = options.profile !== undefined || serveTasks.isOwn(task.id);
    const reading = await this.#server.controls.read(this.#closing.signal);
    const episode = new RealEpisode(task, seed, this.#server, hasProfile, reading);
    this.#episode = episode;
    this.#reset = options;
    return {
      observation: episode.firstObservation(),
      reward: null,
      done: false,
      metadata: {
        mode: 'real',
        provider: this.#settings.provider,
        model: this.#server.model,
        applied: applied.applied,
        not_applied: applied.notApplied,
        refused_fields: Object.fromEntries(this.#server.client.refusedFields),
        ttft_overhead_ms: precision?.ttftOverheadMs ?? null,
      },
    };
  }

  async step(action: ServeAction): Promise<StepResult<ServeObservation>> {
    const episode = requireOpen(this.#episode, ({ window }) => `${window} windows`);
    const played = requireMaskedKnobsHeld(episode.task, action);
    const { observation, reward, report } = await episode.step(played, this.#closing.signal);
    return { observation, reward, done: episode.done, metadata: { ...report } };
  }

  state(): ServeState {
    return episodeState(this.#episode, this.#reset, this.#episode?.totals.sloViolations ?? 0);
  }

  /** Ends the requests that are under way. */
  close(): void {
    this.#closing.abort();
  }
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
      isRefusal(models) ? 'REAL_SERVER_REFUSED' : 'REAL_SERVER_UNREACHABLE',
      `${client.describeListing(models)}. LLMSERVE_REAL_MODEL names a model without the list`,
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
    create: () => new RealLlmServe(settings),
  });
}
