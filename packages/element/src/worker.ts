import { type Deployment, vllmDefaults } from '@servegym/operators/browser';
import type { WeightPrecision } from '@servegym/simulator';
import { fetchJson, fetchProfiles, type ProfileEntry } from './catalog.ts';
import { EFFORTS, type LoadCurve, type LoadFilm, loadCurve, loadFilm } from './load-curve.ts';
import type { LogAnswer } from './plan-log.ts';
import { entryOf, type Settings } from './settings.ts';
import { turn } from './turn.ts';

/** What the worker is asked: the curve of some settings; a later request takes the place of one before. */
export interface CurveRequest {
  readonly id: number;
  readonly settings: Settings;
}

/** What it answers: a curve of each effort, then requests at the rate of the settings, or what is wrong with the settings. */
export type CurveAnswer = { readonly id: number } & (
  | {
      readonly curve: LoadCurve;
      readonly model: string;
      readonly gpu: string;
      readonly weights: string;
      readonly notSimulated: readonly string[];
      readonly isWhole: boolean;
    }
  | { readonly film: LoadFilm }
  | { readonly problem: string }
);

/** A log to plan for, with the model and the SLO of the settings, in place of one before; `null`: none any more. */
type LogRequest = { readonly log: File; readonly settings: Settings } | { readonly log: null };

/** What is told of a log, by its name: how far it is, the plans, or what is wrong with it. */
export type LogMessage = { readonly log: string } & (
  | { readonly stage: string; readonly share: number }
  | { readonly answer: LogAnswer }
  | { readonly problem: string }
);

const index = fetchJson<ProfileEntry[]>('./profiles/index.json');
let latest = 0;

/** The engine of the settings, with vLLM's defaults where there is no line. */
async function resolve(settings: Settings): Promise<Deployment> {
  const entries = await index;
  const entry = entryOf(entries, settings);
  if (settings.command.trim() !== '') {
    const { deploymentOf } = await import('./deployment.ts');
    return deploymentOf(settings.command, entry.gpu, entries);
  }
  const [profile] = await fetchProfiles([entry.name]);
  const weights = entry.weights.includes(settings.weights) ? settings.weights : entry.weights[0];
  return {
    ...{ name: profile.name, profile, engines: 1, notSimulated: [] },
    settings: { ...vllmDefaults(profile), weights: weights as WeightPrecision },
  };
}

async function answer({ id, settings }: CurveRequest): Promise<void> {
  const send = (message: CurveAnswer) => postMessage(message);
  try {
    const deployment = await resolve(settings);
    const { 'slo-ttft': sloTtft, 'slo-tpot': sloTpot, rate, input, output } = settings;
    const { profile, notSimulated } = deployment;
    const named = { model: profile.model.name, gpu: profile.gpu.name, weights: deployment.settings.weights };
    const load = { rate, input, output, sloTtft, sloTpot };
    for (const effort of EFFORTS) {
      const steps = loadCurve(deployment, load, effort);
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done) {
          send({ id, curve: step.value, ...named, notSimulated, isWhole: effort === EFFORTS.at(-1) });
          break;
        }
        await turn();
        if (id !== latest) return;
      }
    }
    send({ id, film: loadFilm(deployment, load) });
  } catch (error) {
    if (id === latest) send({ id, problem: (error as Error).message });
  }
}

let wanted: File | null = null;
/** Least time between two messages on progress, ms. */
const TELL_EACH_MS = 100;

async function plan(log: File, settings: Settings): Promise<void> {
  const send = (message: LogMessage) => postMessage(message);
  const { 'slo-ttft': ttft, 'slo-tpot': tpot } = settings;
  const stopped = new Error('stopped');
  let toldAt = 0;
  const onProgress = (stage: string, share: number) => {
    if (log !== wanted) throw stopped;
    const now = performance.now();
    if (now - toldAt < TELL_EACH_MS) return;
    toldAt = now;
    send({ log: log.name, stage, share });
  };
  const takeTurn = async () => {
    await turn();
    if (log !== wanted) throw stopped;
  };
  try {
    const { jobsHere, planLog, readLog } = await import('./plan-log.ts');
    const entries = await index;
    const { model } = entryOf(entries, settings);
    const ofModel = entries.filter((entry) => entry.model === model);
    const profiles = await fetchProfiles(ofModel.map((entry) => entry.name));
    const trace = await readLog(log, onProgress);
    const answer = await planLog(trace, profiles, { ttft, tpot }, jobsHere(takeTurn), onProgress);
    send({ log: log.name, answer });
  } catch (error) {
    if (error !== stopped && log === wanted) send({ log: log.name, problem: (error as Error).message });
  }
}

addEventListener('message', ({ data }: MessageEvent<CurveRequest | LogRequest>) => {
  if ('log' in data) {
    wanted = data.log;
    if (data.log !== null) void plan(data.log, data.settings);
  } else {
    latest = data.id;
    void answer(data);
  }
});
